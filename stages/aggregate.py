"""Discounted returns of one log's actions, and the credit that replaces them."""

from aria_dvc.credit.chain import chosen_labels, credit, read_selection
from aria_dvc.files import write_json
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import read_cuts
from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.schemas import REWARDS, write_table
from aria_dvc.records.stored import read_turns
from aria_dvc.records.tables import read_vectors


def main(params: Params, log: str) -> None:
    files = files_of(params, log)
    turns = read_turns(files.turns)
    vectors = read_vectors(files.embeddings, turns)
    spoken = Log.of(turns, vectors, params.aggregate.gamma)
    cuts = read_cuts(files.labels, turns)
    selection = read_selection(files.selected_k, cuts, spoken.role_names)
    labels = chosen_labels(spoken, cuts, selection)
    rewards, quality = credit(spoken.with_labels(labels), params)
    write_table(files.rewards, rewards, REWARDS)
    write_json(files.credit_quality, quality)


if __name__ == "__main__":
    run_stage(main, "log")
