"""The page of a run: what the stages wrote, as `report.page` wants it, one HTML file out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.aside import written_aside
from aria_dvc.credit.chain import read_selection
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.report import Run
from aria_dvc.records.stored import read_stage_csv
from aria_dvc.report.evaluation import rates
from aria_dvc.report.page.blocks import LogTables, log_block, shares, sizes
from aria_dvc.report.page.document import Page, document
from aria_dvc.report.page.results import learning_block, results

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 8_500_000
"""What the dialogues of all logs may take; plotly.js takes 4.9 MB more, and a page 15 at most."""


def page_of(run: Run) -> Page:
    """All that the page of a run shows."""
    needs = [float(sizes(outputs.labelled).sum()) for outputs in run.logs.values()]
    given = zip(run.logs, shares(needs, MOST_BYTES), strict=True)
    blocks = {name: _log(run, name, most) for name, most in given}
    health = [finding.record() for finding in run.findings]
    found = results(run.evaluation), rates(run.evaluation)
    return Page(run.params.seed, *found, health, blocks)


def write_page(page: Page, path: Path) -> None:
    """Write the report of a run as one HTML file."""
    with written_aside(path) as aside:
        aside.write_text(document(page), encoding="utf-8", newline="\n")


def _log(run: Run, name: str, most: float) -> dict[str, Any]:
    block = log_block(log_tables(run, name), most)
    return {**block, "learning": _learning(run, name)}


def log_tables(run: Run, name: str) -> LogTables:
    """All that is known of one log, as the stages wrote it."""
    outputs = run.logs[name]
    log, cuts = outputs.labelled, outputs.cuts
    return LogTables(
        log,
        cuts,
        outputs.rewards,
        outputs.curve,
        read_selection(outputs.files.selected_k, cuts, log.role_names),
        run.intentions[name],
        *run.projected(name, log.points),
    )


def _learning(run: Run, name: str) -> dict[str, Any]:
    category = run.params.logs[name].category
    if category not in run.params.categories:
        return learning_block(category, run.course.iloc[:0], {}, {})
    course = run.course[run.course["log"] == name]
    model = run.learning[category]["reward_model"]
    return learning_block(category, course, _histories(run, category), model)


def _histories(run: Run, category: str) -> Mapping[str, pd.DataFrame]:
    """variant -> its offline steps, of those that took any."""
    files = {name: paths.policy(name, category) / "history.csv" for name in run.params.variants}
    return {
        name: read_stage_csv(file, ("step", "loss"), "policy")
        for name, file in files.items()
        if file.exists()
    }
