"""Discounted returns of one log's actions, and the credit that replaces them."""

from aria_dvc.credit.chain import chosen_labels, credit
from aria_dvc.files import read_json, write_json
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import read_cuts
from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.schemas import REWARDS, TURNS, read_table, write_table
from aria_dvc.records.tables import read_vectors


def main(params: Params, log: str) -> None:
    files = files_of(params, log)
    turns = read_table(files.turns, TURNS)
    vectors = read_vectors(files.embeddings, turns)
    spoken = Log.of(turns, vectors, params.aggregate.gamma)
    cuts = read_cuts(files.labels, turns)
    labels = chosen_labels(spoken, cuts, read_json(files.selected_k))
    rewards, quality = credit(spoken.with_labels(labels), params)
    write_table(files.rewards, rewards, REWARDS)
    write_json(files.credit_quality, quality)


if __name__ == "__main__":
    run_stage(main, "log")
