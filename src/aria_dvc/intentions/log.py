"""One log in memory: what is said, by whom, and what it was worth, as aligned arrays.

Clustering, credit and the command line all read this; whatever follows from its columns is a view
that is computed at the first look and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.intentions.answers import answer_kinds, clustered_rows
from aria_dvc.intentions.distinct import Distinct, find_distinct
from aria_dvc.records.turns import discounted_returns, own_turns, positions

if TYPE_CHECKING:
    import pandas as pd

_ROWS = ("role", "is_action", "text", "vectors", "labels", "returns")


@dataclass(frozen=True, eq=False)
class Log:
    """n utterances of E episodes of one log, an episode's rows together in the order spoken.

    episode: (n,) int64, 0..E-1 in order of appearance.
    role: (n,) str.
    is_action: (n,) bool; A = is_action.sum() rows get a credit.
    text: (n,) str objects.
    vectors: (n, d) float32; d is 0 where nothing is embedded.
    labels: (n,) integers, the intention of each utterance at the chosen k; 0 before the choice.
    returns: (n,) float64, R(h_t, a_t) of the actions (paper sec. 3.3), NaN where there is none.
    game: what was played.
    group: (E,) int64, equal for episodes of one configuration, task or prompt; None where every
        episode is a group of its own. Folds are by it.
    final: (n,) float64, the role's undiscounted reward R; None where only returns are known.
    gamma: the discount per own turn that `returns` have.
    left_out: (n,) bool, moves that get no credit whoever makes them; None where there are none.
    target: (E,) str objects, what was to be guessed; None where no episode says it.
    episode_ids, group_ids: (E,) str objects. position: (n,) int64, ascending in an episode. They
        name episodes, groups and utterances in what is written; nothing is computed from them.
    """

    episode: np.ndarray
    role: np.ndarray
    is_action: np.ndarray
    text: np.ndarray
    vectors: np.ndarray
    labels: np.ndarray
    returns: np.ndarray
    game: str = ""
    episode_ids: np.ndarray | None = None
    position: np.ndarray | None = None
    group: np.ndarray | None = None
    final: np.ndarray | None = None
    gamma: float = 1.0
    group_ids: np.ndarray | None = None
    left_out: np.ndarray | None = None
    target: np.ndarray | None = None

    @classmethod
    def of(cls, turns: pd.DataFrame, vectors: np.ndarray | None = None, gamma: float = 1.0) -> Log:
        """A turns table (see records/schemas.py) and its vectors.

        Args:
            vectors: (n, d) float32, one row a row of `turns`, or None for none.
            gamma: discount of the returns; what looks at no returns may leave it out.

        Raises:
            AriaError: another number of vectors, or rows out of order.
        """
        import pandas as pd

        n = len(turns)
        if vectors is None:
            vectors = np.zeros((n, 0), np.float32)
        if len(vectors) != n:
            raise AriaError(f"{n} turns but {len(vectors)} embeddings: run embed again")
        episode, names = pd.factorize(turns["episode_id"])
        position = turns["position"].to_numpy(np.int64)
        _check_order(episode, position)
        is_action = turns["is_action"].to_numpy(dtype=bool)
        reward, turn, total = (turns[name].to_numpy() for name in ("reward", "turn", "turns"))
        returns = discounted_returns(reward, turn, total, gamma)
        return cls(
            episode.astype(np.int64),
            turns["role"].to_numpy(dtype=object).astype(str),
            is_action,
            turns["text"].to_numpy(dtype=object),
            vectors,
            np.zeros(n, np.int64),
            np.where(is_action, returns, np.nan),
            str(turns["game"].iloc[0]) if n else "",
            np.asarray(names, dtype=object),
            position,
            _groups(turns, episode),
            np.where(is_action, reward.astype(np.float64), np.nan),
            gamma,
            _of_episodes(turns, "group_id", episode),
            target=_targets(turns, episode),
        )

    def __len__(self) -> int:
        return len(self.episode)

    @property
    def episodes(self) -> int:
        """E, the number of episodes."""
        return int(self.episode.max(initial=-1)) + 1

    @property
    def acting_episodes(self) -> int:
        """How many episodes have an action."""
        return len(np.unique(self.episode[self.is_action]))

    @cached_property
    def actions(self) -> np.ndarray:
        """(A,) row numbers of the actions."""
        return np.flatnonzero(self.is_action)

    @cached_property
    def told(self) -> object:
        """The same for logs that differ in labels and returns alone, made of this one from now on.

        What depends on neither is kept under it (credit/methods/shared.py).
        """
        return object()

    @property
    def targets(self) -> np.ndarray:
        """(A,) realised returns."""
        return self.returns[self.is_action]

    @cached_property
    def place(self) -> np.ndarray:
        """(n,) int64, 0-based place of each utterance in its episode."""
        return positions(self.episode)

    @cached_property
    def turn(self) -> np.ndarray:
        """(n,) int64, own-turn index of each utterance's speaker, from 1."""
        return own_turns(self.episode, self.role)[0]

    @cached_property
    def _roles(self) -> tuple[np.ndarray, np.ndarray]:
        return np.unique(self.role, return_inverse=True)

    @property
    def role_names(self) -> list[str]:
        """The R roles, sorted."""
        return [str(name) for name in self._roles[0]]

    @property
    def role_codes(self) -> np.ndarray:
        """(n,) int64, place of each utterance's role in `role_names`."""
        return self._roles[1]

    @cached_property
    def clustered(self) -> np.ndarray:
        """(n,) bool: the m utterances that are clustered; the rest have fixed labels."""
        return clustered_rows(self.role, self.is_action, self.game)

    @property
    def points(self) -> np.ndarray:
        """(m, d) float32 vectors of the clustered utterances."""
        return self.vectors if self.clustered.all() else self.vectors[self.clustered]

    @cached_property
    def distinct(self) -> Distinct:
        """The distinct points."""
        return find_distinct(self.points)

    @property
    def answers(self) -> np.ndarray:
        """(n - m,) int64 kinds of the answers that are not clustered (see intentions/answers)."""
        return answer_kinds(self.text[~self.clustered])

    @cached_property
    def utterances(self) -> np.ndarray:
        """(n,) int64, equal where no cut tells them apart: equal vectors, or equal answers.

        Without vectors nothing is known to be equal.
        """
        if not self.vectors.shape[1]:
            return np.arange(len(self))
        codes = np.empty(len(self), np.int64)
        codes[self.clustered] = self.distinct.point
        codes[~self.clustered] = len(self.distinct.first) + self.answers
        return codes

    def where(self, rows: np.ndarray) -> Log:
        """The rows selected by an (n,) mask; episodes are numbered afresh."""
        kept, episode = np.unique(self.episode[rows], return_inverse=True)
        ids = None if self.episode_ids is None else self.episode_ids[kept]
        position = None if self.position is None else self.position[rows]
        group = None if self.group is None else self.group[kept]
        final = None if self.final is None else self.final[rows]
        left_out = None if self.left_out is None else self.left_out[rows]
        names = None if self.group_ids is None else self.group_ids[kept]
        target = None if self.target is None else self.target[kept]
        columns: Any = {name: getattr(self, name)[rows] for name in _ROWS}
        named: Any = {"episode_ids": ids, "position": position, "group": group, "final": final}
        named |= {"group_ids": names, "left_out": left_out, "target": target}
        return replace(self, episode=episode, **named, **columns)

    def with_labels(self, labels: np.ndarray) -> Log:
        """The same log under other (n,) intentions.

        Raises AriaError for another number of them.
        """
        if len(labels) != len(self):
            raise AriaError(f"{len(self)} turns but {len(labels)} labels: run cluster again")
        return self._with(labels=np.asarray(labels, np.int64))

    def with_returns(self, returns: np.ndarray) -> Log:
        """The same log with other (n,) returns, whose last of an episode is its reward."""
        return self._with(returns=returns, final=None)

    @property
    def is_discounted(self) -> bool:
        """Whether some return is known not to be R itself."""
        return self.final is not None and not np.array_equal(
            self.final, self.returns, equal_nan=True
        )

    def undiscounted(self) -> Log:
        """The same log with returns R, whatever the turn."""
        return self._with(returns=self.final, gamma=1.0) if self.is_discounted else self

    @property
    def outcomes(self) -> np.ndarray:
        """(A,) float64 R of the acting role: `final`, else the return of its last action."""
        if self.final is not None:
            return self.final[self.actions]
        rows = self.actions
        pair = self.episode[rows] * len(self.role_names) + self.role_codes[rows]
        last = np.full(self.episodes * len(self.role_names), np.nan)
        last[pair] = self.targets  # of an episode's actions the last one stays
        return last[pair]

    def _with(self, **columns: Any) -> Log:
        """Other labels or returns, on which no kept view depends."""
        other = replace(self, **columns)
        own = {field.name for field in fields(self)}
        other.__dict__.update({k: view for k, view in self.__dict__.items() if k not in own})
        return other

    def without_vectors(self) -> Log:
        """The same log for what looks at none; folds of it cost no copy of them."""
        return replace(self, vectors=self.vectors[:, :0])

    def action_frame(self) -> pd.DataFrame:
        """One row an action: episode_id, position, role, turn, as in the turns table."""
        import pandas as pd

        assert self.episode_ids is not None
        assert self.position is not None
        rows = self.actions
        columns = {
            "episode_id": self.episode_ids[self.episode[rows]],
            "position": self.position[rows].astype(np.int32),
            "role": self.role[rows].astype(object),
            "turn": self.turn[rows].astype(np.int32),
        }
        return pd.DataFrame(columns).astype({"episode_id": "str", "role": "str"})


def joined(logs: Sequence[Log]) -> Log:
    """The episodes of several logs, one after the other, under the first one's game; no names but
    those of targets."""
    starts = np.cumsum([0, *(log.episodes for log in logs)])
    episode = np.concatenate([log.episode + s for log, s in zip(logs, starts, strict=False)])
    columns: Any = {n: np.concatenate([getattr(log, n) for log in logs]) for n in _ROWS}
    group = _joined_groups(logs)
    named: Any = {"episode_ids": None, "position": None, "group": group, "final": None}
    named |= {"group_ids": None, "left_out": None, "target": _joined_targets(logs)}
    return replace(logs[0], episode=episode, **named, **columns)


def _joined_groups(logs: Sequence[Log]) -> np.ndarray | None:
    """(E,) the groups of several logs, no two of which share one; None where no log has any."""
    if all(log.group is None for log in logs):
        return None
    groups = [np.arange(log.episodes) if log.group is None else log.group for log in logs]
    starts = np.cumsum([0, *(int(group.max(initial=-1)) + 1 for group in groups)])
    return np.concatenate([group + s for group, s in zip(groups, starts, strict=False)])


def _joined_targets(logs: Sequence[Log]) -> np.ndarray | None:
    """(E,) the targets of several logs, "" where a log names none; None where no log does."""
    if all(log.target is None for log in logs):
        return None
    return np.concatenate(
        [np.full(log.episodes, "", object) if log.target is None else log.target for log in logs]
    )


def _groups(turns: pd.DataFrame, episode: np.ndarray) -> np.ndarray | None:
    """(E,) int64 codes of the episodes' groups; None where each has its own."""
    import pandas as pd

    names = _of_episodes(turns, "group_id", episode)
    if names is None or not len(names):
        return None
    codes = pd.factorize(names)[0].astype(np.int64)
    return None if len(np.unique(codes)) == len(codes) else codes


def _targets(turns: pd.DataFrame, episode: np.ndarray) -> np.ndarray | None:
    names = _of_episodes(turns, "target", episode)
    return None if names is None or not names.any() else names


def _of_episodes(turns: pd.DataFrame, column: str, episode: np.ndarray) -> np.ndarray | None:
    """(E,) str objects: what a column says in each episode's first row; None without the column."""
    if column not in turns:
        return None
    first = np.flatnonzero(np.r_[True, np.diff(episode) != 0]) if len(turns) else episode
    return np.asarray(turns[column].iloc[first], dtype=object)


def _check_order(episode: np.ndarray, position: np.ndarray) -> None:
    """(n,) episode codes must not come back, and positions must ascend within each."""
    step = np.diff(episode)
    if (step < 0).any() or (np.diff(position)[step == 0] <= 0).any():
        raise AriaError(
            "the utterances of an episode are not together, or not in order, or have a position "
            "twice: sort by episode, position"
        )
