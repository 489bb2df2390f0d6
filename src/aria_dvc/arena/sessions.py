"""Games played as params.yaml says: to collect dialogues, and to evaluate policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aria_dvc.arena.collection import assign, collect_episodes, from_journal
from aria_dvc.arena.journal import Journal, code_version
from aria_dvc.games.base import Game
from aria_dvc.games.registry import get_game
from aria_dvc.memory import give_back_memory
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.params import Params, PlaySettings
from aria_dvc.players.base import Player
from aria_dvc.players.registry import PlayerContext
from aria_dvc.records.episodes import Episode
from aria_dvc.seeds import derived_seed

# Settings that change how fast games are played but not which games.
PACE = {"in_flight", "deadline_s", "cache_gib"}


@dataclass(frozen=True)
class Session:
    """A series of games between the same players.

    Args:
        players: player spec per role (see players/registry.py).
        base_model: folder of the model behind `policy` and `base`.
        adapter: LoRA folder that `policy` wears, if any.
        purpose: keeps the seeds of collection, evaluation and rollouts apart.
    """

    game: Game
    players: Mapping[str, str]
    settings: PlaySettings
    episodes: int
    grid: str
    base_model: Path
    adapter: Path | None = None
    reward: str = "win"
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
                reward=self.reward,
                journal=journal,
                title=title or f"{self.purpose} {self.game.name}",
            )
        finally:
            give_back_memory()

    def _players(self, params: Params) -> dict[str, Player]:
        context = PlayerContext(
            self.settings,
            str(self.base_model),
            params.endpoints,
            adapter=str(self.adapter) if self.adapter else None,
            trust_remote_code=params.base_model.trust_remote_code,
        )
        return {role: context.player(spec) for role, spec in self.players.items()}

    def _inputs(self, params: Params, seed: int) -> dict[str, Any]:
        """Everything that the episodes depend on, for the journal's name."""
        used = {s.removeprefix("endpoint:") for s in self.players.values() if "endpoint:" in s}
        return {
            "game": self.game.name,
            "seed": seed,
            "grid": self.grid,
            "reward": self.reward,
            "players": dict(self.players),
            "settings": self.settings.model_dump(exclude=PACE | {"adapter"}),
            "endpoints": {
                name: endpoint.model_dump(include={"model", "options"})
                for name, endpoint in params.endpoints.items()
                if name in used
            },
            "base_model": fingerprint(self.base_model),
            "adapter": fingerprint(self.adapter) if self.adapter else None,
            "code": code_version(),
        }


def collect_session(params: Params, game: str, base_model: Path) -> Session:
    """The games of `collect.<game>`."""
    source, settings = params.collect.game(game), params.collect.settings
    category = get_game(game).category
    adapter = settings.adapter.replace("{category}", category) if settings.adapter else None
    return Session(
        get_game(game),
        source.players,
        settings,
        source.episodes,
        source.grid,
        base_model,
        Path(adapter) if adapter else None,
        source.reward,
    )
