"""PPO (Schulman et al. 2017) with one time step an action, as SPA-RL needs it.

GAE runs over a role's actions with gamma 1, not over tokens, where lambda would forget a reward
within a few dozen. The value head (see value_head.py) is fitted at the start of every iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.learning.advantages import EQUAL, actions, advantages
from aria_dvc.learning.batches import Paired
from aria_dvc.learning.examples import Example, Key, LogFrames, keys_of, with_values
from aria_dvc.learning.objectives.base import Figures, Material, trainable
from aria_dvc.learning.objectives.clipped import ClippedRatio
from aria_dvc.learning.objectives.scoring import Scorer
from aria_dvc.learning.objectives.value_head import Steps, fitted_values, rewards_to_come
from aria_dvc.learning.own_actions import not_sampled

if TYPE_CHECKING:
    from aria_dvc.settings.training import PolicyParams

TERMINAL = "terminal"  # the credit that is the final reward, paid at the last turn


class Ppo(ClippedRatio):
    """The clipped ratio on GAE of per-turn rewards.

    A turn's reward is q - v of its credit, where v is the q of the turn before, so that the rewards
    add up to the outcome (`progress`: the turn's contribution); with the credit `terminal` it is
    the outcome at the last turn and 0 before. Plus `ppo.grounding` where the environment carried
    the turn out.
    """

    def __init__(self, params: PolicyParams) -> None:
        super().__init__(params)
        self._groups: dict[tuple[str, str], str] = {}  # (log, episode) -> group

    def tabled(self, frames: Sequence[LogFrames]) -> tuple[dict[Key, float], Figures]:
        """Every turn's reward, from which `ready` makes advantages."""
        paid: dict[Key, float] = {}
        for log in frames:
            paid |= turn_rewards(log, self.params.credit, self.params.ppo.grounding)
            table = actions(log)
            groups = zip(table["episode_id"], table["group_id"], strict=True)
            self._groups |= {(log.name, str(e)): f"{log.name}/{g}" for e, g in groups}
        return paid, {}

    def material(
        self, frames: Sequence[LogFrames], examples: Sequence[Example], seed: int
    ) -> Material:
        paid, figures = self.tabled(frames)
        trained = {e.keys[place] for e in examples for place in trainable(e, paid)}
        trained -= {key for log in frames for key in not_sampled(log)}
        data = with_values(examples, gathered(frames, paid, trained), keep_zero=True)
        return Material(
            data, figures, further=[[*dialogue, group] for dialogue, group in self._groups.items()]
        )

    def ready(self, material: Material, scorer: Scorer) -> Material:
        data: list[Paired] = list(material.data)
        steps = self._steps(data, scorer)
        values, r2 = fitted_values(steps)
        found = gae(steps, values, self.params.ppo.lam)
        known = dict(zip(steps.keys, found.tolist(), strict=True))
        examples = [example for example, _ in data]
        data = with_values(examples, known, keep_zero=self.params.kl > 0)
        figures = {**material.figures, "value_r2": r2}
        return super().ready(Material(data, figures), scorer)

    def _steps(self, data: Sequence[Paired], scorer: Scorer) -> Steps:
        """The turns of all dialogues, one dialogue after the other."""
        read = scorer.read([example for example, _ in data], hidden=True)
        rows: dict[tuple[str, str, Key], tuple[float, np.ndarray]] = {}
        for (example, values), reading in zip(data, read, strict=True):
            present = np.unique(example.action[example.action >= 0]).tolist()
            for place, state in zip(present, reading.hidden, strict=True):
                if np.isfinite(values[place]):
                    key = example.keys[place]
                    rows[example.episode_id, example.role, key] = (float(values[place]), state)
        order = sorted(rows, key=lambda row: (row[2][0], *row))
        return Steps(
            keys=[key for _, _, key in order],
            dialogues=[(key[0], episode, role) for episode, role, key in order],
            groups=[self._groups[key[0], episode] for episode, _, key in order],
            rewards=np.array([rows[row][0] for row in order]),
            states=np.array([rows[row][1] for row in order]),
        )


def turn_rewards(log: LogFrames, credit: str, grounding: float) -> dict[Key, float]:
    """What every action of a log is paid (see `Ppo`).

    Raises:
        AriaError: the credit has no values of histories.
    """
    paid = _outcomes(log) if credit == TERMINAL else advantages(log, credit, "value")
    carried_out = _grounded(log) if grounding else set()
    return {key: reward + grounding * (key in carried_out) for key, reward in paid.items()}


def gathered(
    frames: Sequence[LogFrames], paid: Mapping[Key, float], trained: Set[Key]
) -> dict[Key, float]:
    """What is paid to the actions that are trained.

    Of those that are not (followed by more of the same speaker, re-asked, too long) it goes to the
    next one of the episode and role that is, else to the last: the outcome is never lost.
    """
    found: dict[Key, float] = {}
    for log in frames:
        for _, rows in actions(log).groupby(["episode_id", "role"], sort=False):
            keys = sorted(keys_of(log.name, rows))
            own = [key for key in keys if key in trained]
            places = np.searchsorted([key[2] for key in own], [key[2] for key in keys])
            for key, place in zip(keys, places.clip(max=len(own) - 1).tolist(), strict=True):
                if own:
                    found[own[place]] = found.get(own[place], 0.0) + paid[key]
    return found


def _outcomes(log: LogFrames) -> dict[Key, float]:
    """The final reward for a role's last action, 0 for the others."""
    table = actions(log)
    last = table.groupby(["episode_id", "role"])["position"].transform("max")
    paid = table["final"].where(table["position"] == last, 0.0)
    return dict(zip(keys_of(log.name, table), paid.tolist(), strict=True))


def _grounded(log: LogFrames) -> set[Key]:
    """What the environment carried out, as far as anybody knows."""
    if "grounded" not in log.turns:
        return set()
    return set(keys_of(log.name, log.turns[log.turns["grounded"] == 1.0]))


def gae(steps: Steps, values: np.ndarray, lam: float) -> np.ndarray:
    """Generalised advantages with gamma 1: A_t = d_t + lam A_(t+1), d_t = r_t + V_(t+1) - V_t.

    V and A after a dialogue's last turn are 0. What is left of rounding counts as 0.

    Args:
        values: (n,) V of the histories.

    Returns:
        (n,) float64.
    """
    found = np.zeros(len(values))
    for t in reversed(range(len(values))):
        goes_on = t + 1 < len(values) and steps.dialogues[t + 1] == steps.dialogues[t]
        value, advantage = (values[t + 1], found[t + 1]) if goes_on else (0.0, 0.0)
        found[t] = steps.rewards[t] + value - values[t] + lam * advantage
    largest = np.abs(rewards_to_come(steps)).max(initial=0.0)
    found[np.abs(found) <= EQUAL * largest] = 0.0
    return found
