"""What online training is handed: how its games are played, and how they are credited anew."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aria_dvc
from aria_dvc.arena.journal import code_version
from aria_dvc.arena.sessions import PACE, Session
from aria_dvc.credit.aggregation import choose_k, chosen_labels, credit_table
from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.space import build_space, distinct_points
from aria_dvc.learning.checkpoints import folder_hash
from aria_dvc.params import IN_PROCESS, Params
from aria_dvc.player_specs import find_endpoint, parse_spec
from aria_dvc.records.names import PLAYABLE
from aria_dvc.servers.adapters import load_adapter

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.records.episodes import Episode

CREDITING = ("credit", "intentions", "pipeline/online.py")  # code beside what the games run


@dataclass(frozen=True)
class OnlineGames:
    """The games of one category, played by the policy of the moment."""

    params: Params
    category: str
    base_model: Path

    def __post_init__(self) -> None:
        if not self._games:
            raise AriaError(
                f"policy.online: no game of {self.category} can be played: set iterations to 0"
            )

    @property
    def _games(self) -> list[str]:
        return [game for game in self.params.games_of(self.category) if game in PLAYABLE]

    def rollout(self, adapter: Path, iteration: int, seed: int) -> list[Episode]:
        """`policy.online.games` games with the policy that wears `adapter`, dealt to all games."""
        online, games = self.params.policy.online, self._games
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
        source, game = self.params.collect.game(name), get_game(name)
        players = dict.fromkeys(game.roles, spec)
        if game.environment:
            players[game.environment] = source.players.get(game.environment, "embedded")
        return Session(
            game,
            players,
            self.params.collect.settings,
            count,
            source.grid,
            self.base_model,
            adapter,
            source.reward,
            purpose=f"online {seed}",
        )

    def served(self, adapter: Path) -> Params:
        """Have the vLLM server load `adapter` under a name of its own; the params that use it.

        The name follows from the weights, so what the server has loaded before is the same.

        Raises:
            AriaError: the server does not load the adapter.
        """
        name = parse_spec(self.params.policy.online.rollouts).name
        endpoint = find_endpoint(name, self.params.endpoints)
        fresh = load_adapter(name, endpoint, f"policy-{folder_hash(adapter)[:16]}", adapter)
        return self.params.model_copy(update={"endpoints": {**self.params.endpoints, name: fresh}})

    def inputs(self) -> dict[str, Any]:
        """Everything that decides how games come out and are credited, beside policy and seed."""
        params, collect = self.params, self.params.collect
        blocks = ("embed", "cluster", "select_k", "aggregate")
        return {
            "k": params.k,
            "games": {game: collect.game(game).model_dump() for game in self._games},
            "settings": collect.settings.model_dump(exclude=PACE | {"adapter"}),
            "endpoints": {
                name: endpoint.model_dump(include={"model", "options"})
                for name, endpoint in params.endpoints.items()
            },
            "embedding": fingerprint(params.embed.source),
            **{name: getattr(params, name).model_dump() for name in blocks},
            "code": [code_version(), _crediting_code()],
        }

    def aggregate(self, turns: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """The rewards table of every game's turns: embedded, clustered and credited anew."""
        return {game: self._credit(game, frame) for game, frame in turns.items()}

    def _credit(self, game: str, turns: pd.DataFrame) -> pd.DataFrame:
        params, embed = self.params, self.params.embed
        vectors = embed_texts(
            turns["text"].tolist(),
            embed.source,
            embed.batch_size,
            embed.normalize,
            params.endpoints,
        )
        tree, nested = build_space(turns, vectors, game, params.cluster)
        selection, _ = choose_k(
            turns,
            vectors,
            nested,
            distinct_points(tree[:, 2]),
            game,
            params.select_k,
            params.aggregate,
            k=None if params.k == "auto" else params.k,
            seed=params.seed,
        )
        labels = chosen_labels(turns, nested, selection)
        return credit_table(turns, vectors, labels, params.aggregate, params.seed)[0]


def _crediting_code() -> str:
    """Hash of the source of everything that credits games anew."""
    root = Path(aria_dvc.__file__).parent
    state = hashlib.sha256()
    for name in CREDITING:
        path = root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            state.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return state.hexdigest()
