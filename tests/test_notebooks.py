"""The notebooks of the docs run, and print today what is stored in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from dag import ROOT, Workspace
from scripts.docs_site import as_markdown
from scripts.notebooks import FOLDER, executed

NAMES = ("own_log.ipynb", "sweep.ipynb")
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?")
NEAR = 0.05  # figures differ a little between machines: so much, or such a share of the number


def printed(notebook: dict) -> list[str]:
    """What each cell of code shows as text."""
    cells = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["\n".join(map(text_of, outputs)) for outputs in cells]


def text_of(output: dict) -> str:
    return "".join(output.get("text") or output["data"]["text/plain"])


def is_same(one: str, other: str) -> bool:
    """Equal words, however they are spaced, and numbers that are near each other."""
    words = [NUMBER.sub("#", text).split() for text in (one, other)]
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in (one, other)]
    near = (abs(a - b) <= NEAR * max(1, abs(a)) for a, b in zip(*numbers, strict=False))
    return words[0] == words[1] and all(near)


def compare(name: str, further: dict[str, str], folder: Path = FOLDER) -> None:
    stored = json.loads((FOLDER / name).read_text("utf-8"))
    fresh = executed(folder / name, further)
    for old, new in zip(printed(stored), printed(fresh), strict=True):
        assert is_same(old, new), f"`make notebooks` stores this in {name}:\n{new}\nnot\n{old}"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_holds_no_traces_of_who_ran_it(name):
    notebook = json.loads((FOLDER / name).read_text("utf-8"))
    assert set(notebook["metadata"]) == {"kernelspec"}
    counts = [cell.get("execution_count") for cell in notebook["cells"]]
    counts = [count for count in counts if count is not None]
    assert counts == list(range(1, len(counts) + 1)), "run from top to bottom"
    for cell in notebook["cells"]:
        assert not cell["metadata"]
        for output in cell.get("outputs", []):
            assert output.get("name") != "stderr"
            assert set(output.get("data", {})) <= {"text/plain", "image/png"}
    assert not re.search(r"/(home|root|tmp|Users)/", (FOLDER / name).read_text("utf-8"))


def test_there_is_no_other_notebook():
    assert {path.name for path in FOLDER.iterdir()} == set(NAMES)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("r2  0.31,  48 games of 1,201", True),
        ("r2 0.38, 48 games of 1,200", False),
        ("r2 -0.31, 48 games of 1,200", False),
        ("r2 0.31, 48 games of 1,300", False),
        ("r2 0.31, 48 games", False),
        ("R2 0.31, 48 games of 1,200", False),
    ],
)
def test_words_are_compared_exactly_and_numbers_nearly(other, same):
    assert is_same("r2 0.30, 48 games of 1,200", other) == same


def test_a_notebook_is_a_page_of_the_site():
    text, picture = {"output_type": "stream", "text": ["a ``` b\n"]}, {"image/png": "QUJD\n"}
    cells = [
        {"cell_type": "markdown", "source": ["# Head\n", "words"]},
        {"cell_type": "code", "source": ["%%sh\n", "ls"], "outputs": [text]},
        {
            "cell_type": "code",
            "source": ["1"],
            "outputs": [{"output_type": "display_data", "data": picture}],
        },
    ]
    assert as_markdown(json.dumps({"cells": cells})).split("\n\n") == [
        "# Head\nwords",
        "```sh\nls\n```",
        "````text\na ``` b\n````",
        "```python\n1\n```",
        "![picture](data:image/png;base64,QUJD)\n",
    ]
    cells[1]["outputs"] = [{"output_type": "error"}]
    with pytest.raises(ValueError, match="neither text nor PNG"):
        as_markdown(json.dumps({"cells": cells}))


def test_from_a_log_to_a_trainers_file(tmp_path):
    compare("own_log.ipynb", {"ARIA_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)})


@pytest.mark.smoke
def test_from_a_sweep_to_the_report(tmp_path):
    """In a copy of this working tree, of which the notebook makes its clone."""
    clone = tmp_path / "clone"
    clone.mkdir()
    workspace = Workspace.copy_of_project(clone)
    who = {name: value for name, value in workspace.env.items() if name.startswith("GIT_")}
    folder = clone / FOLDER.relative_to(ROOT)
    compare("sweep.ipynb", {**who, "TMPDIR": str(tmp_path)}, folder)
