"""Which actions the policy is trained on: those that follow the prompt that training sees."""

from __future__ import annotations

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
)
from aria_dvc.records.tables import records_of

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.chat import Renderer

PPO = "ppo"


def learned_by(method: str, log: LogFrames) -> LogFrames:
    """The log with the rewards that `policy.method` learns from.

    PPO pays what the re-asked turns brought to other turns, and leaves them out itself.
    """
    if method == PPO:
        return log
    return replace(log, rewards=without_reasked(log.rewards, log.episodes))


def without_reasked(rewards: pd.DataFrame, episodes: pd.DataFrame) -> pd.DataFrame:
    """The rows of `rewards` without utterances that came after a re-ask, where that is recorded.

    Those were sampled from a prompt with a hint that is not part of the dialogue, so training
    would score them after another prompt than they were sampled from.
    """
    reasked = _noted(episodes, "reasked")
    keys = zip(rewards["episode_id"], rewards["position"], strict=True)
    kept = np.array([key not in reasked for key in keys], dtype=bool)
    return rewards[kept].reset_index(drop=True)


def reasked(log: LogFrames) -> set[Key]:
    """The utterances that came after a re-ask."""
    return {(log.name, episode, position) for episode, position in _noted(log.episodes, "reasked")}


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


def _noted(episodes: pd.DataFrame, name: Literal["reasked", "cut"]) -> set[tuple[str, int]]:
    """(episode_id, position) of the utterances in one of the record's lists, as in the tables."""
    return {
        (episode, position)
        for episode, record in records_of(episodes).items()
        for position in (record.reasked if name == "reasked" else record.cut)
    }
