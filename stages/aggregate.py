"""Discounted returns of one game's actions, and the credit that replaces them."""

from aria_dvc.credit.chain import chosen_labels, credit
from aria_dvc.files import read_json, write_json
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import read_cuts
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.schemas import REWARDS, TURNS, read_table, write_table
from aria_dvc.records.tables import read_vectors


def main(params: Params, game: str) -> None:
    turns = read_table(paths.turns(game), TURNS)
    vectors = read_vectors(paths.embeddings(game), turns)
    log = Log.of(turns, vectors, params.aggregate.gamma)
    cuts = read_cuts(paths.labels(game), turns)
    labels = chosen_labels(log, cuts, read_json(paths.selected_k(game)))
    rewards, quality = credit(log.with_labels(labels), params)
    write_table(paths.rewards(game), rewards, REWARDS)
    write_json(paths.credit_quality(game), quality)


if __name__ == "__main__":
    run_stage(main)
