"""Bargaining strategies on shares of what is to be divided, the same for both adversarial games.

A share of 1 is everything; a strategy answers an `Observation` with the share it demands next, or
None to accept the standing offer. Discounts follow sec. 3.1 of GLEE; without discounts they are 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from aria_dvc.records.names import MIXTURES


@dataclass(frozen=True)
class Observation:
    """What one player knows when it moves.

    round: round of the standing offer, 0 at the start.
    horizon: the last round, None where it is not told.
    received, made: own shares in the rival's and in the own offers so far, oldest first.
    step: the share between one offer that can be made and the next.
    win: the aim is more utility than the rival (every reward rule but utility), otherwise as much
        as possible.
    """

    round: int = 0
    horizon: int | None = None
    discount: float = 1.0
    rival_discount: float = 1.0
    received: list[float] = field(default_factory=list)
    made: list[float] = field(default_factory=list)
    step: float = 0.01
    win: bool = True

    @property
    def standing(self) -> float | None:
        return self.received[-1] if self.received else None

    @property
    def last(self) -> bool:
        """Whether a rejection ends the game."""
        return self.round == self.horizon

    @property
    def turn(self) -> int:
        """Own offers made so far."""
        return len(self.made)


Strategy = Callable[[Observation, random.Random], float | None]


def conceding(seen: Observation, rng: random.Random) -> float | None:
    """Starts high and gives way at every turn, down to a third."""
    demand = max(0.34, 0.72 - 0.07 * seen.turn + rng.uniform(-0.03, 0.03))
    if seen.standing is not None and seen.standing >= (0.15 if seen.last else demand):
        return None
    return demand


def hard(seen: Observation, rng: random.Random) -> float | None:
    """Demands four fifths, hardly gives way, and rather loses the deal."""
    demand = max(0.65, 0.8 - 0.015 * seen.turn + rng.uniform(-0.02, 0.02))
    if seen.standing is not None and seen.standing >= (0.4 if seen.last else 0.6):
        return None
    return demand


def fair(seen: Observation, rng: random.Random) -> float | None:
    """Asks for half, takes what is close to it."""
    demand = 0.5 if seen.turn else rng.choice((0.5, 0.5, 0.52))
    if seen.standing is not None and seen.standing >= (0.3 if seen.last else 0.46):
        return None
    return demand


def best_response(seen: Observation, rng: random.Random) -> float | None:
    """Under `win` takes whatever wins and demands just that; else maximises its discounted share.

    For utility it weighs the standing offer against the share that the rival would take one round
    later, judged by backward induction at the start and by the rival's own offers afterwards.
    """
    return _just_win(seen, rng) if seen.win else _most_value(seen)


def mixed(seen: Observation, rng: random.Random) -> float | None:
    """Plays every turn by another of the strategies."""
    return STRATEGIES[rng.choice(MIXTURES["mixed"])](seen, rng)


STRATEGIES: dict[str, Strategy] = {
    "conceding": conceding,
    "hard": hard,
    "fair": fair,
    "best_response": best_response,
    "mixed": mixed,
}
VARIED = "varied"


@dataclass(frozen=True)
class Varied:
    """One of a family from soft to tough: another one in every episode, to train against.

    Its middle is a reasonable partner, who takes a little less than half. A family of tough ones
    teaches never to accept: nothing that they offer is worth it.

    start: the first demand, and `step` what it gives way every turn, down to `floor`.
    threshold: the share that it accepts at any time; in the last round `last` is enough.
    """

    start: float
    step: float
    floor: float
    threshold: float
    last: float

    @classmethod
    def drawn(cls, rng: random.Random) -> Varied:
        """Independent of each other but for their order: floor <= start, last <= threshold."""
        start, threshold = rng.uniform(0.4, 0.9), rng.uniform(0.25, 0.6)
        return cls(
            start=start,
            step=rng.choice((0.005, 0.02, 0.05, 0.08, 0.125)),
            floor=rng.uniform(0.25, min(start, 0.65)),
            threshold=threshold,
            last=rng.uniform(0.05, threshold),
        )

    def __call__(self, seen: Observation, rng: random.Random) -> float | None:
        wanted = self.start - self.step * seen.turn + rng.uniform(-0.02, 0.02)
        demand = min(0.99, max(self.floor, wanted))
        enough = self.last if seen.last else self.threshold
        if seen.standing is not None and seen.standing >= min(enough, demand):
            return None
        return demand


def strategy_of(name: str, seed: int, role: str) -> Strategy:
    """The strategy of that name as `role` follows it in the episode of that seed."""
    if name == VARIED:
        return Varied.drawn(random.Random(f"{seed}/{role}/{name}"))
    return STRATEGIES[name]


def winning_share(seen: Observation, round_: int) -> float:
    """The share at which an agreement in `round_` gives both the same utility."""
    own, rival = seen.discount ** (round_ - 1), seen.rival_discount ** (round_ - 1)
    return rival / (own + rival)


def equilibrium_share(seen: Observation, round_: int) -> float:
    """The proposer's share in `round_` by backward induction, the observer being the proposer.

    Without a told horizon the stationary solution; half if nobody loses by waiting.
    """
    own, rival = seen.discount, seen.rival_discount
    if seen.horizon is None:
        return 0.5 if own == rival == 1 else (1 - rival) / (1 - own * rival)
    steps = seen.horizon - round_
    share = 1.0
    for step in range(steps - 1, -1, -1):
        responder = rival if step % 2 == 0 else own
        share = 1 - responder * share
    return share


def _just_win(seen: Observation, rng: random.Random) -> float | None:
    if seen.standing is not None and seen.standing > winning_share(seen, seen.round) + 1e-9:
        return None
    margin = max(0.01, 0.05 - 0.01 * seen.turn) + rng.choice((0.0, 0.01))
    margin = max(margin, seen.step)  # rounded to the nearest offer, it still wins
    return min(0.99, winning_share(seen, seen.round + 1) + margin)


def _most_value(seen: Observation) -> float | None:
    if seen.standing is None:
        return min(0.7, max(0.5, equilibrium_share(seen, 1)))
    hoped, value = _waiting(seen)
    if seen.standing > 0 and (seen.last or seen.standing >= value - 1e-9):
        return None
    if seen.horizon is not None and seen.round + 1 == seen.horizon:
        return max(LAST_DEMAND, seen.standing)
    return min(0.95, max(hoped, _acceptable_to_rival(seen)))


LAST_DEMAND = 0.6
"""What is demanded when the rival can only take it or end with nothing."""
LOOK_AHEAD = 8
"""Own turns that are planned ahead where no horizon is told."""
FIRST_BELIEF = 0.03
"""Concession expected of a rival that has made one offer only."""


def _waiting(seen: Observation) -> tuple[float, float]:
    """(share, its value now) of the rival's best later offer, should it go on conceding."""
    concession = _concession(seen)
    turns = LOOK_AHEAD if seen.horizon is None else (seen.horizon - seen.round) // 2
    offers = [min(0.8, seen.received[-1] + concession * turn) for turn in range(1, turns + 1)]
    values = [share * seen.discount ** (2 * turn) for turn, share in enumerate(offers, start=1)]
    return max(zip(offers, values, strict=True), key=lambda pair: pair[1], default=(0.0, 0.0))


def _concession(seen: Observation) -> float:
    """The rival's mean concession over its last offers."""
    recent = seen.received[-4:]
    if len(recent) < 2:
        return FIRST_BELIEF
    return max(0.0, (recent[-1] - recent[0]) / (len(recent) - 1))


def _acceptable_to_rival(seen: Observation) -> float:
    """The most that leaves the rival no worse off than its own next offer a round later."""
    offered = seen.received[-1]
    demand = 1 - seen.rival_discount * (1 - min(1.0, offered + _concession(seen)))
    if seen.made:
        demand = min(demand, min(seen.made) - 0.02)
    return max(offered, demand)
