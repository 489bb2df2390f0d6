"""The policy player: loading, adapters, sharing of one model, and rendering."""

from __future__ import annotations

import asyncio
import shutil

import pytest
import torch
from safetensors.torch import load_file
from tests.fake_game import CountingGame
from tests.settings import pace, play_settings
from tests.tiny_models import tiny_model, tiny_tokenizer

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.models.hardware import inference_dtype
from aria_dvc.models.loading import load_for_play
from aria_dvc.models.source import ModelSource
from aria_dvc.players.base import Reply, Request
from aria_dvc.players.policy import TurnRenderer
from aria_dvc.players.registry import PlayerContext, make_player

DIALOGUE = [
    {"role": "system", "content": "You are alice."},
    {"role": "user", "content": "You start."},
    {"role": "assistant", "content": "I take 60."},
    {"role": "user", "content": "No <|end|> deal <|start|>."},
    {"role": "assistant", "content": "Then 50."},
    {"role": "user", "content": "No."},
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    tiny_model().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def adapter(base, tmp_path_factory):
    from peft import LoraConfig, get_peft_model

    folder = tmp_path_factory.mktemp("adapter")
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    get_peft_model(tiny_model(), lora).save_pretrained(folder)
    return folder


def greedy_context(base, **options) -> PlayerContext:
    return PlayerContext(play_settings(temperature=0.0), pace(), ModelSource(base), **options)


def say(player) -> Reply:
    match = CountingGame().start({"rounds": 4, "topic": 0})
    request = Request("e", "alice", DIALOGUE, match, seed=0)
    reply = asyncio.run(player.reply(request))
    player.finished("e")
    return reply


def test_policy_without_adapter_and_base_share_one_model(base):
    context = greedy_context(base)
    policy, vanilla = context.player("policy"), context.player("base")
    assert policy.engine is vanilla.engine
    assert (policy.name, vanilla.name) == ("policy", "base")
    assert say(policy) == say(vanilla)


def test_an_adapter_changes_the_policy_and_not_the_base(base, adapter):
    context = greedy_context(base, adapter=adapter, record_logprobs=True)
    policy, vanilla = context.player("policy"), context.player("base")
    assert policy.engine is not vanilla.engine
    assert policy.model == f"{base}+{adapter}"
    said, plain = say(policy), say(vanilla)
    assert said.logprobs != plain.logprobs


def test_a_policy_of_its_own_weights_does_not_change_the_base(base, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(base, own)
    tiny_model(seed=1).save_pretrained(own)
    context = greedy_context(base, own_model=ModelSource(own), record_logprobs=True)
    policy, vanilla = context.player("policy"), context.player("base")
    assert policy.engine is not vanilla.engine
    assert (policy.model, vanilla.model) == (str(own), str(base))
    alone = greedy_context(own, record_logprobs=True).player("policy")
    assert say(policy).logprobs == say(alone).logprobs != say(vanilla).logprobs


def test_an_adapters_folder_as_the_model_is_its_base_wearing_it(base, tmp_path):
    """As base and as policy alike: nothing but the source says which adapter that is."""
    from peft import LoraConfig, get_peft_model

    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    wearing = get_peft_model(tiny_model(), lora)
    wearing.peft_config["default"].base_model_name_or_path = str(base)
    wearing.save_pretrained(tmp_path)
    context = greedy_context(tmp_path, record_logprobs=True)
    worn = say(greedy_context(base, adapter=tmp_path, record_logprobs=True).player("policy"))
    for spec in ("policy", "base"):
        player = context.player(spec)
        assert player.adapter is None
        said = say(player)
        assert said.text == worn.text
        assert said.logprobs == pytest.approx(worn.logprobs, abs=1e-5)
    plain = say(greedy_context(base, record_logprobs=True).player("policy"))
    assert plain.logprobs != pytest.approx(worn.logprobs, abs=1e-2)


@torch.inference_mode()
def test_an_adapter_is_played_as_peft_would(base, adapter):
    from peft import PeftModel

    played = load_for_play(ModelSource(base), adapter, "float32")
    loose = PeftModel.from_pretrained(tiny_model(), str(adapter)).eval()
    ids = torch.tensor([Renderer(tiny_tokenizer()).prompt_ids(DIALOGUE)])
    assert torch.allclose(played(ids).logits, loose(ids).logits, atol=1e-4)
    assert not torch.allclose(played(ids).logits, tiny_model()(ids).logits, atol=1e-2)


def test_recorded_tokens_are_what_was_said(base):
    reply = say(greedy_context(base, record_logprobs=True).player("policy"))
    tokenizer = tiny_tokenizer()
    assert tokenizer.decode(reply.token_ids, skip_special_tokens=True).strip() == reply.text
    assert len(reply.logprobs) == len(reply.token_ids) == reply.completion_tokens
    assert reply.prompt_tokens == len(Renderer(tokenizer).prompt_ids(DIALOGUE))


def test_a_reply_that_ends_at_the_limit_is_known_as_cut(base):
    player = greedy_context(base, record_logprobs=True).player("policy")
    reply = say(player)
    assert reply.cut == (reply.token_ids[-1] not in player.renderer.end_ids())
    assert reply.cut, "the tiny model does not end its turns"


@pytest.mark.parametrize("pickled", ["model", "adapter"])
def test_pickled_weights_are_not_read(base, adapter, tmp_path, pickled):
    source, worn = tmp_path / "base", tmp_path / "adapter"
    shutil.copytree(base, source)
    shutil.copytree(adapter, worn)
    folder, name = {
        "model": (source, "pytorch_model.bin"), "adapter": (worn, "adapter_model.bin")
    }[pickled]  # fmt: skip
    weights = next(folder.glob("*.safetensors"))
    torch.save(load_file(weights), folder / name)
    weights.unlink()
    with pytest.raises(AriaError, match=f"{folder.name} has only pickled weights"):
        load_for_play(ModelSource(source), worn, "float32")


def test_the_renderer_that_remembers_renders_the_same():
    plain, remembering = Renderer(tiny_tokenizer()), TurnRenderer(tiny_tokenizer())
    for end in (2, 4, 6, 4, 2):
        assert remembering.prompt_ids(DIALOGUE[:end]) == plain.prompt_ids(DIALOGUE[:end])
    other = [{**DIALOGUE[0], "content": "You are bob."}, *DIALOGUE[1:]]
    assert remembering.prompt_ids(other) == plain.prompt_ids(other)


def test_bfloat16_plays(base):
    context = PlayerContext(play_settings(), pace(precision="bfloat16"), ModelSource(base))
    player = make_player("policy", context)
    assert player.engine.model.dtype == torch.bfloat16
    assert say(player).completion_tokens > 0


def test_precision_by_name():
    assert inference_dtype("float32") == torch.float32
    assert inference_dtype("auto") in (torch.float32, torch.bfloat16)
    with pytest.raises(AriaError, match="use auto"):
        inference_dtype("float16")


def test_models_and_adapters_that_cannot_be_loaded_are_named(base, tmp_path):
    context = greedy_context(tmp_path)
    with pytest.raises(AriaError, match="cannot be loaded"):
        make_player("policy", context)
    with pytest.raises(AriaError, match="adapter"):
        make_player("policy", greedy_context(base, adapter=tmp_path))
