"""One merge tree over a game's utterances, cut at every k."""

from aria_dvc.files import read_parquet, write_parquet
from aria_dvc.intentions.space import build_space, labels_table, tree_table
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.tables import read_vectors


def main(params: Params, game: str) -> None:
    turns = read_parquet(paths.turns(game))
    vectors = read_vectors(paths.embeddings(game))
    tree, nested = build_space(turns, vectors, game, params.cluster)
    write_parquet(paths.labels(game), labels_table(turns, nested))
    write_parquet(paths.tree(game), tree_table(tree))


if __name__ == "__main__":
    run_stage(main)
