"""The tables that the learning stages read, for all games of a category."""

from __future__ import annotations

from pathlib import Path

from aria_dvc.files import read_parquet, write_json, written_aside
from aria_dvc.learning.examples import GameFrames
from aria_dvc.params import Params
from aria_dvc.pipeline import paths


def category_frames(params: Params, category: str) -> list[GameFrames]:
    """Turns, episodes and rewards of every listed game of `category`.

    The games come from params.yaml, never from what lies in the folders: a game that was taken
    off the list leaves its files behind.
    """
    return [
        GameFrames(
            game,
            read_parquet(paths.turns(game)),
            read_parquet(paths.episodes(game)),
            read_parquet(paths.rewards(game)),
        )
        for game in params.games_of(category)
    ]


def nothing_to_train(out: Path, category: str) -> None:
    """The output folder of a category of which params.games lists no game."""
    with written_aside(out) as aside:
        aside.mkdir(parents=True)
        write_json(aside / "metrics.json", {"games": [], "category": category})
