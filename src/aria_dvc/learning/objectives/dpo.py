"""Which sequences are compared: whole episodes (ETO, Song et al. 2024), or two actions after one
history (IPR, Xiong et al. 2024). Both only within a group: one configuration, one role.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from aria_dvc.learning.advantages import EQUAL, actions, all_advantages
from aria_dvc.learning.examples import Example, Key, LogFrames, keyed_rows
from aria_dvc.learning.objectives.base import Figures, trainable
from aria_dvc.learning.objectives.pairs import Pair, PairObjective, best_with_worst, only

Group = tuple[str, str, str]  # log, group_id, role


class TrajectoryDpo(PairObjective):
    """An episode with more reward against one with less, over all own turns.

    An episode that is too long for one sequence is in no pair.
    """

    def pairs(
        self, frames: Sequence[LogFrames], examples: Sequence[Example]
    ) -> tuple[list[Pair], Figures]:
        groups, finals = groups_of(frames), all_finals(frames)
        ranked: dict[Group, list[tuple[float, Example]]] = defaultdict(list)
        parts = _by_dialogue(examples)
        for example, *others in parts:
            kept = trainable(example, finals)
            if kept and not others:
                key = example.keys[kept[0]]
                ranked[groups[key]].append((finals[key], only(example, kept)))
        found = [Pair(*pair) for group in ranked.values() for pair in best_with_worst(group, EQUAL)]
        figures = _spread([[value for value, _ in group] for group in ranked.values()])
        return found, {**figures, "episodes_in_parts": float(sum(len(p) > 1 for p in parts))}


class StepDpo(PairObjective):
    """After the same history, an action with more credit against one with less.

    The credit of one action after one history is the mean over the group's episodes that have it:
    with the credit `discounted` a Monte-Carlo estimate.
    """

    def pairs(
        self, frames: Sequence[LogFrames], examples: Sequence[Example]
    ) -> tuple[list[Pair], Figures]:
        groups, credits = groups_of(frames), all_advantages(frames, self.params.credit, "return")
        said: dict[tuple[Group, bytes], dict[bytes, list[_Said]]] = {}
        for example in examples:
            for place in trainable(example, credits):
                key = example.keys[place]
                history, words = _tokens(example, place)
                options = said.setdefault((groups[key], history), defaultdict(list))
                options[words].append(_Said(credits[key], example, place))
        choices = [_ranked(options) for options in said.values() if len(options) > 1]
        found = [Pair(*pair) for ranked in choices for pair in best_with_worst(ranked, EQUAL)]
        values = [[value for value, _ in ranked] for ranked in choices]
        return found, {"histories_met_again": float(len(choices)), **_spread(values)}


class _Said(NamedTuple):
    """An action of an example, and its credit."""

    credit: float
    example: Example
    place: int


def _ranked(options: dict[bytes, list[_Said]]) -> list[tuple[float, Example]]:
    """Every distinct action after one history, by its mean credit."""
    return [
        (float(np.mean([one.credit for one in same])), only(same[0].example, [same[0].place]))
        for same in options.values()
    ]


def _tokens(example: Example, place: int) -> tuple[bytes, bytes]:
    """The ids before an action, and its own."""
    own = np.flatnonzero(example.action == place)
    ids = example.input_ids
    return ids[: own[0]].tobytes(), ids[own[0] : own[-1] + 1].tobytes()


def groups_of(frames: Sequence[LogFrames]) -> dict[Key, Group]:
    """The group of every action."""
    return {
        key: (log.name, row.group_id, row.role)
        for log in frames
        for key, row in keyed_rows(log.name, actions(log))
    }


def all_finals(frames: Sequence[LogFrames]) -> dict[Key, float]:
    """The final reward of every action's role."""
    return all_advantages(frames, "terminal", "return")


def _by_dialogue(examples: Sequence[Example]) -> list[list[Example]]:
    """The examples of one episode and role together; they follow each other."""

    def dialogue(example: Example) -> tuple[str, str, str]:
        return example.log, example.episode_id, example.role

    return [list(parts) for _, parts in groupby(examples, key=dialogue)]


def _spread(groups: Sequence[Sequence[float]]) -> Figures:
    """How many groups there are, and how many without two different values."""
    flat = sum(max(values) - min(values) <= EQUAL for values in groups)
    return {"groups": float(len(groups)), "groups_without_spread": float(flat)}
