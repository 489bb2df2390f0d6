"""Every index at every k, and the number of intentions that is used."""

from aria_dvc.credit.aggregation import choose_k, say_if_capped
from aria_dvc.files import read_parquet, write_csv, write_json
from aria_dvc.intentions.space import distinct_points, read_labels
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.tables import read_vectors


def main(params: Params, game: str) -> None:
    selection, curve = choose_k(
        read_parquet(paths.turns(game)),
        read_vectors(paths.embeddings(game)),
        read_labels(paths.labels(game)),
        distinct_points(read_parquet(paths.tree(game))["height"].to_numpy()),
        game,
        params.select_k,
        params.aggregate,
        k=None if params.k == "auto" else params.k,
        seed=params.seed,
    )
    say_if_capped(selection, game)
    write_json(paths.selected_k(game), selection)
    write_csv(paths.k_curve(game), curve)


if __name__ == "__main__":
    run_stage(main)
