"""Fit one category's reward model: the credit of an action from its history and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import category_frames, nothing_to_train
from aria_dvc.pipeline.progress import progress_bar
from aria_dvc.pipeline.stage import run_stage

if TYPE_CHECKING:
    from aria_dvc.learning.examples import GameFrames


def main(params: Params, category: str) -> None:
    frames = category_frames(params, category, params.reward_model.max_episodes)
    if frames:
        train(params, category, frames)
    else:
        nothing_to_train(paths.reward_model(category), category)


def train(params: Params, category: str, frames: list[GameFrames]) -> None:
    from aria_dvc.learning.reward_model import train_reward_model
    from aria_dvc.models.source import ModelSource

    with progress_bar(f"reward model {category}") as progress:
        train_reward_model(
            params.reward_model,
            frames,
            ModelSource(paths.BASE_MODEL, params.base_model.trust_remote_code),
            paths.reward_model(category),
            seed=params.seed,
            progress=progress,
        )


if __name__ == "__main__":
    run_stage(main)
