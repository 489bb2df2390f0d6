"""One merge tree over a game's utterances, cut at every k."""

from aria_dvc.files import read_parquet, write_parquet
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions, labels_table, tree_table
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.tables import read_vectors


def main(params: Params, game: str) -> None:
    turns = read_parquet(paths.turns(game))
    log = Log.of(turns, read_vectors(paths.embeddings(game)))
    space = find_intentions(log, params.cluster)
    write_parquet(paths.labels(game), labels_table(turns, space.cuts))
    write_parquet(paths.tree(game), tree_table(space.tree))


if __name__ == "__main__":
    run_stage(main)
