"""Which episodes are played, and by whom: players are dealt from the weighted pool of each role."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, product
from typing import Any

from aria_dvc.chat import Line
from aria_dvc.errors import AriaError
from aria_dvc.games.base import Config, Game
from aria_dvc.player_specs import Pool, weights_of
from aria_dvc.records.names import is_trained
from aria_dvc.seeds import derived_seed

_GOLDEN = (5**0.5 - 1) / 2

Lineup = dict[str, str]  # the player spec of every role, environment included


@dataclass(frozen=True)
class Lineups:
    """The line-ups of a game and the share of the games that each gets.

    Shares are those of roles drawn independently by weight, and again until a player of one of the
    kinds `trained` has a role that acts: an episode without any would teach nothing. With {policy:
    0.5, scripted:varied: 0.5} for both roles a third of the games is self-play, and in a third
    each the policy has one of the roles. Where no pool has such a player, the first draw counts.

    Args:
        pools: by role, environment included.
        trained: kinds of player (see player_specs.py).
    """

    game: Game
    pools: Mapping[str, Pool]
    trained: Collection[str] = ()

    def at(self, point: float) -> Lineup:
        """The line-up whose piece of [0, 1), as long as its share, has `point`."""
        lineups, weights = self._weighted
        ends = list(accumulate(weights))
        return dict(lineups[min(bisect_right(ends, point * ends[-1]), len(lineups) - 1)])

    @cached_property
    def _weighted(self) -> tuple[list[Lineup], list[float]]:
        """Every line-up that may be drawn, and its weight."""
        check_players(self.game, self.pools)
        pools = [weights_of(pool).items() for pool in self.pools.values()]
        found = []
        for drawn in product(*pools):
            lineup = dict(zip(self.pools, (spec for spec, _ in drawn), strict=True))
            found.append((lineup, math.prod(weight for _, weight in drawn)))
        teaching = [pair for pair in found if self._teaches(pair[0])]
        lineups, weights = zip(*(teaching or found), strict=True)
        return list(lineups), list(weights)

    def _teaches(self, lineup: Lineup) -> bool:
        return any(is_trained(lineup[role], self.trained) for role in self.game.roles)


@dataclass(frozen=True)
class Assignment:
    """One episode to play.

    group_id: equal for episodes that share a configuration and stand together.
    players: the name of each role's player; a role that is not in it has a player of its own.
    lines: what was said before it begins, which is replayed; nobody is asked for it.
    character: in place of `seed` where a player draws what stays the same all through a game.
    """

    episode_id: str
    config: Config
    seed: int
    group_id: str
    players: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    character: int | None = None


def assign(
    game: Game,
    episodes: int,
    seed: int,
    grid: str = "default",
    repeats: int = 1,
    lineups: Lineups | None = None,
) -> list[Assignment]:
    """Episodes over a grid of configurations: in turn, over an order shuffled by `seed`.

    A longer list starts with the shorter one, so more episodes can be added later.

    Args:
        repeats: so many episodes one after the other, a group, share a configuration and its
            players; their seeds differ.
        lineups: deals the players of each group, by the multiples of the golden ratio: any groups
            in a row hold every line-up about as often as its share says, which draws would not
            (of twelve groups now and then one alone).

    Raises:
        AriaError: the game has no such grid, or a role has no player.
    """
    configs = list(game.grid(grid))
    random.Random(derived_seed(seed, game.name, grid)).shuffle(configs)
    start = random.Random(derived_seed(seed, game.name, "players")).random()

    def assignment(index: int) -> Assignment:
        name, group = f"{game.name}-{index:05d}", index // repeats
        own, config = derived_seed(seed, name), configs[group % len(configs)]
        group_id = f"{game.name}-{group:05d}"
        players = lineups.at((start + group * _GOLDEN) % 1.0) if lineups else {}
        return Assignment(name, config, own, group_id, players)

    return [assignment(index) for index in range(episodes)]


def check_players(game: Game, players: Mapping[str, Any]) -> None:
    """Raise AriaError unless there is a player for every role and no other."""
    needed = {*game.roles, *([game.environment] if game.environment else [])}
    missing, extra = sorted(needed - players.keys()), sorted(players.keys() - needed)
    if missing or extra:
        wrong = f"no player for {', '.join(missing)}" if missing else f"no role {', '.join(extra)}"
        raise AriaError(f"{game.name}: {wrong}: name one player for each of {sorted(needed)}")
