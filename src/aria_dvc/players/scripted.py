"""Players that follow a named strategy and read the state of the match, not the chat.

Adversarial games: conceding, hard, fair, best_response, mixed, and varied, which is another player
in every episode. Guessing games: narrowing, steady, casual for the agent; `embedded_oracle` answers
from packaged knowledge. Household: expert, noisy_expert. Games that bring their own words
(`SelfPlaying`): own. A reply depends on nothing but the match and the request's seeds.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from aria_dvc.errors import AriaError
from aria_dvc.games.alternating import LONGEST_TOLD_HORIZON, ROLES, AlternatingMatch, number_text
from aria_dvc.games.bargaining import BargainingMatch
from aria_dvc.games.guessing import GuessingMatch
from aria_dvc.games.household import HouseholdMatch
from aria_dvc.games.negotiation import NegotiationMatch
from aria_dvc.players import phrases
from aria_dvc.players.base import Player, PlayerFailure, Reply, Request
from aria_dvc.players.housekeeping import HOUSEKEEPERS
from aria_dvc.players.questioners import QUESTIONERS, embedded_answer
from aria_dvc.players.strategies import (
    STRATEGIES,
    VARIED,
    Observation,
    Strategy,
    strategy_of,
)
from aria_dvc.records.names import STRATEGY_NAMES
from aria_dvc.suggestions import did_you_mean

if TYPE_CHECKING:
    from aria_dvc.games.base import Match

SMALL_SUM = 100
"""Above it offers are put in percent: small models spend a token on every digit."""
GUESSED_MARKUP = Fraction(3, 10)
"""How far apart the values are taken to be by a player that is not told the rival's."""
PARTS = 100
"""Offers are put in so many parts of the sum, or of a price's scale."""


OWN = "own"


@runtime_checkable
class SelfPlaying(Protocol):
    """A match that knows what to say itself: the strategy `own`."""

    def scripted_text(self, rng: random.Random) -> str:
        """A legal and sensible utterance of `to_move`."""
        ...


class ScriptedPlayer:
    """A player without memory: `reply` is a function of the request.

    reads_chat: False, so that nobody writes one for it.
    """

    model = "scripted"
    reads_chat = False

    def __init__(self, strategy: str) -> None:
        self.strategy = strategy
        self.name = f"scripted:{strategy}"

    async def reply(self, request: Request) -> Reply:
        seeds = request.seed, request.episode_seed
        return Reply(self.text(request.match, request.role, *seeds))

    def text(self, match: Match, role: str, seed: int, episode_seed: int | None = None) -> str:
        """The utterance of `role`, whose turn it is.

        episode_seed: draws what stays the same all through the game; by default `seed`.

        Raises:
            PlayerFailure: the strategy is for other games.
        """
        rng = random.Random(f"{seed}/{role}/{len(match.lines)}")
        if isinstance(match, AlternatingMatch) and self.strategy in (*STRATEGIES, VARIED):
            own = seed if episode_seed is None else episode_seed
            return _move(match, role, strategy_of(self.strategy, own, role), rng)
        if isinstance(match, GuessingMatch) and self.strategy in QUESTIONERS and role == "agent":
            return QUESTIONERS[self.strategy](match, rng)
        if isinstance(match, GuessingMatch) and self.strategy == "oracle" and role == "oracle":
            return embedded_answer(match, match.lines[-1][1]).text
        if isinstance(match, HouseholdMatch) and self.strategy in HOUSEKEEPERS:
            return HOUSEKEEPERS[self.strategy](match, rng)
        if isinstance(match, SelfPlaying) and self.strategy == OWN:
            return match.scripted_text(rng)
        raise PlayerFailure(
            "wrong_strategy", f"scripted:{self.strategy} cannot play {role} in {match.game}"
        )

    def finished(self, episode_id: str) -> None:
        """Nothing is held for an episode."""

    async def close(self) -> None:
        """Nothing to release."""


def scripted_player(strategy: str) -> Player:
    """The player with a named strategy.

    Raises:
        AriaError: there is none of that name.
    """
    if strategy not in STRATEGY_NAMES:
        raise AriaError(f"unknown strategy {strategy}{did_you_mean(strategy, STRATEGY_NAMES)}")
    return ScriptedPlayer(strategy)


def embedded_oracle() -> Player:
    """The player of the role `oracle` that answers from packaged knowledge, offline."""
    player = ScriptedPlayer("oracle")
    player.name, player.model = "embedded", "knowledge"
    return player


@singledispatch
def _move(match: AlternatingMatch, role: str, strategy: Strategy, rng: random.Random) -> str:
    """The words of a strategy in each game of alternating offers."""
    raise PlayerFailure("wrong_strategy", f"no strategy has words for {match.game}")


@_move.register
def _share(match: BargainingMatch, role: str, strategy: Strategy, rng: random.Random) -> str:
    discounts = {"alice": match.config["delta_a"], "bob": match.config["delta_b"]}
    if not match.config["complete_information"]:
        discounts = dict.fromkeys(ROLES, discounts[role])
    shares = [value / match.money for value in match.offers]
    seen = _observation(match, role, shares, discounts, 1 / PARTS)
    demand = strategy(seen, rng)
    if demand is None:
        return rng.choice(phrases.ACCEPT)
    if seen.last:
        return rng.choice(phrases.REJECT)
    percent = Fraction(round(PARTS * demand), PARTS)
    share = percent if role == "alice" else 1 - percent
    whole, unit = (Fraction(100), "%") if match.money > SMALL_SUM else (match.money, "")
    gains = [number_text(whole * part) + unit for part in (share, 1 - share)]
    return phrases.say_shares(rng, role, gains, not match.offers)


def _observation(
    match: AlternatingMatch,
    role: str,
    shares: list[Fraction],
    discounts: dict[str, float],
    step: float,
) -> Observation:
    """What `role` sees; `shares` are Alice's shares in all offers so far."""
    own = [float(share if role == "alice" else 1 - share) for share in shares]
    start = ROLES.index(role)
    return Observation(
        round=len(shares),
        horizon=match.rounds if match.rounds <= LONGEST_TOLD_HORIZON else None,
        discount=discounts[role],
        rival_discount=discounts[ROLES[1 - start]],
        received=own[1 - start :: 2],
        made=own[start::2],
        step=step,
        win=match.reward != "utility",
    )


@_move.register
def _price(match: NegotiationMatch, role: str, strategy: Strategy, rng: random.Random) -> str:
    seller, buyer = _believed_values(match, role)
    if buyer <= seller:
        return _without_surplus(match, role, rng)
    surplus = buyer - seller
    shares = [(price / match.scale - seller) / surplus for price in match.offers]
    step = float(1 / (PARTS * surplus))
    seen = _observation(match, role, shares, dict.fromkeys(ROLES, 1.0), step)
    demand = strategy(seen, rng)
    if demand is None:
        return rng.choice(phrases.ACCEPT)
    if seen.last:
        return rng.choice(phrases.OUTSIDE)
    share = Fraction(round(1000 * demand), 1000)
    price = seller + share * surplus if role == "alice" else buyer - share * surplus
    return _say_price(match, role, price, rng)


def _believed_values(match: NegotiationMatch, role: str) -> tuple[Fraction, Fraction]:
    """The seller's and the buyer's value as `role` knows or supposes them."""
    seller, buyer = match.values
    if match.config["complete_information"]:
        return seller, buyer
    if role == "alice":
        return seller, seller * (1 + GUESSED_MARKUP)
    return buyer * (1 - GUESSED_MARKUP), buyer


def _without_surplus(match: NegotiationMatch, role: str, rng: random.Random) -> str:
    """No price suits both: take a price that is good for oneself, else haggle or leave."""
    side = ROLES.index(role)
    if match.standing is not None:
        if match.worth(match.standing)[side] > 0:
            return rng.choice(phrases.ACCEPT)
        if len(match.offers) == match.rounds or rng.random() < 0.5:
            return rng.choice(phrases.OUTSIDE)
    markup = Fraction(rng.randrange(1, 25), 100) * (1 if role == "alice" else -1)
    return _say_price(match, role, match.values[side] * (1 + markup), rng)


def _say_price(match: NegotiationMatch, role: str, price: Fraction, rng: random.Random) -> str:
    money = Fraction(round(PARTS * price), PARTS) * match.scale
    return phrases.say_price(rng, role, number_text(money), not match.offers)
