"""Games played as params.yaml says: to collect dialogues, and to evaluate policies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.arena.assignments import Assignment, Lineups, assign
from aria_dvc.arena.collection import collect_episodes, from_journal
from aria_dvc.arena.journal import Journal
from aria_dvc.fingerprints import code_hash
from aria_dvc.games.base import Game
from aria_dvc.games.registry import get_game
from aria_dvc.memory import give_back_memory
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.models.source import ModelSource
from aria_dvc.player_specs import Pool, endpoint_name, specs_of, weights_of
from aria_dvc.players.base import Player
from aria_dvc.players.registry import PlayerContext
from aria_dvc.records.episodes import Episode
from aria_dvc.seeds import derived_seed
from aria_dvc.settings import BASE_MODEL, PlaySettings

if TYPE_CHECKING:
    from aria_dvc.params import Params


@dataclass(frozen=True)
class Session:
    """A series of games, their players drawn from the same pools.

    Args:
        players: player spec or weighted specs per role (see player_specs.py).
        reward: the reward rule (games/rewards.py), told to the players and paid at the end.
        model: the folder of the model behind `policy` and `base`.
        adapter: LoRA folder of the player `policy`, if any.
        purpose: keeps the seeds of collection, evaluation and rollouts apart.
        repeats: so many episodes one after the other share a configuration.
        trained: kinds of player one of whom has a role in every episode (see assignments.py).
        served_by: names of the endpoints that play `policy`; none: it is played in process.
        share: (which, of how many) shares of the groups are played; (0, 1) is all.
    """

    game: Game
    players: Mapping[str, Pool]
    settings: PlaySettings
    episodes: int
    grid: str
    model: str = BASE_MODEL
    adapter: Path | None = None
    reward: str = "win"
    record_logprobs: bool = False
    purpose: str = "collect"
    repeats: int = 1
    trained: Collection[str] = ()
    served_by: tuple[str, ...] = ()
    share: tuple[int, int] = (0, 1)

    @property
    def plays_in_process(self) -> bool:
        """Whether a language model is loaded to play it."""
        own = {"base"} if self.served_by else {"base", "policy"}
        return not own.isdisjoint(specs_of(self.players))

    def dealt(self, parts: int) -> list[Session]:
        """The same games in so many parts, whole groups each."""
        return [replace(self, share=(part, parts)) for part in range(parts)]

    def is_finished(self, params: Params) -> bool:
        """Whether the journal holds all games."""
        wanted, journal = self._wanted(params), self._journal(params)
        return len(from_journal(journal, wanted)) == len(wanted)

    def play(self, params: Params, title: str = "") -> list[Episode]:
        """Play what the journal does not hold yet.

        Raises AriaError if a player is unknown or cannot be reached, or another process plays these
        games.
        """
        wanted, journal = self._wanted(params), self._journal(params)
        finished = from_journal(journal, wanted)
        if len(finished) == len(wanted):  # without loading a model
            return [finished[assignment.episode_id] for assignment in wanted]
        with journal.held():  # before a model is loaded
            return self._play_missing(params, wanted, journal, title)

    def _play_missing(
        self, params: Params, wanted: list[Assignment], journal: Journal, title: str
    ) -> list[Episode]:
        finished = from_journal(journal, wanted)
        missing = [assignment for assignment in wanted if assignment.episode_id not in finished]
        named = {spec for assignment in missing for spec in assignment.players.values()}
        try:
            return collect_episodes(
                self.game,
                wanted,
                self._players(params, sorted(named)),
                self.settings,
                params.pace,
                reward=self.reward,
                journal=journal,
                title=title or f"{self.purpose} {self.game.name}",
            )
        finally:
            give_back_memory()

    def _seed(self, params: Params) -> int:
        return derived_seed(params.seed, self.purpose)

    def _wanted(self, params: Params) -> list[Assignment]:
        lineups = Lineups(self.game, self.players, self.trained)
        found = assign(
            self.game, self.episodes, self._seed(params), self.grid, self.repeats, lineups
        )
        which, parts = self.share
        return [one for at, one in enumerate(found) if at // self.repeats % parts == which]

    def _journal(self, params: Params) -> Journal:
        return Journal(self._inputs(params))

    def _players(self, params: Params, named: Iterable[str]) -> dict[str, Player]:
        """The players of those names."""
        context = PlayerContext(
            self.settings,
            params.pace,
            ModelSource(self.model, params.base_model.trust_remote_code),
            params.endpoints,
            adapter=self.adapter,
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
            "share": self.share,
            "grid": self.grid,
            "reward": self.reward,
            "record_logprobs": self.record_logprobs,
            "players": pools,
            "repeats": self.repeats,
            "trained": sorted(self.trained),
            "served_by": self.served_by,
            "settings": self.settings.model_dump(),
            "bfloat16": self.plays_in_process and uses_bfloat16(params.pace.precision),
            "endpoints": {
                name: endpoint.model_dump(include={"base_url", "model", "options"})
                for name, endpoint in params.endpoints.items()
                if name in used
            },
            "model": fingerprint(self.model),
            "adapter": fingerprint(self.adapter) if self.adapter else None,
            "code": code_hash(__name__),
        }


def collect_session(params: Params, log: str) -> Session:
    """The games of `logs.<log>`."""
    source = params.logs[log]
    return Session(
        get_game(log),
        source.players,
        params.collect,
        source.episodes,
        source.grid,
        source.source,
        reward=params.reward_rule(log),
        record_logprobs=params.collect.record_logprobs,
        repeats=source.repeats,
        trained=params.prepare.players,
    )
