"""One merge tree over a game's utterances, cut at every k."""

from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions, labels_table, tree_table
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.schemas import LABELS, TREE, TURNS, read_table, write_table
from aria_dvc.records.tables import read_vectors


def main(params: Params, game: str) -> None:
    turns = read_table(paths.turns(game), TURNS)
    log = Log.of(turns, read_vectors(paths.embeddings(game), turns))
    space = find_intentions(log, params.cluster)
    write_table(paths.labels(game), labels_table(turns, space.cuts), LABELS)
    write_table(paths.tree(game), tree_table(space.tree), TREE)


if __name__ == "__main__":
    run_stage(main)
