"""Games against a real vLLM server on this machine; `make test-vllm` runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aria_dvc.arena.collection import assign, collect_episodes
from aria_dvc.games.registry import get_game
from aria_dvc.params import Endpoint, PlaySettings
from aria_dvc.players.registry import PlayerContext

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, "scripts/vllm_server.py"]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    if not (ROOT / ".aria_cache/vllm/venv/bin/python").exists():
        subprocess.run([*SERVER, "install"], cwd=ROOT, check=True)
    started = subprocess.run([*SERVER, "start"], cwd=ROOT, capture_output=True, text=True)
    assert started.returncode == 0, started.stderr
    yield started.stdout.strip()
    subprocess.run([*SERVER, "stop"], cwd=ROOT, check=True)


def collected(base_url: str, game: str, players: dict[str, str], episodes: int) -> list:
    settings = PlaySettings(
        in_flight=16,
        temperature=0.7,
        top_p=0.95,
        max_new_tokens=40,
        max_reasks=2,
        deadline_s=300,
    )
    context = PlayerContext(
        settings, endpoints={"local": Endpoint(base_url=base_url, model="policy")}
    )
    made = {role: context.player(spec) for role, spec in players.items()}
    kind = get_game(game)
    return collect_episodes(kind, assign(kind, episodes, 0), made, settings)


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
