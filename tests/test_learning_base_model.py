"""The base model: materialised from several sources, warm-started, the same twice."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from learning_tiny import PACE, save_tiny_base, tiny_model, tiny_tokenizer, warm_start_settings
from safetensors.torch import load_file

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_json
from aria_dvc.games.base import Match
from aria_dvc.learning.base_model import freeze_all_but, materialise, warm_start_examples
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.source import ModelSource
from aria_dvc.settings.dialogues import BaseModelParams

ROLES = ("alice", "bob")


class FinishedMatch(Match):
    """A match of `lines` that has ended: what a player of it sees is what any match shows."""

    to_move = None
    roles = ROLES

    def __init__(self, game, number, rewards):
        super().__init__({})
        self.game = game
        self.lines = [(ROLES[i % 2], f"{game} line {number} {i}") for i in range(4)]
        self.outcome = SimpleNamespace(rewards=rewards)

    def system_prompt(self, role):
        return f"You are {role}."

    def play(self, text):
        raise AssertionError("the match is over")

    def forfeit(self, kind, text=""):
        raise AssertionError("the match is over")


def dialogues(game, n, seed, grid="default"):
    rewards = ({"alice": 1.0, "bob": 0.0}, {"alice": 0.5, "bob": 0.5})
    return [FinishedMatch(game, seed + i, rewards[i % 2]) for i in range(n)]


def base_params(source, **settings):
    return BaseModelParams(
        source=str(source),
        trust_remote_code=False,
        warm_start=True,
        games=["bargaining", "negotiation"],
        warm_start_settings=warm_start_settings(**settings),
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return save_tiny_base(tmp_path_factory.mktemp("source") / "model")


def make(source, out, cache, progress=None, **settings):
    return materialise(
        base_params(source, **settings), PACE, out,
        seed=0, dialogues=dialogues, cache=cache, progress=progress,
    )  # fmt: skip


def test_two_runs_write_the_same_bytes(source, tmp_path):
    for name in ("a", "b"):
        metrics = make(source, tmp_path / name, tmp_path / f"cache {name}", episodes=4, epochs=2)
    assert metrics["steps"] > 2
    first, second = (tmp_path / name / "model.safetensors" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_killed_warm_start_goes_on_and_a_finished_one_is_restored(source, tmp_path):
    make(source, tmp_path / "whole", tmp_path / "other", episodes=4, epochs=2)

    def dies(done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(source, tmp_path / "out", tmp_path / "cache", dies, episodes=4, epochs=2)
    steps = []
    for _ in range(2):
        make(
            source, tmp_path / "out", tmp_path / "cache", lambda done, total: steps.append(done),
            episodes=4, epochs=2,
        )  # fmt: skip
        assert steps == list(range(3, steps[-1] + 1))
    whole, resumed = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "out"))
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor)


def test_warm_start_teaches_and_leaves_embeddings_alone(source, tmp_path):
    make(source, tmp_path / "out", tmp_path / "cache", episodes=4, epochs=8, learning_rate=1e-2)
    losses = pd.read_csv(tmp_path / "out" / "history.csv")["loss"].tolist()
    assert losses[-1] < 0.95 * losses[0]
    trained = load_file(tmp_path / "out" / "model.safetensors")
    start = load_file(source.folder / "model.safetensors")
    assert {tensor.dtype for tensor in trained.values()} == {torch.bfloat16}
    embeddings = "model.embed_tokens.weight"
    assert torch.equal(trained[embeddings], start[embeddings].bfloat16())
    moved = [n for n in trained if not torch.equal(trained[n], start[n].bfloat16())]
    assert any("layers.0" in name for name in moved)


def test_written_folder_loads_with_its_template(source, tmp_path):
    make(source, tmp_path / "out", tmp_path / "cache")
    load_model(ModelSource(tmp_path / "out"))
    Renderer(load_tokenizer(ModelSource(tmp_path / "out")))
    assert {"model.safetensors", "tokenizer.json", "chat_template.jinja", "metrics.json"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }


def test_another_template_or_generation_setting_is_delivered(tmp_path):
    source = save_tiny_base(tmp_path / "model")
    make(source, tmp_path / "out", tmp_path / "cache")
    template = source.folder / "chat_template.jinja"
    template.write_text(template.read_text() + "{# unused #}")
    generation = source.folder / "generation_config.json"
    write_json(generation, {**read_json(generation), "temperature": 0.25})
    make(source, tmp_path / "out", tmp_path / "cache")
    assert (tmp_path / "out" / template.name).read_text().endswith("{# unused #}")
    assert read_json(tmp_path / "out" / generation.name)["temperature"] == 0.25


def test_only_roles_that_did_not_lose_are_imitated():
    examples = warm_start_examples(
        warm_start_settings(episodes=2), ["bargaining"], dialogues, Renderer(tiny_tokenizer()), 0
    )
    assert [(e.episode_id, e.role) for e in examples] == [
        ("bargaining-0", "alice"), ("bargaining-1", "alice"), ("bargaining-1", "bob"),
    ]  # fmt: skip


def test_every_game_has_its_own_number_of_dialogues_and_grid():
    asked = []

    def noted(game, n, seed, grid):
        asked.append((game, n, grid))
        return dialogues(game, n, seed, grid)

    by_game = {"bargaining": {"episodes": 5, "grid": "glee48"}, "negotiation": {"grid": "small"}}
    settings = warm_start_settings(episodes=2, by_game=by_game)
    games = ["bargaining", "negotiation", "twenty_questions"]
    warm_start_examples(settings, games, noted, Renderer(tiny_tokenizer()), 0)
    assert asked[:2] == [("bargaining", 5, "glee48"), ("negotiation", 2, "small")]
    assert asked[2:] == [("twenty_questions", 2, "default")]


def test_no_dialogue_worth_imitating_is_an_error():
    settings = warm_start_settings(max_tokens=16)
    with pytest.raises(AriaError, match="none of 3 won dialogues has at most 16 tokens"):
        warm_start_examples(settings, ["bargaining"], dialogues, Renderer(tiny_tokenizer()), 0)


def test_layers_limits_training_to_the_top():
    model = tiny_model(layers=3)
    freeze_all_but(model, 1)
    trained = {n.split(".")[2] for n, p in model.named_parameters() if p.requires_grad}
    assert trained == {"2"}


@pytest.mark.parametrize("source", ["/no/such/folder", "no-such/model-id"])
def test_unknown_source_is_one_line_and_leaves_nothing(source, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(AriaError, match="cannot be loaded") as caught:
        make(source, tmp_path / "out", tmp_path / "cache")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_model_without_chat_template_is_refused(source, tmp_path):
    bare = tmp_path / "bare"
    tiny_model().save_pretrained(bare)
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    tokenizer.save_pretrained(bare)
    with pytest.raises(AriaError, match="no chat template"):
        make(bare, tmp_path / "out", tmp_path / "cache")


@pytest.mark.slow
def test_packaged_model_is_dequantised_once_and_for_all(tmp_path):
    params = base_params("smollm2-135m-instruct").model_copy(update={"warm_start": False})
    metrics = materialise(params, PACE, tmp_path / "out", seed=0, dialogues=dialogues)
    assert metrics["parameters"] == 134_515_008
    config = read_json(tmp_path / "out" / "config.json")
    assert "quantization_config" not in config
    assert "/" not in str(config.get("_name_or_path", ""))
    written = ModelSource(tmp_path / "out")
    model, tokenizer = load_model(written), load_tokenizer(written)
    chat = [{"role": "user", "content": "What is the capital of France? One word."}]
    prompt = torch.tensor([Renderer(tokenizer).prompt_ids(chat)])
    said = model.generate(input_ids=prompt, do_sample=False, max_new_tokens=8, pad_token_id=2)
    assert "Paris" in tokenizer.decode(said[0, prompt.shape[1] :].tolist())
