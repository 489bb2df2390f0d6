"""Go on training one variant of a category's policy: play, credit the games, update."""

from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import nothing_to_train
from aria_dvc.pipeline.online import OnlineGames
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.progress import progress_bar


def main(params: Params, variant: str, category: str) -> None:
    out = paths.online(variant, category)
    if not params.games_of(category):
        nothing_to_train(out, "no log of the category is of a game that can be played")
        return
    from aria_dvc.learning.online import train_online
    from aria_dvc.learning.trackers import Tracking

    params = params.model_copy(update={"online": params.online.course_of(category)})
    games = OnlineGames(params, category)
    with progress_bar(f"online {variant}, {category}") as progress:
        train_online(
            params.variant(variant),
            params.online,
            params.reward_model,
            params.pace,
            paths.base_model(params),
            paths.policy(variant, category),
            paths.reward_model(category),
            out,
            rollout=games.rollout,
            aggregate=games.aggregate,
            inputs=games.inputs(),
            seed=params.seed,
            progress=progress,
            tracking=Tracking(params.trackers, f"online-{category}-{variant}"),
        )


if __name__ == "__main__":
    run_stage(main, "online_variant", "category")
