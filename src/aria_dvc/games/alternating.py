"""Alternating offers between Alice and Bob: what bargaining and negotiation have in common.

Utterances alternate, Alice first. The first is the offer of round 1; every later one answers the
standing offer: it accepts, takes the outside option where the game has one, or rejects, and a
rejection carries the offer of the next round. A rejection of the last round's offer ends the game
without a deal, whether or not it names another offer: no round is left for it. Who names the
standing offer again makes it an own offer of the next round; in the last round there is none, and
"I'll pay 140." after "I offer $140." accepts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, Literal

from aria_dvc.errors import AriaError
from aria_dvc.games.amounts import MAX_DECIMALS
from aria_dvc.games.base import (
    Config,
    Failure,
    IllegalMove,
    Match,
    Outcome,
    refuse_unknown_keys,
)
from aria_dvc.games.parsing import cut, heard, laid_out, utterance
from aria_dvc.games.rewards import (
    after_forfeit,
    aim,
    check_rule,
    compares,
    final_rewards,
    lead,
)
from aria_dvc.records.names import PARTNERS

ROLES = PARTNERS
LONGEST_TOLD_HORIZON = 20
"""Longer horizons are not told to the players (GLEE, sec. 3)."""
MAX_ROUNDS = 1_000


@dataclass(frozen=True)
class Move:
    """A typed move.

    value: of an offer: Alice's gain in money, or the price.
    sure: nothing beside an offer asks, complains or rejects.
    """

    kind: Literal["offer", "accept", "reject", "outside"]
    value: Fraction | None = None
    sure: bool = field(default=True, compare=False)


@dataclass(frozen=True)
class Demand:
    """How much of something an offer demands: `part` of it, told in `steps` (see decided.py).

    of: what it is called. words: for what is demanded and for the rest.
    exact_half: a half is told of exact halves only, so that who gains more is never rounded away.
    """

    of: str
    part: Fraction
    steps: int
    words: tuple[str, str] = ("mine", "yours")
    exact_half: bool = False


def other(role: str) -> str:
    return ROLES[1 - ROLES.index(role)]


@lru_cache(4096)
def exact(number: int | float) -> Fraction:
    """The decimal number as written: 0.8 is 4/5."""
    return Fraction(str(number))


class AlternatingMatch(Match):
    """The state machine; a game says how offers are read and what an agreement is worth.

    offers: values offered so far; the last one stands, and its round is `len(offers)`.
    reward: the reward rule (rewards.py).
    """

    roles = ROLES

    def __init__(self, config: Config, reward: str) -> None:
        check_rule(self.game, reward)
        super().__init__(config)
        self.reward = reward
        self.offers: list[Fraction] = []

    @property
    def rounds(self) -> int:
        """The horizon T."""
        return self.config["rounds"]

    @property
    def to_move(self) -> str | None:
        return None if self.outcome else ROLES[len(self.offers) % 2]

    @property
    def standing(self) -> Fraction | None:
        """The offer on the table; None at the start."""
        return self.offers[-1] if self.offers else None

    @abstractmethod
    def read(self, text: str, role: str) -> Move:
        """The move that `text` states.

        Raises:
            IllegalMove: it states none, or more than one.
        """

    @abstractmethod
    def say(self, move: Move, role: str) -> str:
        """The move as `rules` ask `role` to say it, which `read` reads as the same move."""

    @abstractmethod
    def worth(self, value: Fraction) -> tuple[Fraction, Fraction]:
        """Utilities of Alice and Bob when `value` is agreed on now."""

    @abstractmethod
    def amount_demanded(self, role: str) -> Demand:
        """What the standing offer, made by `role`, demands by its amount alone."""

    def worth_demanded(self, role: str) -> Demand:
        """The part of what the standing offer, made by `role`, would be worth to both now."""
        return Demand("offer", (1 + self._ahead_by(role)) / 2, 20, exact_half=True)

    def _ahead_by(self, role: str) -> Fraction:
        """How far accepting the standing offer now would put `role` ahead."""
        alice, bob = self.worth(self.offers[-1])
        return lead(alice, bob) if role == "alice" else lead(bob, alice)

    @abstractmethod
    def assess(self, value: Fraction | None) -> dict[str, Any]:
        """Details of the outcome; `value` None without a deal."""

    def play(self, text: str) -> None:
        role = self._mover()
        spoken = utterance(text, role)
        move = self._at_last(self.read(spoken, role))
        self._check(move)
        shown = heard(text, spoken) if self.config["messages"] else self.say(move, role)
        self.lines.append((role, shown))
        self._apply(move)
        if self._rates_offers and (hearer := self.to_move):
            self.told[len(self.lines) - 1] = f"{self.rating(hearer)}."

    @property
    def _rates_offers(self) -> bool:
        """Only players who may know what an offer is worth to both, and who are to compare it."""
        asked = self.config["rated_offers"] and self.config["complete_information"]
        return bool(asked and compares(self.reward))

    def rating(self, role: str) -> str:
        """Whether accepting wins now, as `role` is told who answers the standing offer.

        An even deal is told like one that is behind: told apart, it is what a policy settles for.
        """
        gains = "gain" if self._ahead_by(role) > 0 else "not gain"
        return f"You would {gains} more than {other(role).capitalize()}"

    def _at_last(self, move: Move) -> Move:
        """The move, or the answer that the standing offer is, named once more in the last round."""
        if move.value is None or move.value != self.standing or len(self.offers) < self.rounds:
            return move
        return Move("accept" if move.sure else "reject")

    def forfeit(self, kind: str, text: str = "") -> None:
        role = self._mover()
        kept = cut(text)
        if kept:
            self.lines.append((role, laid_out(text, kept)))
        nothing = dict.fromkeys(ROLES, Fraction(0))
        self._end("failure", nothing, None, Failure(role, kind))

    def _mover(self) -> str:
        if self.to_move is None:
            raise ValueError("the match is over")
        return self.to_move

    def _check(self, move: Move) -> None:
        if not self.offers and move.kind != "offer":
            raise IllegalMove("nothing_to_answer", f"You start. {self.offer_hint}")
        if move.kind == "reject" and len(self.offers) < self.rounds:
            raise IllegalMove("missing_offer", f"With a rejection goes an offer. {self.offer_hint}")

    @property
    @abstractmethod
    def offer_hint(self) -> str:
        """How to make an offer, in one sentence."""

    def _apply(self, move: Move) -> None:
        nothing = dict.fromkeys(ROLES, Fraction(0))
        if move.kind == "offer" and len(self.offers) < self.rounds:
            assert move.value is not None
            self.offers.append(move.value)
        elif move.kind == "accept":
            value = self.offers[-1]
            self._end("agreement", dict(zip(ROLES, self.worth(value), strict=True)), value)
        elif move.kind == "outside":
            self._end("outside_option", nothing, None)
        else:
            self._end("no_deal", nothing, None)

    def _end(
        self,
        reason: str,
        utilities: dict[str, Fraction],
        value: Fraction | None,
        failure: Failure | None = None,
    ) -> None:
        deal = value is not None
        details = {"deal": deal, "round": len(self.offers)}
        self.outcome = Outcome(
            rewards=after_forfeit(self.reward, ROLES, failure.role)
            if failure
            else final_rewards(self.reward, utilities, deal),
            reason=reason,
            utilities={role: float(u) for role, u in utilities.items()},
            details={**details, **self.assess(value)},
            failure=failure,
        )

    def system_prompt(self, role: str) -> str:
        """Rules first, word for word the same in all games of one role and reward rule.

        The numbers of the configuration come last, so that games share a prefix.
        """
        rival = other(role).capitalize()
        shared = [f"You are {role.capitalize()}", self.rules(role), aim(self.reward, rival)]
        return " ".join([*shared, self.numbers(role), self.horizon])

    @abstractmethod
    def rules(self, role: str) -> str:
        """What `role` is told after "You are NAME" whatever the configuration."""

    @abstractmethod
    def numbers(self, role: str) -> str:
        """What `role` is told of the configuration, its horizon aside."""

    @property
    def horizon(self) -> str:
        """What the players are told about the end of the game."""
        if self.rounds > LONGEST_TOLD_HORIZON:
            return "It may end at any time."
        return "1 round." if self.rounds == 1 else f"{self.rounds} rounds."


# --- configurations -------------------------------------------------------------------------------

COMMON: Config = {
    "rounds": 20,
    "complete_information": True,
    "messages": True,
    "rated_offers": True,
}
"""Parameters of both games with the values of the evaluation grid.

rated_offers: whoever hears an offer is told whether it gains more by it than its speaker, which a
small model does not work out (docs/trials.md).
"""
SWITCHES = [key for key, value in COMMON.items() if isinstance(value, bool)]


def complete(game: str, config: Config, required: Mapping[str, tuple[float, float]]) -> Config:
    """A configuration with defaults filled in.

    `required` gives each number's allowed range (low, high), both included.

    Raises:
        AriaError: a key is missing or unknown, or a value is out of range.
    """
    refuse_unknown_keys(game, config, [*required, *COMMON])
    for key, (low, high) in required.items():
        if key not in config:
            raise AriaError(f"{game}: the configuration has no {key}: add {key} ({low} to {high})")
        _check_number(game, key, config[key], low, high)
    full = {**{key: config[key] for key in required}, **COMMON, **config}
    if type(full["rounds"]) is not int or not 1 <= full["rounds"] <= MAX_ROUNDS:
        raise AriaError(f"{game}: rounds is {full['rounds']!r}: use a whole number 1..{MAX_ROUNDS}")
    for key in SWITCHES:
        if not isinstance(full[key], bool):
            raise AriaError(f"{game}: {key} is {full[key]!r}: use true or false")
    return full


def _check_number(game: str, key: str, value: Any, low: float, high: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        raise AriaError(f"{game}: {key} is {value!r}: use a number from {low} to {high}")


def number_text(value: Fraction) -> str:
    """An amount as players write it: 1,500 or 33.25; never three decimals, which are unclear."""
    if value.denominator == 1:
        return f"{value.numerator:,}"
    whole, decimals = divmod(round(value * 10**MAX_DECIMALS), 10**MAX_DECIMALS)
    digits = f"{decimals:0{MAX_DECIMALS}}"
    short = digits.rstrip("0")
    return f"{whole:,}.{digits if len(short) == 3 else short}"


@lru_cache(4096)
def percent_text(discount: float) -> str:
    """The loss of value a round, (1 - d) * 100 %: 0.95 is told as 5%."""
    return f"{float((1 - exact(discount)) * 100):g}%"


def glee_grids(small: Sequence[Config], horizons: Sequence[int]) -> dict[str, Sequence[Config]]:
    """`glee48` (the default); `glee_full` also varies horizon, information and messages."""
    full = [
        {**config, "rounds": rounds, "complete_information": informed, "messages": talk}
        for config, rounds, informed, talk in product(small, horizons, (True, False), (True, False))
    ]
    return {"default": small, "glee48": small, "glee_full": full}


def with_unrated(grids: Mapping[str, Sequence[Config]]) -> dict[str, Sequence[Config]]:
    """The grids, and each but the default once more without `rated_offers`: `glee48_unrated`."""
    unrated = {
        f"{name}_unrated": [{**config, "rated_offers": False} for config in grid]
        for name, grid in grids.items()
        if name != "default"
    }
    return {**grids, **unrated}
