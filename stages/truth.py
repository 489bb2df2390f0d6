"""True values of some actions of a log that was played, by playing on from there many times."""

from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.readers import read_log
from aria_dvc.records.schemas import TRUTH, write_table


def main(params: Params, log: str) -> None:
    from aria_dvc.truth.table import Question, empty_table, truth_table

    source, files, settings = params.logs[log], files_of(params, log), params.truth
    table = empty_table()
    if source.is_played and settings.turns:
        asked = Question(settings, params.aggregate.gamma, params.prepare.players, source.source)
        table = truth_table(params, read_log(files.raw, log, warn=False), asked)
    write_table(files.truth, table, TRUTH)


if __name__ == "__main__":
    run_stage(main, "log")
