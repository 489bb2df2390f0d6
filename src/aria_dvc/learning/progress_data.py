"""What the progress estimator is told: outcomes of other folds, and dialogues in one piece."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from aria_dvc.chat import Renderer
from aria_dvc.credit.methods.base import by_role, episode_folds
from aria_dvc.credit.methods.units import mean_outcomes, outcome_means, units_of
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log
from aria_dvc.learning.examples import (
    NO_ACTION,
    Example,
    Key,
    LogFrames,
    build_examples,
    frames_dialogues,
    keys_of,
)

Dialogue = tuple[str, str, str]  # (log, episode_id, role)


@dataclass(frozen=True)
class Outcomes:
    """One log's outcomes, and what may be known of them. fold: (n,) of each utterance."""

    name: str
    log: Log
    fold: np.ndarray

    @classmethod
    def of(cls, frames: LogFrames, folds: int, seed: int) -> Outcomes:
        """Raises AriaError for a log of which nothing can be held out."""
        log = Log.of(frames.turns)
        if log.acting_episodes < 2:
            raise AriaError(
                f"progress: {frames.name} has a single episode with actions, which cannot judge "
                "itself: give a longer log, or set progress.train: false"
            )
        return cls(frames.name, log, episode_folds(log, folds, seed))

    @property
    def keys(self) -> list[Key]:
        """The A actions."""
        return keys_of(self.name, self.log.action_frame())

    def known(self, fold: int) -> tuple[Log, dict[str, float]]:
        """The episodes of the other folds, and the mean outcome of each role in them."""
        rest = self.log.where(self.fold != fold)
        return rest, outcome_means(rest, units_of(rest))

    def surplus(self, fold: int) -> dict[Dialogue, float]:
        """What the outcomes of the other folds are above the means of their roles."""
        rest, means = self.known(fold)
        units = units_of(rest)
        above = rest.outcomes[units.first] - by_role(means, units.role)
        assert rest.episode_ids is not None
        names = zip(rest.episode_ids[units.episode], units.role, strict=True)
        return {(self.name, str(e), str(r)): v for (e, r), v in zip(names, above, strict=True)}

    def expected(self) -> np.ndarray:
        """(A,) float64: the mean outcome of the action's role in the other folds."""
        fold, found = self.fold[self.log.actions], np.empty(len(self.log.actions))
        for held in np.unique(self.fold):
            means = mean_outcomes(self.known(held)[1], self.log)
            found[fold == held] = means[fold == held]
        return found

    def table(self, found: Mapping[Key, float]) -> pd.DataFrame:
        """Columns of CONTRIBUTIONS. An action that more of the same speaker follows is one with
        it, and the last of them has the contribution."""
        contributions = np.array([found.get(key, 0.0) for key in self.keys])
        q = self.expected() + units_of(self.log).running(contributions)
        return self.log.action_frame()[["episode_id", "position"]].assign(
            contribution=contributions, reward=q, value=q - contributions
        )


def whole_dialogues(
    frames: Sequence[LogFrames], renderer: Renderer, max_tokens: int
) -> list[Example]:
    """One example an episode and acting role, with its credited actions alone.

    Raises:
        AriaError: a dialogue is longer: what is left of it would have to add up to the outcome.
    """
    examples = build_examples(frames_dialogues(frames), renderer, sys.maxsize).items
    lengths = np.array([len(example) for example in examples])
    if (lengths > max_tokens).any():
        raise AriaError(
            f"progress.max_tokens: {int((lengths > max_tokens).sum())} of {len(lengths)} dialogues "
            f"are longer than {max_tokens} tokens, and contributions add up over whole dialogues: "
            f"set it to {int(lengths.max())} at least"
        )
    acting = [(log.name, log.turns[log.turns["is_action"]]) for log in frames]
    known = {key for name, turns in acting for key in keys_of(name, turns)}
    found = [_credited(example, known) for example in examples]
    return [example for example in found if example.keys]


def _credited(example: Example, known: set[Key]) -> Example:
    """The example without the actions that get no credit."""
    places = [place for place, key in enumerate(example.keys) if key in known]
    new = np.full(len(example.keys) + 1, NO_ACTION, dtype=np.int32)  # its last entry is NO_ACTION's
    new[places] = np.arange(len(places))
    keys = tuple(example.keys[place] for place in places)
    return replace(example, action=new[example.action], keys=keys)
