"""What online training is handed: how its games are played, and how they are credited anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from aria_dvc.arena.sessions import Session
from aria_dvc.credit.chain import credit_table, labelled
from aria_dvc.fingerprints import code_hash
from aria_dvc.games.registry import get_game
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.log import Log
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.params import Params
from aria_dvc.player_specs import endpoint_name, find_endpoint, together
from aria_dvc.servers.adapters import load_adapter
from aria_dvc.settings import BASE_MODEL, PlainReturn

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from aria_dvc.records.episodes import Episode

POLICY = "policy"


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
        params, spec = self.params, POLICY
        if online.servers:
            params, spec = self.served(adapter), together(online.servers)
        counts = [
            online.games // len(games) + (i < online.games % len(games)) for i in range(len(games))
        ]
        from aria_dvc.players.policy import shared_models

        with shared_models():
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
            source.reward,
            purpose=f"online {seed}",
        )

    @property
    def learners(self) -> list[str]:
        """The names under which games record the policy."""
        servers = self.params.online.servers
        return [POLICY, together(servers)] if servers else [POLICY]

    def served(self, adapter: Path) -> Params:
        """Have every vLLM server load `adapter` under a name of its own; the params that use it.

        The name follows from the weights, so what a server has loaded before is the same.

        Raises:
            AriaError: a server does not load the adapter.
        """
        model, endpoints = f"policy-{fingerprint(adapter)[:16]}", dict(self.params.endpoints)
        for name in map(endpoint_name, self.params.online.servers):
            assert name is not None  # checked with the parameters
            endpoint = find_endpoint(name, endpoints)
            endpoints[name] = load_adapter(name, endpoint, model, adapter)
        return self.params.model_copy(update={"endpoints": endpoints})

    def inputs(self) -> dict[str, Any]:
        """Everything that decides how games come out and are credited, beside policy and seed."""
        params = self.params
        blocks = ("collect", "embed", "cluster", "select_k", "aggregate")
        return {
            "k": params.k,
            "games": {game: params.logs[game].model_dump() for game in self._games},
            "endpoints": {
                name: endpoint.model_dump(include={"base_url", "model", "options"})
                for name, endpoint in params.endpoints.items()
            },
            "embedding": fingerprint(params.embed.source),
            **{name: getattr(params, name).model_dump() for name in blocks},
            "code": code_hash(__name__),
        }

    def aggregate(
        self, turns: dict[str, pd.DataFrame], credit: str | None
    ) -> dict[str, pd.DataFrame]:
        """The rewards table of every game's turns, credited anew from these alone.

        Args:
            credit: a method of aggregate, for which the utterances are embedded and clustered, or
                a plain return; None: aggregate.method.
        """
        method = credit or self.params.aggregate.method
        return {game: self._credit(frame, method) for game, frame in turns.items()}

    def _credit(self, turns: pd.DataFrame, method: str) -> pd.DataFrame:
        params = self.params
        if method in get_args(PlainReturn):
            log = Log.of(turns, None, params.aggregate.gamma)
            return log.action_frame().assign(**{"return": log.targets, "reward": log.targets})
        log = labelled(Log.of(turns, self._vectors(turns), params.aggregate.gamma), params)
        # k is chosen as for every variant, and then the credit is the variant's own
        block = params.aggregate.model_copy(update={"method": method, "further": []})
        return credit_table(log, params.model_copy(update={"aggregate": block}))

    def _vectors(self, turns: pd.DataFrame) -> np.ndarray:
        params, embed = self.params, self.params.embed
        return embed_texts(
            turns["text"].tolist(),
            embed.source,
            params.pace.embed_batch,
            embed.normalize,
            params.endpoints,
        )
