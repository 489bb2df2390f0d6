"""Train one variant of a category's policy on the credit of its logs' actions."""

from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import category_frames, nothing_to_train
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.progress import progress_bar


def main(params: Params, variant: str, category: str) -> None:
    policy, out = params.variant(variant), paths.policy(variant, category)
    if policy.method == "none":
        nothing_to_train(out)
        return
    frames = category_frames(params, category, policy.max_episodes, policy.credit, policy.method)
    from aria_dvc.learning.policy import train_policy
    from aria_dvc.learning.trackers import Tracking

    with progress_bar(f"policy {variant}, {category}") as progress:
        train_policy(
            policy,
            params.pace,
            frames,
            paths.base_model(params),
            out,
            seed=params.seed,
            progress=progress,
            tracking=Tracking(params.trackers, f"policy-{category}-{variant}"),
        )


if __name__ == "__main__":
    run_stage(main, "variant", "category")
