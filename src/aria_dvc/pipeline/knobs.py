"""The comments of params.yaml, taken from the descriptions of the fields (settings/).

    python -m aria_dvc.pipeline.knobs    # rewrites them, data.md and stages/ of docs; tests compare

A field is described where it first stands; a further block of the same kind repeats no comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from aria_dvc.params import Params
from aria_dvc.params_errors import described_fields
from aria_dvc.pipeline.stage_pages import pages
from aria_dvc.records.schemas import data_dictionary

PARAMS = Path("params.yaml")
DATA = Path("docs/data.md")
WIDTH = 32
_LINE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z_][\w]*):(?P<value>[^#]*?)\s*(?:#.*)?$")


def commented(text: str) -> str:
    """`text` of a params.yaml with every field's description at the end of its first line."""
    told: set[tuple[int, str]] = set()
    return "".join(_with_comment(line, location, told) + "\n" for line, location in _lines(text))


def _lines(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each line and the place of its key; () for comments, blank lines and elements of lists."""
    path: list[str] = []
    for line in text.splitlines():
        found = _LINE.match(line)
        if not found:
            yield line, ()
            continue
        path = [*path[: len(found["indent"]) // 2], found["key"]]
        yield line, tuple(path)


def _with_comment(line: str, location: tuple[str, ...], told: set[tuple[int, str]]) -> str:
    if not location:
        return line
    fields = described_fields(Params, location[:-1]) or {}
    field = fields.get(location[-1])
    bare = line.partition("#")[0].rstrip()
    changed = location[0] == "variants" and len(location) > 1  # described in the block policy
    if changed or field is None or not field.description or (id(field), location[-1]) in told:
        return bare
    told.add((id(field), location[-1]))
    return f"{bare:<{WIDTH}}  # {field.description}"


def main() -> None:
    """Bring params.yaml and the generated parts of docs/ up to date."""
    PARAMS.write_text(commented(PARAMS.read_text("utf-8")), encoding="utf-8")
    DATA.write_text(data_dictionary(), encoding="utf-8")
    for path, text in pages(Path()).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
