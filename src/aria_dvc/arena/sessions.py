"""Games played as params.yaml says: to collect dialogues, and to evaluate policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.arena.collection import assign, collect_episodes, from_journal
from aria_dvc.arena.journal import Journal
from aria_dvc.fingerprints import code_hash
from aria_dvc.games.base import Game
from aria_dvc.games.registry import get_game
from aria_dvc.memory import give_back_memory
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.source import ModelSource
from aria_dvc.player_specs import endpoint_name
from aria_dvc.players.base import Player
from aria_dvc.players.registry import PlayerContext
from aria_dvc.records.episodes import Episode
from aria_dvc.seeds import derived_seed
from aria_dvc.settings import BASE_MODEL, PlaySettings

if TYPE_CHECKING:
    from aria_dvc.params import Params


@dataclass(frozen=True)
class Session:
    """A series of games between the same players.

    Args:
        players: player spec per role (see player_specs.py).
        model: the folder of the model behind `policy` and `base`.
        adapter: LoRA folder of the player `policy`, if any.
        purpose: keeps the seeds of collection, evaluation and rollouts apart.
    """

    game: Game
    players: Mapping[str, str]
    settings: PlaySettings
    episodes: int
    grid: str
    model: str = BASE_MODEL
    adapter: Path | None = None
    reward: str = "win"
    record_logprobs: bool = False
    purpose: str = "collect"

    def play(self, params: Params, title: str = "") -> list[Episode]:
        """Play what the journal does not hold yet.

        Raises AriaError if a player is unknown or cannot be reached.
        """
        seed = derived_seed(params.seed, self.purpose)
        wanted = assign(self.game, self.episodes, seed, self.grid)
        journal = Journal(self._inputs(params, seed))
        finished = from_journal(journal, wanted)
        if len(finished) == len(wanted):  # without loading a model
            return [finished[assignment.episode_id] for assignment in wanted]
        try:
            return collect_episodes(
                self.game,
                wanted,
                self._players(params),
                self.settings,
                params.pace,
                reward=self.reward,
                journal=journal,
                title=title or f"{self.purpose} {self.game.name}",
            )
        finally:
            give_back_memory()

    def _players(self, params: Params) -> dict[str, Player]:
        context = PlayerContext(
            self.settings,
            params.pace,
            ModelSource(self.model, params.base_model.trust_remote_code),
            params.endpoints,
            adapter=self.adapter,
            record_logprobs=self.record_logprobs,
        )
        return {role: context.player(spec) for role, spec in self.players.items()}

    def _inputs(self, params: Params, seed: int) -> dict[str, Any]:
        """Everything that the episodes depend on, for the journal's name."""
        named = [endpoint_name(spec) or "" for spec in self.players.values()]
        used = {name for names in named for name in names.split(",")}
        return {
            "game": self.game.name,
            "seed": seed,
            "grid": self.grid,
            "reward": self.reward,
            "record_logprobs": self.record_logprobs,
            "players": dict(self.players),
            "settings": self.settings.model_dump(),
            "precision": params.pace.precision,
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
        reward=source.reward,
        record_logprobs=params.collect.record_logprobs,
    )
