"""Have a language model say what every action of one category contributes to the outcome."""

from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import nothing_to_train, outcome_frames
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.progress import progress_bar

UNUSED = "progress.train is false in params.yaml"


def main(params: Params, category: str) -> None:
    out = paths.progress(category)
    if not params.progress.train:
        nothing_to_train(out, UNUSED)
        return
    frames = outcome_frames(params, category)
    from aria_dvc.learning.progress import train_progress
    from aria_dvc.learning.trackers import Tracking

    with progress_bar(f"progress {category}") as progress:
        train_progress(
            params.progress,
            params.reward_model.lora,
            params.pace,
            frames,
            paths.base_model(params),
            out,
            seed=params.seed,
            progress=progress,
            tracking=Tracking(params.trackers, f"progress-{category}"),
        )


if __name__ == "__main__":
    run_stage(main, "category")
