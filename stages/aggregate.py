"""Discounted returns of one log's actions, and the credit that replaces them."""

from aria_dvc.credit.chain import chosen_labels, credit
from aria_dvc.files import read_json, read_parquet, write_json, write_parquet
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import read_cuts
from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.tables import read_vectors


def main(params: Params, log: str) -> None:
    files = files_of(params, log)
    turns, vectors = read_parquet(files.turns), read_vectors(files.embeddings)
    spoken = Log.of(turns, vectors, params.aggregate.gamma)
    labels = chosen_labels(spoken, read_cuts(files.labels), read_json(files.selected_k))
    rewards, quality = credit(spoken.with_labels(labels), params)
    write_parquet(files.rewards, rewards)
    write_json(files.credit_quality, quality)


if __name__ == "__main__":
    run_stage(main, "log")
