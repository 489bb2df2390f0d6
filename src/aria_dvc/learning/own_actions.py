"""Which actions the policy is trained on: what it said itself, after what training sees."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from aria_dvc.learning.examples import (
    NO_ACTION,
    Example,
    Examples,
    Key,
    LogFrames,
    frames_examples,
    keys_of,
)
from aria_dvc.records.tables import records_of

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.chat import Renderer

logger = logging.getLogger(__name__)
PPO = "ppo"
MANY = 0.2
"""More of a log's actions than this share are not left out in silence."""


def learned_by(method: str, log: LogFrames) -> LogFrames:
    """The log with the rewards that `policy.method` learns from.

    PPO pays what the others of them brought to other turns, and leaves them out itself.
    """
    if method == PPO:
        return log
    others = not_sampled(log)
    kept = np.array([key not in others for key in keys_of(log.name, log.rewards)], dtype=bool)
    left_out = np.count_nonzero(~kept)
    if left_out > MANY * len(kept):
        logger.warning(
            "%s: %d of %d actions are not trained: they came after a re-ask (max_reasks), stand in "
            "other words than were sampled (info.reworded) or share a message with other lines",
            *(log.name, left_out, len(kept)),
        )
    return replace(log, rewards=log.rewards[kept].reset_index(drop=True))


def not_sampled(log: LogFrames) -> set[Key]:
    """The actions that were not sampled as training would score them, where that is known.

    One that came after a re-ask followed a hint that is not part of the dialogue; one that was
    reworded is another text; one beside a line of the same role that is no action (a button)
    shares its message with that.
    """
    noted = _noted(log.episodes, "reasked", "reworded")
    beside = keys_of(log.name, log.turns[_beside_others(log.turns)])
    return {(log.name, episode, position) for episode, position in noted}.union(beside)


def _beside_others(turns: pd.DataFrame) -> pd.Series:
    """(n,) bool: the actions whose message (see chat.view) holds a line that is no action."""
    speaker = turns[["episode_id", "role"]]
    message = (speaker != speaker.shift()).any(axis=1).cumsum()
    pure: pd.Series = turns["is_action"].groupby(message).transform("all")
    return turns["is_action"] & ~pure


def sampled_examples(frames: Sequence[LogFrames], renderer: Renderer, max_tokens: int) -> Examples:
    """`frames_examples` of what was sampled: a reply that was cut off has no end to train."""
    examples = frames_examples(frames, renderer, max_tokens)
    ends = len(renderer.end_ids())
    return replace(examples, items=without_unsampled_ends(examples.items, frames, ends))


def without_unsampled_ends(
    examples: Sequence[Example], frames: Sequence[LogFrames], end: int
) -> list[Example]:
    """`examples` whose actions lose their last `end` tokens where these were never sampled.

    A reply that was cut at the limit of tokens has no end of turn of its own.
    """
    cut = {
        (log.name, episode, position)
        for log in frames
        for episode, position in _noted(log.episodes, "cut")
    }
    return [_with_open_ends(example, cut, end) for example in examples] if cut else list(examples)


def _with_open_ends(example: Example, cut: set[Key], end: int) -> Example:
    action = example.action.copy()
    for index, key in enumerate(example.keys):
        tokens = np.flatnonzero(action == index)
        if key in cut and len(tokens) > end:
            action[tokens[-end:]] = NO_ACTION
    return replace(example, action=action)


def _noted(
    episodes: pd.DataFrame, *names: Literal["reasked", "reworded", "cut"]
) -> set[tuple[str, int]]:
    """(episode_id, position) of the utterances in some of the record's lists, as in the tables."""
    return {
        (episode, position)
        for episode, record in records_of(episodes).items()
        for name in names
        for position in getattr(record, name)
    }
