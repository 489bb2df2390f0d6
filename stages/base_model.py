"""Materialise the configured model, and teach it the games' language."""

from aria_dvc.learning.base_model import materialise
from aria_dvc.learning.trackers import Tracking
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.players.dialogues import scripted_dialogues
from aria_dvc.progress import progress_bar


def main(params: Params) -> None:
    with progress_bar("warm start") as progress:
        materialise(
            params.base_model,
            params.pace,
            paths.BASE_MODEL,
            seed=params.seed,
            dialogues=lambda game, n, seed, grid: scripted_dialogues(
                game, n, seed, grid, params.reward_rule(game)
            ),
            progress=progress,
            tracking=Tracking(params.trackers, "base_model"),
        )


if __name__ == "__main__":
    run_stage(main)
