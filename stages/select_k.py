"""Every index at every k, and the number of intentions that is used."""

from aria_dvc.credit.chain import choose_k
from aria_dvc.files import write_csv, write_json
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import read_space
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.schemas import TURNS, read_table
from aria_dvc.records.tables import read_vectors


def main(params: Params, game: str) -> None:
    turns = read_table(paths.turns(game), TURNS)
    vectors = read_vectors(paths.embeddings(game), turns)
    log = Log.of(turns, vectors, params.aggregate.gamma)
    space = read_space(paths.labels(game), paths.tree(game), turns)
    selection, curve = choose_k(log, space, params)
    write_json(paths.selected_k(game), selection)
    write_csv(paths.k_curve(game), curve)


if __name__ == "__main__":
    run_stage(main)
