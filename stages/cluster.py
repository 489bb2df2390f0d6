"""One merge tree over a log's utterances, cut at every k."""

from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions, labels_table, tree_table
from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.schemas import LABELS, TREE, write_table
from aria_dvc.records.stored import read_turns
from aria_dvc.records.tables import read_vectors


def main(params: Params, log: str) -> None:
    files = files_of(params, log)
    turns = read_turns(files.turns)
    spoken = Log.of(turns, read_vectors(files.embeddings, turns))
    space = find_intentions(spoken, params.cluster)
    write_table(files.labels, labels_table(turns, space.cuts), LABELS)
    write_table(files.tree, tree_table(space.tree), TREE)


if __name__ == "__main__":
    run_stage(main, "log")
