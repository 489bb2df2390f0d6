"""Games played as params.yaml says: to collect dialogues, and to evaluate policies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from aria_dvc.arena.assignments import Assignment, Lineups, assign
from aria_dvc.arena.collection import collect_series, matching
from aria_dvc.arena.journal import WHOLE, Journal
from aria_dvc.arena.series import Series
from aria_dvc.fingerprints import code_hash
from aria_dvc.games.base import Game
from aria_dvc.games.registry import get_game
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.models.libraries import GENERATING, library_versions
from aria_dvc.models.source import ModelSource
from aria_dvc.player_specs import Pool, endpoint_name, specs_of, weights_of
from aria_dvc.players.base import Player
from aria_dvc.players.registry import PlayerContext
from aria_dvc.records.episodes import Episode
from aria_dvc.seeds import derived_seed
from aria_dvc.settings.dialogues import BASE_MODEL, PlaySettings

if TYPE_CHECKING:
    from aria_dvc.params import Params


@dataclass(frozen=True)
class Games(ABC):
    """Games of one kind between players of params.yaml: which games, a subclass says.

    Args:
        players: player spec or weighted specs per role (see player_specs.py).
        reward: the reward rule (games/rewards.py), told to the players and paid at the end.
        model: the folder of the model behind `policy` and `base`.
        adapter: LoRA folder of the player `policy`, if any.
        own_model: the folder of the model that plays `policy` where its weights are its own.
        purpose: keeps the seeds of collection, evaluation and rollouts apart.
        served_by: names of the endpoints that play `policy`; none: it is played in process.
        share: (which, of how many) shares of the games are played; (0, 1) is all.
    """

    game: Game
    players: Mapping[str, Pool]
    settings: PlaySettings
    _: KW_ONLY
    model: str = BASE_MODEL
    adapter: Path | None = None
    own_model: Path | None = None
    reward: str = "win"
    record_logprobs: bool = False
    purpose: str = "collect"
    served_by: tuple[str, ...] = ()
    share: tuple[int, int] = (0, 1)

    @abstractmethod
    def _wanted(self, params: Params) -> list[Assignment]:
        """The games of this share."""

    def trim(self, assignment: Assignment, episode: Episode) -> Episode:
        """What of a finished game is journalled and returned."""
        return episode

    @property
    def plays_in_process(self) -> bool:
        """Whether a language model is loaded to play it."""
        own = {"base"} if self.served_by else {"base", "policy"}
        return not own.isdisjoint(specs_of(self.players))

    def dealt(self, parts: int) -> list[Self]:
        """The same games in so many parts, whole groups each."""
        return [replace(self, share=(part, parts)) for part in range(parts)]

    def kept(self, params: Params, finished: Mapping[str, Episode]) -> list[Episode] | None:
        """The games of this share, of those that its journal holds; None if some are missing."""
        wanted = self._wanted(params)
        found = matching(finished, wanted)
        return [found[one.episode_id] for one in wanted] if len(found) == len(wanted) else None

    def play(self, params: Params, title: str = "") -> list[Episode]:
        """Its games alone (see `play_together`)."""
        (episodes,) = play_together(params, [self], title)
        return episodes

    def series(self, params: Params, journal: Journal) -> Series:
        """Its games, with their players loaded."""
        wanted = self._wanted(params)
        named = {spec for assignment in wanted for spec in assignment.players.values()}
        players = self._players(params, sorted(named))
        return Series(self.game, wanted, players, self.settings, self.reward, journal, self.trim)

    def _seed(self, params: Params) -> int:
        return derived_seed(params.seed, self.purpose)

    def journal(self, params: Params) -> Journal:
        """Where its games are kept, by everything that they depend on; all shares find them."""
        return Journal(self._inputs(params))

    def own_journal(self, params: Params) -> Journal:
        """The journal with a file of this share's own to write to."""
        which, parts = self.share
        return Journal(self._inputs(params), part=which + 1 if parts > 1 else WHOLE)

    def _source(self, params: Params) -> ModelSource:
        """The model behind `policy` and `base`."""
        return ModelSource(self.model, params.base_model.trust_remote_code)

    def _players(self, params: Params, named: Iterable[str]) -> dict[str, Player]:
        """The players of those names."""
        context = PlayerContext(
            self.settings,
            params.pace,
            self._source(params),
            params.endpoints,
            adapter=self.adapter,
            own_model=self._source(params).named(self.own_model) if self.own_model else None,
            record_logprobs=self.record_logprobs,
            served_by=self.served_by,
        )
        return {spec: context.player(spec) for spec in named}

    def _inputs(self, params: Params) -> dict[str, Any]:
        """Everything that the episodes depend on, for the journal's name."""
        pools = {role: weights_of(pool) for role, pool in self.players.items()}
        used = {*self.served_by, *map(endpoint_name, specs_of(self.players))}
        return {
            "game": self.game.name,
            "seed": self._seed(params),
            "reward": self.reward,
            "record_logprobs": self.record_logprobs,
            "players": pools,
            "served_by": self.served_by,
            "settings": self.settings.model_dump(include=set(PlaySettings.model_fields)),
            "bfloat16": self.plays_in_process and uses_bfloat16(params.pace.precision),
            "endpoints": {
                name: endpoint.model_dump(include={"base_url", "model", "options"})
                for name, endpoint in params.endpoints.items()
                if name in used
            },
            "model": fingerprint(self._source(params)) if self.plays_in_process else None,
            "adapter": fingerprint(self.adapter) if self.adapter else None,
            "own_model": fingerprint(self.own_model) if self.own_model else None,
            "libraries": library_versions(GENERATING) if self.plays_in_process else None,
            "code": code_hash(type(self).__module__),
        }


@dataclass(frozen=True)
class Session(Games):
    """Whole games, their players drawn from the same pools.

    Args:
        episodes: how many, over the configurations of `grid`.
        repeats: so many episodes one after the other share a configuration.
        trained: kinds of player one of whom has a role in every episode (see assignments.py).
    """

    episodes: int
    grid: str
    _: KW_ONLY
    repeats: int = 1
    trained: Collection[str] = ()

    def _wanted(self, params: Params) -> list[Assignment]:
        lineups = Lineups(self.game, self.players, self.trained)
        found = assign(
            self.game, self.episodes, self._seed(params), self.grid, self.repeats, lineups
        )
        which, parts = self.share
        return [one for at, one in enumerate(found) if at // self.repeats % parts == which]

    def _inputs(self, params: Params) -> dict[str, Any]:
        own = {"grid": self.grid, "repeats": self.repeats, "trained": sorted(self.trained)}
        return {**super()._inputs(params), **own}


def play_together(
    params: Params, sessions: Sequence[Games], title: str = ""
) -> list[list[Episode]]:
    """Play what the journals do not hold yet, all games by turns, with one engine per model.

    Raises:
        AriaError: a player is unknown or cannot be reached, or another process plays these games.
    """
    journals = [session.own_journal(params) for session in sessions]
    kept = [one.kept(params, own.read()) for one, own in zip(sessions, journals, strict=True)]
    missing = [at for at, found in enumerate(kept) if found is None]
    if missing:
        with ExitStack() as held:
            for at in missing:  # before a model is loaded
                held.enter_context(journals[at].lock.held())
            if any(sessions[at].plays_in_process for at in missing):
                from aria_dvc.players.policy import shared_engines  # seconds: transformers

                held.enter_context(shared_engines())
            series = [sessions[at].series(params, journals[at]) for at in missing]
            played = iter(collect_series(series, params.pace, title=title))
    return [next(played) if found is None else found for found in kept]


def collect_session(params: Params, log: str) -> Session:
    """The games of `logs.<log>`."""
    source = params.logs[log]
    return Session(
        get_game(log),
        source.players,
        params.collect,
        source.episodes,
        source.grid,
        model=source.source,
        reward=params.reward_rule(log),
        record_logprobs=params.collect.record_logprobs,
        repeats=source.repeats,
        trained=params.prepare.players,
    )
