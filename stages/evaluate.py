"""Play one game with the vanilla and the trained policy against fixed opponents."""

from aria_dvc.arena.evaluate import empty_evaluation, evaluate_game
from aria_dvc.files import write_parquet
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.names import PLAYABLE, category_of


def main(params: Params, game: str) -> None:
    if game in PLAYABLE:
        policy = paths.policy(category_of(game))
        table = evaluate_game(params, game, paths.BASE_MODEL, policy)
    else:
        table = empty_evaluation()
    write_parquet(paths.evaluation(game), table)


if __name__ == "__main__":
    run_stage(main)
