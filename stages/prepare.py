"""Check the raw dialogues of one game and lay them out as tables."""

from aria_dvc.files import write_parquet
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.readers import read_log
from aria_dvc.records.tables import check_lengths, episodes_table, turns_table


def main(params: Params, game: str) -> None:
    episodes = read_log(paths.raw(game), game)
    check_lengths(episodes, params.prepare.max_chars, paths.raw(game))
    write_parquet(paths.turns(game), turns_table(episodes))
    write_parquet(paths.episodes(game), episodes_table(episodes))


if __name__ == "__main__":
    run_stage(main)
