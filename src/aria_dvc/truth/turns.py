"""Which turns of a log are measured: all equally likely, every role and own-turn index in turn."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from aria_dvc.chat import Line
from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode, without_broken_off
from aria_dvc.records.tables import acting_roles
from aria_dvc.seeds import derived_seed


@dataclass(frozen=True)
class Turn:
    """One action of an episode. position: as in the table of turns; turn: own turns, from 1.

    place: among the utterances, where `position` counts system messages too.
    """

    episode: Episode
    place: int
    position: int
    turn: int

    @property
    def role(self) -> str:
        return self.episode.utterances[self.place].role

    @property
    def text(self) -> str:
        """The action."""
        return self.episode.utterances[self.place].text

    @property
    def history(self) -> tuple[Line, ...]:
        """What was said before it."""
        return tuple((u.role, u.text) for u in self.episode.utterances[: self.place])

    @property
    def name(self) -> str:
        """Another one for every turn of a log."""
        return f"{self.episode.episode_id}@{self.position}"


def drawn_turns(
    episodes: Sequence[Episode], players: Collection[str], count: int, seed: int
) -> list[Turn]:
    """`count` turns of the log, or all if it has fewer, in the log's order.

    Strata are the roles' own-turn indices. A stratum of n turns, in an order and with an offset u
    drawn by `seed`, gives its r-th turn the rank (r + u) / n, and the lowest ranks are drawn: every
    turn is as likely as any other, strata are seen by their sizes, and more turns are the same ones
    and further ones.

    Args:
        players: kinds of player whose turns are measured (see `acting_roles`).

    Raises:
        AriaError: nobody of those kinds said anything.
    """
    strata: dict[tuple[str, int], list[Turn]] = {}
    for turn in _turns(episodes, players):
        strata.setdefault((turn.role, turn.turn), []).append(turn)
    if not strata:
        raise AriaError(
            f"truth: nobody of the kinds {', '.join(players)} said anything in the log: name other "
            "kinds of player"
        )
    ranked = [pair for key, turns in strata.items() for pair in _ranked(turns, key, seed)]
    lowest = sorted(ranked, key=lambda pair: pair[0])[:count]
    order = {id(episode): at for at, episode in enumerate(episodes)}
    return sorted((turn for _, turn in lowest), key=lambda t: (order[id(t.episode)], t.place))


def _ranked(turns: list[Turn], key: tuple[str, int], seed: int) -> Iterator[tuple[float, Turn]]:
    rng = random.Random(derived_seed(seed, "turns", *key))
    shuffled, offset = rng.sample(turns, len(turns)), rng.random()
    for place, turn in enumerate(shuffled):
        yield (place + offset) / len(turns), turn


def _turns(episodes: Sequence[Episode], players: Collection[str]) -> Iterator[Turn]:
    """Every action that gets credit: the same as in the table of turns."""
    for episode in without_broken_off(list(episodes)):
        acting, said = acting_roles(episode, players), dict.fromkeys(episode.rewards, 0)
        for place, (position, utterance) in enumerate(episode.numbered()):
            if utterance.role in said:
                said[utterance.role] += 1
            if utterance.role in acting:
                yield Turn(episode, place, position, said[utterance.role])
