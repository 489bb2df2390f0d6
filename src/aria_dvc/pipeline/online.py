"""What online training is handed: how its games are played, and how they are credited anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from aria_dvc.arena.served import with_adapter
from aria_dvc.arena.sessions import Session
from aria_dvc.arena.side_by_side import play_side_by_side
from aria_dvc.credit.chain import credit_table, labelled
from aria_dvc.fingerprints import code_hash
from aria_dvc.games.base import Game
from aria_dvc.games.decided import tell_decisions
from aria_dvc.games.registry import get_game
from aria_dvc.intentions.embedding import embed_texts, embedder_identity
from aria_dvc.intentions.log import Log
from aria_dvc.params import Params
from aria_dvc.player_specs import TRAINED_ONLINE, endpoint_name, specs_of
from aria_dvc.settings.training import PlainReturn

if TYPE_CHECKING:
    import numpy as np
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
        online = self.params.online
        params = with_adapter(self.params, online.servers, adapter)
        counts = online.dealt(self._games)
        sessions = [
            self._session(game, count, adapter, seed) for game, count in counts.items() if count
        ]
        played = play_side_by_side(params, sessions, f"play, iteration {iteration + 1}")
        episodes = [one for found in played for one in found]
        tell_decisions(episodes, params.prepare.decisions)
        return episodes

    def _session(self, name: str, count: int, adapter: Path, seed: int) -> Session:
        """A game between the players of its log, `policy` being the one that `adapter` makes."""
        source, game = self.params.logs[name], get_game(name)
        return Session(
            game,
            source.players if source.is_played else _own_players(game),
            self.params.collect,
            count,
            source.grid,
            adapter=adapter,
            reward=self.params.reward_rule(name),
            purpose=f"online {seed}",
            repeats=self.params.online.repeats,
            trained=TRAINED_ONLINE,
            served_by=self.params.online.servers,
        )

    def inputs(self) -> dict[str, Any]:
        """Everything that decides how games come out and are credited, beside policy and seed."""
        params = self.params
        blocks = ("collect", "prepare", "embed", "cluster", "select_k")
        seated = [spec for game in self._games for spec in specs_of(params.logs[game].players)]
        used = {*params.online.servers, *map(endpoint_name, seated)}
        return {
            "k": params.k,
            "games": {game: params.logs[game].model_dump() for game in self._games},
            "weights": params.online.weights_of(self._games),
            "rewards": {game: params.reward_rule(game) for game in self._games},
            "endpoints": {
                name: endpoint.model_dump(include={"base_url", "model", "options"})
                for name, endpoint in params.endpoints.items()
                if name in used
            },
            "embedding": embedder_identity(params.embed.source, params.endpoints),
            **{name: getattr(params, name).model_dump() for name in blocks},
            "aggregate": params.aggregate.model_dump(exclude={"further"}),
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
            plain = {"return": log.targets, "reward": log.targets, "value": math.nan}
            return log.action_frame().assign(**plain)
        log = labelled(Log.of(turns, self._vectors(turns), params.aggregate.gamma), params)
        # k is chosen as for every variant, and then the credit is the variant's own
        block = params.aggregate.model_copy(update={"method": method, "further": []})
        return credit_table(log, params.model_copy(update={"aggregate": block}))

    def _vectors(self, turns: pd.DataFrame) -> np.ndarray:
        params, embed = self.params, self.params.embed
        return embed_texts(
            turns["embedded"].tolist(),
            embed.source,
            params.pace.embed_batch,
            embed.normalize,
            params.endpoints,
        )


def _own_players(game: Game) -> dict[str, str]:
    """Who plays a game whose log is the user's own: the policy with itself."""
    environment = {game.environment: "embedded"} if game.environment else {}
    return {**dict.fromkeys(game.roles, "policy"), **environment}
