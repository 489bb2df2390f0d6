"""Every index at every k, and the number of intentions that is used."""

from aria_dvc.credit.chain import choose_k
from aria_dvc.files import write_csv, write_json
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import read_space
from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.stored import read_turns
from aria_dvc.records.tables import read_vectors


def main(params: Params, log: str) -> None:
    files = files_of(params, log)
    turns = read_turns(files.turns)
    vectors = read_vectors(files.embeddings, turns)
    spoken = Log.of(turns, vectors, params.aggregate.gamma)
    space = read_space(files.labels, files.tree, turns)
    selection, curve = choose_k(spoken, space, params)
    write_json(files.selected_k, selection)
    write_csv(files.k_curve, curve)


if __name__ == "__main__":
    run_stage(main, "log")
