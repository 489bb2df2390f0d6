"""Run the notebooks of the docs and store what they print: `make notebooks`.

    python scripts/notebooks.py                 # all of docs/notebooks/
    python scripts/notebooks.py own_log.ipynb   # this one

What is stored is what readers see, in the repository and on the site: text and pictures. What was
written to standard error, times, the kernel's version and HTML stay out, so that a diff shows what
changed; `tests/test_notebooks.py` compares the rest with what the code prints today.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"
CELL_S = 1800  # seconds that a cell may take
SHOWN = ("text/plain", "image/png")


def executed(path: Path, further: Mapping[str, str] | None = None) -> NotebookNode:
    """A notebook with fresh outputs, run in its own folder; the file stays as it is.

    further: variables of the environment, besides this process's own and those by which the
        checkout's code, and the commands installed with this Python, come before any other.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed; the error has its traceback.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PATH": commands, **(further or {})}
    resources = {"metadata": {"path": str(path.parent)}}
    options = {"timeout": CELL_S, "record_timing": False, "coalesce_streams": True}
    NotebookClient(notebook, resources=resources, **options).execute(env=own)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            told = [output for output in cell.outputs if output.get("name") != "stderr"]
            cell.outputs = [_bare(output) for output in told]
    notebook.metadata.pop("language_info", None)
    return notebook


def _bare(output: NotebookNode) -> NotebookNode:
    """An output without the forms that nobody is shown."""
    if "data" in output:
        output.data = {kind: value for kind, value in output.data.items() if kind in SHOWN}
    return output


def main() -> None:
    import nbformat

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="default: all")
    names = parser.parse_args().names
    paths = [FOLDER / name for name in names] or sorted(FOLDER.glob("*.ipynb"))
    if missing := [path for path in paths if not path.is_file()]:
        parser.error(f"there is no notebook {missing[0]}")
    for path in paths:
        nbformat.write(executed(path), path)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
