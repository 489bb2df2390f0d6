"""Games against a real vLLM server on this machine; `make test-vllm` runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fake_game import collect_episodes
from tests.settings import pace, play_settings

from aria_dvc.arena.assignments import assign
from aria_dvc.arena.evaluate import evaluate_category
from aria_dvc.chat import Renderer
from aria_dvc.games.registry import get_game
from aria_dvc.learning.examples import Dialogue, build_examples
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import add_lora
from aria_dvc.models.source import ModelSource
from aria_dvc.params import Params, load_params
from aria_dvc.pipeline.online import OnlineGames
from aria_dvc.players.dialogues import scripted_dialogues
from aria_dvc.players.registry import PlayerContext
from aria_dvc.settings.machine import Endpoint
from aria_dvc.settings.training import Lora

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, "scripts/vllm_server.py"]
BASE = ModelSource(ROOT / "data/base_model")


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    if not (ROOT / ".aria_cache/vllm/venv/bin/python").exists():
        subprocess.run([*SERVER, "install"], cwd=ROOT, check=True)
    command = [*SERVER, "start", "--runtime-lora", "--max-lora-rank", "8"]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert started.returncode == 0, started.stderr
    yield started.stdout.strip()
    subprocess.run([*SERVER, "stop"], cwd=ROOT, check=True)


def collected(base_url: str, game: str, players: dict[str, str], episodes: int) -> list:
    settings = play_settings(temperature=0.7, max_new_tokens=40)
    quick = pace(in_flight=16, deadline_s=300)
    served = {"local": Endpoint(base_url=base_url, model="policy")}
    context = PlayerContext(settings, quick, BASE, served)
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


SAYS = {"first": "I keep 30%.", "second": "I keep 40%."}  # soon accepted: short games


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An adapter per sentence of SAYS, which says it whatever it hears."""
    folder = tmp_path_factory.mktemp("adapters")
    return {name: taught(text, folder / name) for name, text in SAYS.items()}


def taught(sentence: str, folder: Path) -> Path:
    import torch

    lora = Lora(rank=8, alpha=16, dropout=0.0, target_modules=["q_proj", "v_proj"], layers=None)
    model = add_lora(load_model(BASE), lora, "policy")
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    lessons = build_examples(dialogues_saying(sentence), Renderer(load_tokenizer(BASE)), 1024)
    for example in lessons.items:
        ids = torch.from_numpy(example.input_ids)[None]
        said = torch.from_numpy(example.action)[None] >= 0
        model(input_ids=ids, labels=ids.where(said, -100)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    return folder


def dialogues_saying(sentence: str) -> Iterator[Dialogue]:
    """Bargaining as either role sees it that says nothing but `sentence`."""
    for number, match in enumerate(scripted_dialogues("bargaining", 16, 7, "glee48_unrated")):
        for role in match.roles:
            places = [place for place, (who, _) in enumerate(match.lines) if who == role]
            messages = [
                {**message, "content": sentence} if message["role"] == "assistant" else message
                for message in match.messages(role)
            ]
            yield Dialogue("bargaining", str(number), role, messages, places)


def served_params(base_url: str, **changes: Any) -> Params:
    params = load_params(ROOT / "params.yaml")
    endpoints = {"local": Endpoint(base_url=base_url, model="policy")}
    return params.model_copy(
        update={
            "endpoints": endpoints,
            "logs": {"bargaining": params.logs["bargaining"]},
            **changes,
        }
    )


def test_rollouts_play_every_adapter_that_the_server_is_given(base_url, adapters):
    params = load_params(ROOT / "params.yaml")
    online = params.online.model_copy(update={"rollouts": "endpoint:local", "games": 8})
    games = OnlineGames(served_params(base_url, online=online), "adversarial")
    for iteration, name in enumerate(("first", "second", "first")):  # at last one it knows
        said = set()
        episodes = games.rollout(adapters[name], iteration, iteration)
        assert len(episodes) == online.games
        for episode in episodes:
            for role, player in episode.info["players"].items():
                if player["name"] == "policy":
                    assert player["model"].startswith("policy-")
                    assert episode.info["tokens"][role]["completion"] > 0
                    said |= {one.text for one in episode.utterances if one.role == role}
        assert said == {SAYS[name]}


def test_what_the_server_plays_is_judged_as_what_this_process_plays(base_url, adapters):
    """The same games end alike, since either says one sentence; the base model's do not."""
    params = load_params(ROOT / "params.yaml")
    judged = {"bargaining": params.evaluate.games["bargaining"].model_copy(update={"episodes": 2})}
    here = params.evaluate.model_copy(update={"games": judged})
    there = here.model_copy(update={"rollouts": "endpoint:local"})

    def ends(evaluate: Any, variant: str, adapter: Path | None) -> list[tuple[float, int]]:
        changed = served_params(base_url, evaluate=evaluate)
        table = evaluate_category(changed, variant, "adversarial", adapter)
        assert len(table) == 8
        return list(zip(table["utility"], table["turns"], strict=True))

    trained = ends(there, "first", adapters["first"])
    assert trained == ends(here, "first", adapters["first"])
    assert trained != ends(there, "second", adapters["second"])
    assert trained != ends(there, "vanilla", None)
