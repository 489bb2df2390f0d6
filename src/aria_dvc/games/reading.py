"""From what a text says to the one move it states: the same order for shares and for prices.

A text is cut into sentences, and these into segments, at commas and "but". Asked are

- of a segment: whether it accepts, rejects, leaves or offers, and what puts its amounts in doubt;
- of a sentence: whether it is a question, is conditional or quotes somebody, which holds for all of
  its segments;
- of the whole text: what takes an acceptance back (before it or after it), and from the first offer
  on, whether it protests, so that an offer of what stands already is a complaint about it; and
  whether anything is said beside a bare question about what stands ("110?"), which is an echo then.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from aria_dvc.games.alternating import Move
from aria_dvc.games.amounts import exact_number
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.decisions import Decisions, check_earlier, takes_standing
from aria_dvc.games.doubts import PROTEST, SPELLED
from aria_dvc.games.parsing import Sentence, json_decision

_GRUDGE = re.compile(rf"{PROTEST.pattern}|\b(?:only|but|instead|rather)\b")
"""Beside an offer of what stands already: perhaps it is not meant to be taken."""


_TAG = re.compile(r"deal|agreed|ok|okay|yes|fair|right")
"""A question that only asks for the other's yes."""
_OFFERS = re.compile(r"(?:counter)?[ _-]?(?:offer|proposal|propose)|counter")
_DIGITS = re.compile(r"\s*\$?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:\.[0-9]+)?)\s*")


@dataclass
class Offered:
    """What the segments of a text offer.

    values: the offers in no doubt. doubts: the kinds of doubt about the others.
    asked: values that are no more than a question: "120?".
    first: the sentence that makes the first offer in no doubt.
    """

    values: set[Fraction] = field(default_factory=set)
    doubts: set[str] = field(default_factory=set)
    asked: set[Fraction] = field(default_factory=set)
    first: int | None = None

    def add(self, values: Set[Fraction], sentence: int, asked: bool) -> None:
        """Take the values that a segment of the sentence offers."""
        if values and self.first is None:
            self.first = sentence
        (self.asked if asked else self.values).update(values)

    def on(self, standing: Fraction | None, alone: bool) -> Set[Fraction]:
        """The offers, without an echo of the standing one: "110? No, 90.", "110? Come on.".

        alone: whether the text is nothing but one sentence.
        """
        return self.values | (self.asked if alone else self.asked - {standing})


@dataclass(frozen=True)
class Hints:
    """What a player is told whose text states no move; digits: where an amount is in words."""

    digits: str
    conditional: str
    unclear: str
    unreadable: str


@dataclass(frozen=True)
class Text:
    """A text that has been read as far as it can be without the offers made before it.

    marked: its plain form with its amounts marked. parts: its sentences.
    """

    marked: str
    parts: list[Sentence]
    decided: Decisions
    offered: Offered

    def protests(self) -> bool:
        """Whether it complains or refuses from its first offer on."""
        return any(PROTEST.search(part.text) for part in self.parts[self.offered.first or 0 :])

    def hesitates(self) -> bool:
        """Whether it asks something besides its offer, or names another that is in doubt."""
        asks = {
            i
            for i, part in enumerate(self.parts)
            if part.question and not _TAG.fullmatch(part.text)
        }
        return bool(self.offered.doubts or asks - {self.offered.first})

    def undecided(self) -> bool:
        """Whether an offer of what stands in it is no new one, but talk of the old one."""
        return self.decided.approves or self.protests() or self.hesitates()

    def doubtful(self) -> bool:
        """Whether anything in it asks, complains, refuses or limits."""
        decided, parts = self.decided, self.parts
        return bool(
            decided.reject
            or decided.conditional
            or self.offered.doubts
            or any(part.question or _GRUDGE.search(part.text) for part in parts)
        )


class Reader(ABC):
    """What one game makes of the amounts in a text; `hints` are its own words."""

    hints: Hints

    @abstractmethod
    def named(self, text: Text) -> Set[Fraction]:
        """The offers that an acceptance names; all must be the standing one."""

    @abstractmethod
    def checked(self, values: Set[Fraction]) -> Fraction:
        """The one value that is offered.

        Raises:
            IllegalMove: there are more, or it is impossible.
        """

    def told_apart(
        self, text: Text, values: Set[Fraction], standing: Fraction | None
    ) -> Set[Fraction]:
        """Of several offers those that are not just talk of the standing one."""
        return values

    def stated_move(self, text: Text, made: Sequence[Fraction]) -> Move:
        """The move that the text states after the offers `made`; the last one stands.

        Raises:
            IllegalMove: it states no move, or more than one.
        """
        standing = made[-1] if made else None
        decided, values = text.decided, text.offered.on(standing, len(text.parts) == 1)
        if len(values) > 1:
            values = self.told_apart(text, values, standing)
        if decided.outside and (decided.accept or values):
            hint = "Make one move: an offer, accept, or deal with John."
            raise IllegalMove("contradiction", hint)
        if decided.accept:
            check_earlier(decided.earlier, len(made))
            if standing is not None and not self.named(text) <= {standing}:
                hint = "Either accept the last offer or make another."
                raise IllegalMove("accept_and_offer", hint)
            return Move("accept")
        if decided.outside:
            return Move("outside")
        called_good = self.named(text) if decided.approves else set()
        if self._takes(text, values or called_good, standing):
            return Move("accept")
        if values and SPELLED.search(text.marked):
            raise IllegalMove("unclear_offer", self.hints.digits)
        if values and not text.offered.values and self.named(text) - values - set(made):
            raise IllegalMove("unclear_offer", self.hints.unclear)  # "100? 120? What do you say?"
        if values and not (values == {standing} and text.undecided()):
            return Move("offer", self.checked(values), sure=not text.doubtful())
        if decided.reject and not (decided.unpaid and self.named(text) - {standing}):
            return Move("reject")
        if not (values or text.offered.asked or decided.conditional or decided.hinted):
            sole = self.sole(text, made)
            if len(sole) == 1 and not text.offered.doubts and not SPELLED.search(text.marked):
                return Move("offer", self.checked(sole), sure=not text.doubtful())
        raise self._none(text, bool(values or text.offered.asked))

    def sole(self, text: Text, made: Sequence[Fraction]) -> Set[Fraction]:
        """What a text offers by its amounts alone, though not in words that the game knows.

        made: the offers before it.
        """
        return set()

    def _takes(self, text: Text, values: Set[Fraction], standing: Fraction | None) -> bool:
        """Whether the offer is the standing one, taken.

        Raises:
            IllegalMove: words of agreement beside another offer.
        """
        if text.offered.doubts or not values:
            return False
        first = text.offered.first
        if first is None:
            first = next(i for i, part in enumerate(text.parts) if "<" in part.text)
        return takes_standing(text.decided, text.parts, first, values == {standing})

    def _none(self, text: Text, named: bool) -> IllegalMove:
        """Why a text that decides nothing and offers nothing is refused.

        named: it names an offer, but only to complain or to ask about it.
        """
        doubts = text.offered.doubts
        if text.decided.conditional or "conditional" in doubts:
            return IllegalMove("conditional", self.hints.conditional)
        if doubts or named:
            return IllegalMove("unclear_offer", self.hints.unclear)
        return IllegalMove("unreadable", self.hints.unreadable)


def _number(value: Any) -> Any:
    """A number that a JSON move has as text, as a number; anything else as it is."""
    plain = isinstance(value, str) and _DIGITS.fullmatch(value)
    return exact_number(plain[1].replace(",", "")) if plain else value


def json_offer(
    fields: dict[str, Any], keys: Sequence[str], standing: Mapping[str, Fraction]
) -> Move | list[Any]:
    """The decision of a JSON move, or what it says under the `keys` of an offer.

    Args:
        standing: what the standing offer has under the keys; an acceptance may repeat it.

    Raises:
        IllegalMove: both an acceptance and another offer, or an unknown decision.
    """
    named = {key: _number(fields[key]) for key in keys if key in fields}
    offered = list(named.values())
    told = fields.get("decision")
    proposes = offered and isinstance(told, str) and _OFFERS.fullmatch(told.strip().lower())
    decision = json_decision(told) if "decision" in fields and not proposes else None
    if decision == "accept" and named and named.items() <= standing.items():
        return Move("accept")
    if decision in ("accept", "outside") and offered:
        raise IllegalMove("accept_and_offer", "Either decide or make an offer.")
    return Move(decision) if decision and not offered else offered
