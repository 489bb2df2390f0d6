"""A critic learned by temporal differences, offline: double Q(h, a) and V(h) (ArCHer).

    Q_i -> r + gamma V'_i(h'),   V_i -> Q'_i(h, a),   q = min Q_i,   v = min V_i

Small networks on sentence vectors; ' marks slowly moving copies. They predict what the turn index
leaves of the return, from zero on, so that a log without any difference has none, and in units of
its standard deviation, so that the scale of the reward changes nothing. A quarter of the episodes,
held out at first, tells after how many steps to stop, and which share of the networks' answers is
worth believing: on short logs they learn single episodes by heart. Out of fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Self

import numpy as np

from aria_dvc.credit.methods.base import episode_folds
from aria_dvc.credit.methods.features import mean_rows, views_of
from aria_dvc.credit.methods.turn_index import TurnIndexCredit
from aria_dvc.credit.methods.units import discounts, units_of
from aria_dvc.credit.variance import ROUNDING
from aria_dvc.intentions.log import Log

if TYPE_CHECKING:
    import torch

    Pair = list[torch.Tensor]  # of two networks, which are computed at once

DIRECTIONS = 32  # of most variance, which a vector is reduced to
NOISE = 1e-3  # of the widest direction's deviation; what is narrower may be rounding
BATCH = 512
DECAY = 0.03
STEPS_AT_LEAST = 400  # however short the log
EVERY = 50  # steps, it is looked whether to stop
PARTS = 4  # of the episodes, one of which tells when
PATIENCE = 150  # steps without a better prediction, after which nobody looks further


@dataclass(frozen=True)
class Transitions:
    """Of A actions: (A, s) state, (A, s + d) both state and action, float32; (A,) next own action
    or -1, int64; (A,) discount of what that one is worth, (A,) reward, and the (A,) turn-index
    value, float64, so that their difference is in the networks' unit before it is rounded."""

    state: torch.Tensor
    both: torch.Tensor
    following: torch.Tensor
    discount: torch.Tensor
    reward: torch.Tensor
    base: torch.Tensor


class CriticCredit:
    """Offline double critic.

    v is a network of its own that sees the history alone. The discount is the log's.

    Args:
        hidden: units of each of two layers. epochs: passes over the actions at most. rate: of
            Adam. tau: share by which the slow copies follow. seed: of weights and batches.

    Attributes:
        unit_: of the networks' answers: the deviation of what the turn index leaves of the returns.
        steps_: after which training stopped; 0 leaves the turn index alone.
        believed_: share of what the networks say that counts, for q and v, from 0 to 1.
    """

    in_sample = False
    uses_labels = False
    uses_vectors = True

    def __init__(
        self,
        hidden: int = 64,
        epochs: int = 20,
        rate: float = 1e-3,
        tau: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.hidden, self.epochs, self.rate = hidden, epochs, rate
        self.tau, self.seed = tau, seed

    def fit(self, data: Log) -> Self:
        self.turn_index_ = TurnIndexCredit().fit(data)
        self.roles_ = np.unique(data.role[data.actions])
        self.turns_ = float(data.turn[data.actions].max())
        vectors = data.vectors.astype(np.float64)
        self.centre_ = vectors.mean(axis=0)
        gram = (vectors - self.centre_).T @ (vectors - self.centre_)
        self.axes_ = np.linalg.eigh(gram)[1][:, ::-1][:, :DIRECTIONS]
        spread = ((vectors - self.centre_) @ self.axes_).std(axis=0)
        real = spread > NOISE * spread.max(initial=0.0)
        self.scale_ = np.divide(1.0, spread, out=np.zeros_like(spread), where=real)
        self.unit_ = _unit(data.targets, self.turn_index_.q(data))
        known = self._transitions(data)
        self.steps_, self.believed_ = self._stop(known, data)
        self._train(known, np.arange(len(data.actions)), self.steps_)
        return self

    def q(self, data: Log) -> np.ndarray:
        state, action = self._inputs(data)
        both = np.concatenate([state, action], axis=1)
        share = self.believed_[0] * self.unit_
        return self.turn_index_.q(data) + share * _least(self.critics_, both)

    def v(self, data: Log) -> np.ndarray:
        state = self._inputs(data)[0]
        share = self.believed_[1] * self.unit_
        return self.turn_index_.q(data) + share * _least(self.values_, state)

    def _inputs(self, data: Log) -> tuple[np.ndarray, np.ndarray]:
        """(A, s) state: last, heard, own, turn, role; (A, d) action. float64."""
        views = views_of(data)
        vectors = (data.vectors - self.centre_) @ self.axes_ * self.scale_
        parts = [mean_rows(getattr(views, name), vectors) for name in ("last", "heard", "own")]
        role = data.role[data.actions][:, None] == self.roles_[None]
        turn = (views.turn / self.turns_)[:, None]
        state = np.concatenate([*parts, turn, role.astype(np.float64)], axis=1)
        return state, mean_rows(views.said, vectors)

    def _transitions(self, data: Log) -> Transitions:
        import torch

        state, action = self._inputs(data)
        following = units_of(data).following()
        discount = discounts(data, following)
        reward = np.where(following < 0, data.targets, 0.0)
        base = self.turn_index_.q(data)
        both = np.concatenate([state, action], axis=1)
        seen = (state.astype(np.float32), both.astype(np.float32))
        columns = (*seen, following, discount, reward, base)
        return Transitions(*(torch.from_numpy(column) for column in columns))

    def _stop(self, known: Transitions, data: Log) -> tuple[int, tuple[float, float]]:
        """`steps_` and `believed_` by which held-out returns are predicted best."""
        if data.acting_episodes < 2:
            return 0, (0.0, 0.0)
        held = episode_folds(data, PARTS, self.seed)[data.actions] == 0
        left = (data.targets[held] - known.base.numpy()[held]) / self.unit_
        state, both = known.state[held].numpy(), known.both[held].numpy()
        tried = [(float((left**2).sum()), 0, (0.0, 0.0))]

        def look(done: int) -> bool:
            q, v = _least(self.critics_, both), _least(self.values_, state)
            shares = _believed(q, left), _believed(v, left)
            tried.append((float(((left - shares[0] * q) ** 2).sum()), done, shares))
            return done - min(tried, key=_error)[1] >= PATIENCE

        most = max(self.epochs * -(-len(held) // BATCH), STEPS_AT_LEAST)
        self._train(known, np.flatnonzero(~held), most, look)
        return min(tried, key=_error)[1:]

    def _train(
        self,
        data: Transitions,
        rows: np.ndarray,
        steps: int,
        look: Callable[[int], bool] | None = None,
    ) -> None:
        """Learn from some actions, from new networks on, until `look`, told the steps, says so."""
        import torch

        # of its own: folds are fitted side by side, and torch's generator is one for all threads
        draws = torch.Generator().manual_seed(self.seed)
        self.critics_ = _pair(data.both.shape[1], self.hidden, draws)
        self.values_ = _pair(data.state.shape[1], self.hidden, draws)
        slow = _still(self.critics_), _still(self.values_)
        learned, following = [*self.critics_, *self.values_], [*slow[0], *slow[1]]
        follow = torch.optim.swa_utils.get_ema_multi_avg_fn(1.0 - self.tau)
        adam = torch.optim.AdamW(learned, lr=self.rate, weight_decay=DECAY, fused=True)
        for done, batch in enumerate(_batches(torch.from_numpy(rows), steps, draws), start=1):
            loss = self._loss(data, batch, *slow)
            adam.zero_grad()
            loss.backward()
            adam.step()
            follow(following, learned, None)
            if look is not None and done % EVERY == 0 and look(done):
                return

    def _loss(
        self, data: Transitions, rows: torch.Tensor, slow_critics: Pair, slow_values: Pair
    ) -> torch.Tensor:
        """Squared errors of all four networks on some actions."""
        import torch

        state, both, following = data.state[rows], data.both[rows], data.following[rows]
        after, ends = following.clamp(min=0), following < 0
        with torch.no_grad():
            later = data.base[after] + self.unit_ * _answers(slow_values, data.state[after])
            target = data.reward[rows] + torch.where(ends, 0.0, data.discount[rows] * later)
            left = ((target - data.base[rows]) / self.unit_).float()
            worth = _answers(slow_critics, both)
        of_critics = ((_answers(self.critics_, both) - left) ** 2).mean(dim=1)
        of_values = ((_answers(self.values_, state) - worth) ** 2).mean(dim=1)
        return (of_critics + of_values).sum()


def _unit(targets: np.ndarray, base: np.ndarray) -> float:
    """The standard deviation of what is left of returns; 1 where that is equal but for rounding."""
    spread = float((targets - base).std())
    least = float(np.sqrt(ROUNDING)) * float(np.abs(targets).max(initial=0.0))
    return spread if spread > least else 1.0


def _error(tried: tuple[float, int, tuple[float, float]]) -> float:
    return tried[0]


def _batches(rows: torch.Tensor, steps: int, draws: torch.Generator) -> Iterator[torch.Tensor]:
    """So many batches, from passes over the rows in random order."""
    import torch

    passes = -(-steps * BATCH // len(rows)) + 1
    orders = (torch.randperm(len(rows), generator=draws) for _ in range(passes))
    return islice((part for order in orders for part in rows[order].split(BATCH)), steps)


def _least(pair: Pair, inputs: np.ndarray) -> np.ndarray:
    """(A,) the smaller answer of two, in float64: the same however many are asked."""
    import torch

    with torch.no_grad():
        exact = [weights.double() for weights in pair]
        found = _answers(exact, torch.from_numpy(inputs).double())
    least: np.ndarray = found.min(dim=0).values.numpy()
    return least


def _believed(said: np.ndarray, left: np.ndarray) -> float:
    """The share of what is said that comes nearest to what is left, from 0 to 1."""
    size = float(said @ said)
    return float(np.clip(said @ left / size, 0.0, 1.0)) if size > 0 else 0.0


def _pair(inputs: int, hidden: int, draws: torch.Generator) -> Pair:
    """Weights and biases of two networks of three layers, drawn as torch's `Linear` draws them, the
    last ones of zeros."""
    import torch

    pair = []
    for before in (inputs, hidden):
        most = before**-0.5
        for rows in (before, 1):
            weights = torch.empty(2, rows, hidden)
            pair.append(weights.uniform_(-most, most, generator=draws))
    pair += [torch.zeros(2, hidden, 1), torch.zeros(2, 1, 1)]
    return [weights.requires_grad_() for weights in pair]


def _still(pair: Pair) -> Pair:
    return [weights.detach().clone() for weights in pair]


def _answers(pair: Pair, inputs: torch.Tensor) -> torch.Tensor:
    """(2, n) what either network says of n inputs."""
    import torch

    first, first_bias, second, second_bias, last, last_bias = pair
    seen = torch.baddbmm(first_bias, inputs.expand(2, -1, -1), first).relu()
    seen = torch.baddbmm(second_bias, seen, second).relu()
    return torch.baddbmm(last_bias, seen, last)[:, :, 0]
