"""What online training is handed: how its games are played, and how they are credited anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.arena.sessions import Session
from aria_dvc.credit.chain import credited
from aria_dvc.fingerprints import code_hash
from aria_dvc.games.registry import get_game
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.log import Log
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.params import Params
from aria_dvc.player_specs import find_endpoint, parse_spec
from aria_dvc.servers.adapters import load_adapter
from aria_dvc.settings import BASE_MODEL, IN_PROCESS

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.records.episodes import Episode


@dataclass(frozen=True)
class OnlineGames:
    """The games of one category, played by the policy of the moment."""

    params: Params
    category: str

    @property
    def _games(self) -> list[str]:
        return self.params.games_of(self.category)

    def rollout(self, adapter: Path, iteration: int, seed: int) -> list[Episode]:
        """`online.games` games with the policy that `adapter` makes, dealt to all games."""
        online, games = self.params.online, self._games
        params, spec = self.params, "policy"
        if online.rollouts != IN_PROCESS:
            params = self.served(adapter)
            spec = online.rollouts
        counts = [
            online.games // len(games) + (i < online.games % len(games)) for i in range(len(games))
        ]
        return [
            episode
            for game, count in zip(games, counts, strict=True)
            for episode in self._session(game, count, adapter, spec, seed).play(params)
        ]

    def _session(self, name: str, count: int, adapter: Path, spec: str, seed: int) -> Session:
        source, game = self.params.logs[name], get_game(name)
        players = dict.fromkeys(game.roles, spec)
        if game.environment:
            players[game.environment] = source.players.get(game.environment, "embedded")
        return Session(
            game,
            players,
            self.params.collect,
            count,
            source.grid,
            BASE_MODEL,
            adapter,
            self.params.reward_rule(name),
            purpose=f"online {seed}",
        )

    def served(self, adapter: Path) -> Params:
        """Have the vLLM server load `adapter` under a name of its own; the params that use it.

        The name follows from the weights, so what the server has loaded before is the same.

        Raises:
            AriaError: the server does not load the adapter.
        """
        name = parse_spec(self.params.online.rollouts).name
        endpoint = find_endpoint(name, self.params.endpoints)
        fresh = load_adapter(name, endpoint, f"policy-{fingerprint(adapter)[:16]}", adapter)
        return self.params.model_copy(update={"endpoints": {**self.params.endpoints, name: fresh}})

    def inputs(self) -> dict[str, Any]:
        """Everything that decides how games come out and are credited, beside policy and seed."""
        params = self.params
        blocks = ("collect", "embed", "cluster", "select_k", "aggregate")
        return {
            "k": params.k,
            "games": {game: params.logs[game].model_dump() for game in self._games},
            "rewards": {game: params.reward_rule(game) for game in self._games},
            "endpoints": {
                name: endpoint.model_dump(include={"base_url", "model", "options"})
                for name, endpoint in params.endpoints.items()
            },
            "embedding": fingerprint(params.embed.source),
            **{name: getattr(params, name).model_dump() for name in blocks},
            "code": code_hash(__name__),
        }

    def aggregate(self, turns: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """The rewards table of every game's turns: embedded, clustered and credited anew."""
        return {game: self._credit(frame) for game, frame in turns.items()}

    def _credit(self, turns: pd.DataFrame) -> pd.DataFrame:
        params, embed = self.params, self.params.embed
        vectors = embed_texts(
            turns["text"].tolist(),
            embed.source,
            params.pace.embed_batch,
            embed.normalize,
            params.endpoints,
        )
        return credited(Log.of(turns, vectors, params.aggregate.gamma), params)[0]
