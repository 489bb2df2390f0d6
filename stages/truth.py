"""True values of some actions of a log that was played, by playing on from there many times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.readers import read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import TRUTH, write_table
from aria_dvc.records.tables import empty_table

if TYPE_CHECKING:
    import pandas as pd


def main(params: Params, log: str) -> None:
    files = files_of(params, log)
    measured = params.logs[log].is_played and params.truth.turns > 0
    table = measure(params, log) if measured else empty_table(TRUTH)
    write_table(files.truth, table, TRUTH)


def measure(params: Params, log: str) -> pd.DataFrame:
    from aria_dvc.truth.table import Question, truth_table

    source, gamma = params.logs[log].source, params.aggregate.gamma
    asked = Question(params.truth, gamma, params.prepare.players, source)
    episodes = read_log(files_of(params, log).raw, Reading(game=log, warn=False))
    return truth_table(params, episodes, asked)


if __name__ == "__main__":
    run_stage(main, "log")
