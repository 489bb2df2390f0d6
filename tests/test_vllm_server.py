"""Games against a real vLLM server on this machine; `make test-vllm` runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fake_game import collect_episodes
from tests.settings import pace, play_settings

from aria_dvc.arena.assignments import assign
from aria_dvc.games.registry import get_game
from aria_dvc.models.loading import load_model
from aria_dvc.models.lora import add_lora
from aria_dvc.models.source import ModelSource
from aria_dvc.params import load_params
from aria_dvc.pipeline.online import OnlineGames
from aria_dvc.players.registry import PlayerContext
from aria_dvc.settings.machine import Endpoint
from aria_dvc.settings.training import Lora

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, "scripts/vllm_server.py"]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    if not (ROOT / ".aria_cache/vllm/venv/bin/python").exists():
        subprocess.run([*SERVER, "install"], cwd=ROOT, check=True)
    command = [*SERVER, "start", "--runtime-lora"]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert started.returncode == 0, started.stderr
    yield started.stdout.strip()
    subprocess.run([*SERVER, "stop"], cwd=ROOT, check=True)


def collected(base_url: str, game: str, players: dict[str, str], episodes: int) -> list:
    settings = play_settings(temperature=0.7, max_new_tokens=40)
    quick = pace(in_flight=16, deadline_s=300)
    served = {"local": Endpoint(base_url=base_url, model="policy")}
    context = PlayerContext(settings, quick, ModelSource("data/base_model"), served)
    made = {role: context.player(spec) for role, spec in players.items()}
    kind = get_game(game)
    return collect_episodes(kind, assign(kind, episodes, 0), made, settings, quick)


@pytest.mark.parametrize(
    ("game", "players"),
    [
        ("bargaining", {"alice": "endpoint:local", "bob": "scripted:fair"}),
        ("twenty_questions", {"agent": "endpoint:local", "oracle": "embedded"}),
    ],
)
def test_games_against_the_server_all_end(base_url, game, players):
    episodes = collected(base_url, game, players, 16)
    assert len(episodes) == 16
    role = next(iter(players))
    for episode in episodes:
        assert episode.info["tokens"][role]["completion"] > 0
        assert episode.info["players"][role]["model"] == "policy"


def test_the_server_as_oracle(base_url):
    players = {"agent": "scripted:narrowing", "oracle": "endpoint:local"}
    episodes = collected(base_url, "twenty_questions", players, 4)
    asked = [e.info["tokens"]["oracle"]["prompt"] for e in episodes]
    assert len(episodes) == 4
    assert all(count > 0 for count in asked)


def test_rollouts_with_an_adapter_that_the_server_loads_while_it_runs(base_url, tmp_path):
    base = ROOT / "data/base_model"
    lora = Lora(rank=4, alpha=8, dropout=0.0, target_modules=["q_proj"], layers=1)
    add_lora(load_model(ModelSource(base)), lora, "policy").save_pretrained(tmp_path / "adapter")
    params = load_params(ROOT / "params.yaml")
    params = params.model_copy(
        update={
            "logs": {"bargaining": params.logs["bargaining"]},
            "endpoints": {"local": Endpoint(base_url=base_url, model="policy")},
            "online": params.online.model_copy(update={"rollouts": "endpoint:local", "games": 2}),
        }
    )
    games = OnlineGames(params, "adversarial")
    for iteration in range(2):  # the second time the server has the adapter
        episodes = games.rollout(tmp_path / "adapter", iteration, iteration)
        assert len(episodes) == 2
        for episode in episodes:
            assert episode.info["players"]["alice"]["model"].startswith("policy-")
            assert episode.info["tokens"]["alice"]["completion"] > 0
