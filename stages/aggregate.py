"""Discounted returns of one game's actions, and the credit that replaces them."""

from aria_dvc.credit.aggregation import chosen_labels, credit_table
from aria_dvc.files import read_json, read_parquet, write_json, write_parquet
from aria_dvc.intentions.space import read_labels
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.tables import read_vectors


def main(params: Params, game: str) -> None:
    turns = read_parquet(paths.turns(game))
    selection = read_json(paths.selected_k(game))
    labels = chosen_labels(turns, read_labels(paths.labels(game)), selection)
    vectors = read_vectors(paths.embeddings(game))
    rewards, quality = credit_table(turns, vectors, labels, params.aggregate, params.seed)
    write_parquet(paths.rewards(game), rewards)
    write_json(paths.credit_quality(game), quality)


if __name__ == "__main__":
    run_stage(main)
