"""Train one category's policy: offline on the credit of its games' actions, then online."""

from __future__ import annotations

from aria_dvc.learning.examples import GameFrames
from aria_dvc.models.source import ModelSource
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import category_frames, nothing_to_train
from aria_dvc.pipeline.progress import progress_bar
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.names import PLAYABLE


def main(params: Params, category: str) -> None:
    frames = category_frames(params, category, params.policy.max_episodes, params.policy.players)
    if frames:
        train(params, category, frames)
    else:
        nothing_to_train(paths.policy(category), category)


def train(params: Params, category: str, frames: list[GameFrames]) -> None:
    from aria_dvc.learning.policy import train_policy

    base = ModelSource(paths.BASE_MODEL, params.base_model.trust_remote_code)
    out = paths.policy(category)
    with progress_bar(f"policy {category}") as progress:
        train_policy(params.policy, frames, base, out, seed=params.seed, progress=progress)
    if params.policy.online.iterations and PLAYABLE.keys() & params.games_of(category):
        go_online(params, category, base)


def go_online(params: Params, category: str, base: ModelSource) -> None:
    from aria_dvc.learning.online import train_online
    from aria_dvc.pipeline.online import OnlineGames

    games = OnlineGames(params, category, paths.BASE_MODEL)
    with progress_bar(f"policy {category}, online") as progress:
        train_online(
            params.policy,
            params.reward_model,
            base,
            paths.policy(category),
            paths.reward_model(category),
            paths.policy(category),
            rollout=games.rollout,
            aggregate=games.aggregate,
            inputs=games.inputs(),
            seed=params.seed,
            progress=progress,
        )


if __name__ == "__main__":
    run_stage(main)
