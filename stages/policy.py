"""Train one category's policy: offline on the credit of its games' actions, then online."""

from typing import Any

from aria_dvc.learning.online import train_online
from aria_dvc.learning.policy import train_policy
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import category_frames, nothing_to_train
from aria_dvc.pipeline.online import OnlineGames
from aria_dvc.pipeline.progress import progress_bar
from aria_dvc.pipeline.stage import run_stage


def main(params: Params, category: str) -> None:
    out = paths.policy(category)
    frames = category_frames(params, category, params.policy.max_episodes)
    if not frames:
        nothing_to_train(out, category)
        return
    options: dict[str, Any] = {
        "seed": params.seed,
        "trust_remote_code": params.base_model.trust_remote_code,
    }
    with progress_bar(f"policy {category}") as progress:
        train_policy(params.policy, frames, paths.BASE_MODEL, out, progress=progress, **options)
    if not params.policy.online.iterations:
        return
    games = OnlineGames(params, category, paths.BASE_MODEL)
    with progress_bar(f"policy {category}, online") as progress:
        train_online(
            params.policy,
            params.reward_model,
            paths.BASE_MODEL,
            out,
            paths.reward_model(category),
            out,
            rollout=games.rollout,
            aggregate=games.aggregate,
            progress=progress,
            **options,
        )


if __name__ == "__main__":
    run_stage(main)
