"""What mkdocs does besides for this site; mkdocs.yml names this module as a hook.

A page lies on the site where it lies in the repository, so the same links work in both and none is
rewritten. Formulas (```math) become MathML when the site is built: to look at one takes no script.
A notebook becomes a page by its stored outputs: nothing is run, and of what it holds only Markdown,
code, text and pictures are shown, which takes no converter with thirty packages of its own.
A diagram is drawn by a script that the theme fetches, which is all that a page asks of the network;
without one, the diagram's text stands there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

NOTEBOOK = ".ipynb"
# What the site has besides docs/; a picture is listed here where a page outside docs/ shows it.
ABOVE = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "benchmarks/README.md",
    "metrics/plots/pictures/learning_curve.png",
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Formulas and diagrams, and anchors as the repository's host makes them."""
    from pymdownx.superfences import fence_code_format

    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [
        {"name": "mermaid", "class": "mermaid", "format": fence_code_format},
        {"name": "math", "class": "math", "format": formula},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of docs/ and those of `ABOVE`, each under its path in the repository."""
    from mkdocs.structure.files import File

    class Notebook(File):
        def is_documentation_page(self) -> bool:
            return True

    root = Path(config.config_file_path).parent
    below = [file for file in files if file.src_dir == config.docs_dir]
    for file in below:
        files.remove(file)
    folder = Path(config.docs_dir).relative_to(root).as_posix()
    for path in [*ABOVE, *(f"{folder}/{file.src_uri}" for file in below)]:
        kind = Notebook if path.endswith(NOTEBOOK) else File
        files.append(kind(path, str(root), config.site_dir, config.use_directory_urls))
    return files


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    """A notebook as Markdown; mkdocs reads every other page itself."""
    path = page.file.src_uri
    return as_markdown(page.file.content_string) if path.endswith(NOTEBOOK) else None


def as_markdown(notebook: str) -> str:
    """The page of a notebook (the text of its file): texts, code, and what the code printed."""
    parts: list[str] = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            shell = source.startswith("%%sh\n")
            code = source.removeprefix("%%sh\n")
            parts += [_fenced("sh" if shell else "python", code), *map(_shown, cell["outputs"])]
    return "\n\n".join(parts) + "\n"


def _fenced(language: str, text: str) -> str:
    """A block of code; its fence is longer than any within."""
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _shown(output: dict[str, Any]) -> str:
    """One output of a cell: a picture, or the text that stands for it in a terminal.

    Raises:
        ValueError: it is neither.
    """
    data = output.get("data", {})
    if "image/png" in data:
        return f"![picture](data:image/png;base64,{''.join(data['image/png']).strip()})"
    if output["output_type"] == "stream":
        return _fenced("text", "".join(output["text"]))
    if "text/plain" in data:
        return _fenced("text", "".join(data["text/plain"]))
    raise ValueError(f"an output that is neither text nor PNG: {sorted(output)}")


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading as the repository's host makes it, which keeps what stands in <>."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def formula(source: str, language: str, css_class: str, *_: Any, **__: Any) -> str:
    """A formula in LaTeX as MathML; one that is wider than a phone is scrolled."""
    from latex2mathml.converter import convert

    shown = convert(" ".join(source.split()), display="block")
    return f'<div class="{css_class}" style="overflow-x: auto">{shown}</div>'
