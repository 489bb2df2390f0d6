"""A page of a format shows an entry, and the rows that `aria read` makes of that very entry."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from aria_dvc.__main__ import main
from aria_dvc.records.formats.base import Layout
from aria_dvc.records.layouts import LAYOUTS, layout_of

FOLDER = Path(__file__).parents[1] / "docs/formats"
NO_FORMAT = {"README", "large_logs"}
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem not in NO_FORMAT)


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of every fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def rows_of(page: Path, folder: Path) -> str:
    """The first block as `aria read` reads it: a line an utterance."""
    language, text = blocks(page)[0]
    log, out = folder / "log", folder / "turns.parquet"
    log.write_text(json.dumps(json.loads(text)) if language == "json" else text, "utf-8")
    assert main(["read", str(log), "--out", str(out)]) == 0
    found = pd.read_parquet(out)
    return "".join(line(row._asdict()) for row in found.itertuples(index=False))


def line(row: dict) -> str:
    reward = f"{row['reward']:g}" if row["is_action"] else ""
    text = row["text"].replace("\n", " / ")
    return f"{row['episode_id']:<13} {row['position']} {row['role']:<10} {reward:>5}  {text}\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_rows_of_a_page_are_those_of_its_entry(page, tmp_path):
    (_, (language, shown), *_) = blocks(page)
    assert language == "text"
    assert shown == "episode       i role       reward  text\n" + rows_of(page, tmp_path)


def test_every_format_has_a_page():
    entries = [json.loads(blocks(page)[0][1]) for page in PAGES if blocks(page)[0][0] == "json"]
    shown: list[Layout] = [layout_of(entry) for entry in entries]
    assert {layout.name for layout in shown} == {layout.name for layout in LAYOUTS}
    listed = set(re.findall(r"\]\((\w+)\.md\)", (FOLDER / "README.md").read_text("utf-8")))
    assert {page.stem for page in PAGES} | {"large_logs"} == listed
