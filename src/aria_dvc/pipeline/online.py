"""What online training is handed: how its games are played, and how they are credited anew."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aria_dvc
from aria_dvc.arena.journal import code_version, content_fingerprint
from aria_dvc.arena.sessions import PACE, Session
from aria_dvc.credit.chain import credited
from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.log import Log
from aria_dvc.learning.checkpoints import folder_hash
from aria_dvc.params import ENDPOINT, IN_PROCESS, Params
from aria_dvc.records.names import PLAYABLE

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.params import Endpoint
    from aria_dvc.records.episodes import Episode

# Code that credits games, beside what they run.
CREDITING = ("credit", "intentions", "records/turns.py", "pipeline/online.py")
SHOWN = 200  # characters of a server's complaint that are passed on


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

        The name follows from the weights, so what the server has loaded before is the same. It
        must run with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora and see this
        machine's files.

        Raises:
            AriaError: the server does not load the adapter.
        """
        name = self.params.policy.online.rollouts.removeprefix(ENDPOINT)
        if name not in self.params.endpoints:
            raise AriaError(
                f"policy.online.rollouts: no endpoint {name} under endpoints in params.yaml"
            )
        endpoint, model = self.params.endpoints[name], f"policy-{folder_hash(adapter)[:16]}"
        problem = _load_adapter(endpoint, model, adapter)
        if problem:
            raise AriaError(
                f"endpoint {name} ({endpoint.base_url}) did not load the adapter ({problem}): "
                "start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"
            )
        fresh = endpoint.model_copy(update={"model": model})
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
            "embedding": content_fingerprint(params.embed.source),
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
        return credited(Log.of(turns, vectors, params.aggregate.gamma), params)[0]


def _load_adapter(endpoint: Endpoint, model: str, adapter: Path) -> str | None:
    """Load `adapter` as `model`; what went wrong, or None."""
    import httpx

    key = os.environ.get(endpoint.api_key_env or "", "")
    try:
        answer = httpx.post(
            endpoint.base_url.rstrip("/") + "/load_lora_adapter",
            json={"lora_name": model, "lora_path": str(adapter.resolve())},
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=endpoint.timeout_s,
        )
    except httpx.HTTPError as error:
        return type(error).__name__
    said = " ".join(answer.text.split())
    if answer.is_success or "already been loaded" in said:
        return None
    said = said.replace(key, "***") if key else said
    return f"HTTP {answer.status_code} {said[:SHOWN]}".strip()


def _crediting_code() -> str:
    """Hash of the source of everything that credits games anew."""
    root = Path(aria_dvc.__file__).parent
    state = hashlib.sha256()
    for name in CREDITING:
        path = root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            state.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return state.hexdigest()
