"""A critic learned by temporal differences, offline: double Q(h, a) and V(h) (ArCHer).

    Q_i -> r + gamma V'_i(h'),   V_i -> Q'_i(h, a),   q = min Q_i,   v = min V_i

Small networks on sentence vectors; ' marks slowly moving copies. They predict what the turn index
leaves of the return, from zero on, so that a log without any difference has none. Out of fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from aria_dvc.credit.methods.features import mean_rows, views_of
from aria_dvc.credit.methods.turn_index import TurnIndexCredit
from aria_dvc.credit.methods.units import units_of
from aria_dvc.intentions.log import Log

if TYPE_CHECKING:
    import torch

DIRECTIONS = 32  # of most variance, which a vector is reduced to
NOISE = 1e-3  # of the widest direction's deviation; what is narrower may be rounding
BATCH = 512
DECAY = 0.03
STEPS_AT_LEAST = 400  # however short the log


@dataclass(frozen=True)
class Transitions:
    """Of A actions: (A, s) state, (A, d) action, (A,) next own action or -1, (A,) reward, and the
    (A,) turn-index value. All float32 tensors but `following`, int64."""

    state: torch.Tensor
    action: torch.Tensor
    following: torch.Tensor
    reward: torch.Tensor
    base: torch.Tensor


class CriticCredit:
    """Offline double critic.

    v is a network of its own that sees the history alone. The discount is the log's.

    Args:
        hidden: units of each of two layers. epochs: passes over the actions. rate: of Adam.
        tau: share by which the slow copies follow. seed: of weights and batches.
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
        self._train(self._transitions(data), data.gamma)
        return self

    def q(self, data: Log) -> np.ndarray:
        state, action = self._inputs(data)
        return self._least(self.critics_, np.concatenate([state, action], axis=1), data)

    def v(self, data: Log) -> np.ndarray:
        return self._least(self.values_, self._inputs(data)[0], data)

    def _least(self, networks: list[Any], inputs: np.ndarray, data: Log) -> np.ndarray:
        """(A,) the smaller prediction of two, in float64: the same however many are asked."""
        import torch

        with torch.no_grad():
            given = torch.from_numpy(inputs)
            found = torch.stack([network.double()(given)[:, 0] for network in networks])
        return self.turn_index_.q(data) + found.min(dim=0).values.numpy()

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
        reward = np.where(following < 0, data.outcomes, 0.0)
        base = self.turn_index_.q(data)
        floats = [torch.from_numpy(of.astype(np.float32)) for of in (state, action, reward, base)]
        return Transitions(floats[0], floats[1], torch.from_numpy(following), floats[2], floats[3])

    def _train(self, data: Transitions, gamma: float) -> None:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            wide = data.state.shape[1] + data.action.shape[1]
            self.critics_ = [_network(wide, self.hidden) for _ in range(2)]
            self.values_ = [_network(data.state.shape[1], self.hidden) for _ in range(2)]
            slow = [_copy(network) for network in (*self.critics_, *self.values_)]
            learned = [p for n in (*self.critics_, *self.values_) for p in n.parameters()]
            adam = torch.optim.AdamW(learned, lr=self.rate, weight_decay=DECAY)
            for rows in self._batches(len(data.base)):
                loss = self._loss(data, rows, slow, gamma)
                adam.zero_grad()
                loss.backward()
                adam.step()
                _follow(slow, (*self.critics_, *self.values_), self.tau)

    def _batches(self, count: int) -> list[torch.Tensor]:
        import torch

        per_pass = -(-count // BATCH)
        passes = max(self.epochs, -(-STEPS_AT_LEAST // per_pass))
        return [rows for _ in range(passes) for rows in torch.randperm(count).split(BATCH)]

    def _loss(
        self, data: Transitions, rows: torch.Tensor, slow: list[Any], gamma: float
    ) -> torch.Tensor:
        """Squared errors of all four networks on some actions."""
        import torch

        state, following = data.state[rows], data.following[rows]
        both = torch.cat([state, data.action[rows]], dim=1)
        after, ends = following.clamp(min=0), following < 0
        loss = torch.zeros(())
        for number, (critic, value) in enumerate(zip(self.critics_, self.values_, strict=True)):
            with torch.no_grad():
                later = data.base[after] + slow[2 + number](data.state[after])[:, 0]
                target = data.reward[rows] + torch.where(ends, 0.0, gamma * later)
                worth = slow[number](both)[:, 0]
            loss = loss + ((critic(both)[:, 0] - (target - data.base[rows])) ** 2).mean()
            loss = loss + ((value(state)[:, 0] - worth) ** 2).mean()
        return loss


def _network(inputs: int, hidden: int) -> Any:
    """Two layers and a last one of zeros."""
    from torch import nn

    last = nn.Linear(hidden, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), last
    )


def _copy(network: Any) -> Any:
    from copy import deepcopy

    return deepcopy(network).requires_grad_(False)


def _follow(slow: list[Any], fast: tuple[Any, ...], tau: float) -> None:
    import torch

    with torch.no_grad():
        for copy, network in zip(slow, fast, strict=True):
            for old, new in zip(copy.parameters(), network.parameters(), strict=True):
                old.lerp_(new, tau)
