"""What a player wins that always asks for the same share, by whom it meets.

    python benchmarks/demands.py [--games N]

Bargaining and negotiation in the configurations of `evaluate` in params.yaml, N games each in
either role. The player asks for its share at every turn and accepts what brings it as much. One row
a share (of the sum, or of what a trade brings both), one column an opponent: those of `evaluate`,
their mean, and the one that trains. So one sees how far the rate of a policy may change by a few
percent of what it asks for.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from statistics import fmean

from aria_dvc.games.alternating import AlternatingMatch, Move
from aria_dvc.games.bargaining import BargainingMatch
from aria_dvc.games.base import Match
from aria_dvc.games.negotiation import NegotiationMatch
from aria_dvc.games.registry import get_game
from aria_dvc.params import load_params
from aria_dvc.players.dialogues import play_out
from aria_dvc.players.scripted import ScriptedPlayer
from aria_dvc.settings.evaluation import GameEvaluation

GAMES = ("bargaining", "negotiation")
PERCENT = (45, 50, 51, 52, 53, 54, 55, 57, 60, 65, 70, 80)
TRAINS = "varied"


class Asking(ScriptedPlayer):
    """Asks for `share` again and again."""

    def __init__(self, share: Fraction) -> None:
        super().__init__("asking")
        self.share = share

    def text(self, match: Match, role: str, seed: int, episode_seed: int | None = None) -> str:
        assert isinstance(match, AlternatingMatch)
        low, high = ends(match)
        demand = low + (high - low) * (self.share if role == "alice" else 1 - self.share)
        offered = match.standing
        if offered is not None and (offered >= demand if role == "alice" else offered <= demand):
            return match.say(Move("accept"), role)
        return match.say(Move("offer", demand), role)


def ends(match: AlternatingMatch) -> tuple[Fraction, Fraction]:
    """The offers that leave Alice nothing, and everything."""
    if isinstance(match, BargainingMatch):
        return Fraction(0), match.money
    assert isinstance(match, NegotiationMatch)
    seller, buyer = match.values
    return seller * match.scale, buyer * match.scale


def rate(game: str, grid: str, share: Fraction, opponent: str, games: int) -> float:
    """Share of the games that are won, half of them as Alice."""
    kind, won = get_game(game), []
    every = product(kind.grid(grid), kind.roles, range(games))
    for seed, (config, role, _) in enumerate(every):
        match = kind.start(config)
        (rival,) = set(kind.roles) - {role}
        play_out(match, {role: Asking(share), rival: ScriptedPlayer(opponent)}, seed)
        assert match.outcome is not None
        won.append(match.outcome.utilities[role] > match.outcome.utilities[rival])
    return fmean(won)


def table(game: str, judged: GameEvaluation, games: int) -> Iterator[str]:
    """Its lines."""
    judges = [spec.removeprefix("scripted:") for spec in judged.facing("alice")]
    yield f"{game}, {judged.grid}"
    yield "asks for" + "".join(f"{name:>12}" for name in (*judges, "mean", TRAINS))
    for percent in PERCENT:
        share = Fraction(percent, 100)
        *told, trains = (rate(game, judged.grid, share, name, games) for name in (*judges, TRAINS))
        yield f"{percent:6} %" + "".join(f"{one:12.2f}" for one in (*told, fmean(told), trains))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=4, help="a configuration and role")
    games = parser.parse_args().games
    for game, judged in load_params().evaluate.games.items():
        if game in GAMES:
            print("\n".join(table(game, judged, games)))


if __name__ == "__main__":
    main()
