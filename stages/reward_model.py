"""Fit one category's reward model: the credit of an action from its history and text."""

from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import category_frames, nothing_to_train
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.progress import progress_bar

UNUSED = "nothing uses it: see online.credit and reward_model.train in params.yaml"


def main(params: Params, category: str) -> None:
    out = paths.reward_model(category)
    if not params.trains_reward_model():
        nothing_to_train(out, UNUSED)
        return
    frames = category_frames(params, category, params.reward_model.max_episodes)
    from aria_dvc.learning.reward_model import train_reward_model
    from aria_dvc.learning.trackers import Tracking

    with progress_bar(f"reward model {category}") as progress:
        train_reward_model(
            params.reward_model,
            params.pace,
            frames,
            paths.base_model(params),
            out,
            seed=params.seed,
            progress=progress,
            tracking=Tracking(params.trackers, f"reward_model-{category}"),
        )


if __name__ == "__main__":
    run_stage(main, "category")
