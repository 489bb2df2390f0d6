"""Train one category's policy on the credit of its games' actions."""

from aria_dvc.learning.policy import train_policy
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import category_frames, nothing_to_train
from aria_dvc.pipeline.progress import progress_bar
from aria_dvc.pipeline.stage import run_stage


def main(params: Params, category: str) -> None:
    out = paths.policy(category)
    frames = category_frames(params, category)
    if not frames:
        nothing_to_train(out, category)
        return
    with progress_bar(f"policy {category}") as progress:
        train_policy(
            params.policy,
            frames,
            paths.BASE_MODEL,
            out,
            seed=params.seed,
            trust_remote_code=params.base_model.trust_remote_code,
            progress=progress,
        )


if __name__ == "__main__":
    run_stage(main)
