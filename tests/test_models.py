"""The door to models: adapters as sources, fingerprints, packaged weights, quiet."""

import hashlib
import shutil
import sys

import pytest
import torch
from learning_tiny import (
    LORA,
    PACE,
    made_up_game,
    policy_params,
    save_tiny_base,
    tiny_model,
    tiny_tokenizer,
)
from safetensors.torch import load_file, save_file
from transformers.utils import logging as theirs

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_json
from aria_dvc.learning.base_model import materialise
from aria_dvc.learning.policy import train_policy
from aria_dvc.models import fingerprint as fingerprint_module
from aria_dvc.models import packaged
from aria_dvc.models.adapted import AdaptedLinear
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.hardware import bfloat16_is_faster, inference_dtype, uses_bfloat16
from aria_dvc.models.loading import load_for_play, load_model, load_tokenizer
from aria_dvc.models.lora import add_lora, load_adapter, merge_adapter
from aria_dvc.models.quiet import quiet_transformers
from aria_dvc.models.saving import save_model
from aria_dvc.models.source import ModelSource
from aria_dvc.settings.dialogues import BASE_MODEL, BaseModelParams

IDS = torch.tensor([[3, 5, 7, 11]])


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_tiny_base(tmp_path_factory.mktemp("models") / "base")


@pytest.fixture(scope="module")
def adapter(base, tmp_path_factory):
    """An adapter on `base` that changes what it says."""
    model = add_lora(load_model(base), LORA, "policy")
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    folder = tmp_path_factory.mktemp("models") / "adapter"
    save_model(model, folder, base)
    config = read_json(folder / "adapter_config.json")
    write_json(folder / "adapter_config.json", config | {"base_model_name_or_path": str(base)})
    return ModelSource(folder)


@torch.inference_mode()
def test_an_adapter_folder_is_its_base_with_the_adapter_merged(base, adapter):
    merged, worn = load_model(adapter), load_adapter(load_model(base), adapter.folder).eval()
    assert not hasattr(merged, "peft_config")
    torch.testing.assert_close(merged(IDS).logits, worn(IDS).logits, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(merged(IDS).logits, load_model(base)(IDS).logits, atol=1e-3)
    assert load_tokenizer(adapter).eos_token == load_tokenizer(base).eos_token


def test_an_adapter_is_merged_in_float32_and_rounded_once(base, adapter):
    exact = merge_adapter(load_model(base), adapter.folder).state_dict()
    for name, tensor in load_model(adapter, dtype=torch.bfloat16).state_dict().items():
        assert torch.equal(tensor.cpu(), exact[name].bfloat16()), name


@torch.inference_mode()
def test_an_adapter_is_played_beside_its_base(base, adapter):
    played = load_for_play(base, adapter.folder, "float32")
    beside = [module for module in played.modules() if isinstance(module, AdaptedLinear)]
    assert len(beside) == 3 * 2  # q, k, v of two layers
    worn = load_adapter(load_model(base), adapter.folder).eval()
    torch.testing.assert_close(played(IDS).logits, worn(IDS).logits, rtol=1e-4, atol=1e-5)
    alone = load_for_play(adapter, None, "float32")
    torch.testing.assert_close(alone(IDS).logits, played(IDS).logits)
    assert load_for_play(base, adapter.folder, "bfloat16").dtype == torch.bfloat16


@torch.inference_mode()
def test_an_adapter_of_another_kind_is_played_by_peft(base, tmp_path):
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=2, target_modules=["q_proj", "down_proj"], use_dora=True, init_lora_weights=False
    )
    get_peft_model(load_model(base), config).save_pretrained(tmp_path)
    played = load_for_play(base, tmp_path, "float32")
    worn = load_adapter(load_model(base), tmp_path).eval()
    torch.testing.assert_close(played(IDS).logits, worn(IDS).logits)


def kl(policy, other):
    """Mean KL(policy || other) per token, in nats."""
    p, q = (logits.float().log_softmax(-1) for logits in (policy, other))
    return float((p.exp() * (p - q)).sum(-1).mean())


@pytest.fixture(scope="module")
def coarse(tmp_path_factory):
    """A base with weights that are large beside an update, stored as bfloat16 like the pipeline's
    own."""
    model = tiny_model()
    for parameter in model.parameters():
        parameter.data = (10 * parameter.data).bfloat16()
    folder = tmp_path_factory.mktemp("models") / "coarse"
    model.bfloat16().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return ModelSource(folder)


@pytest.mark.parametrize(("rate", "steps", "rounded"), [(1e-3, 24, 0.01), (1e-4, 8, 0.1)])
def test_what_is_played_is_what_was_trained(coarse, tmp_path, rate, steps, rounded):
    """KL(played, trained) is below 1 % of KL(trained, base), and merged weights would not be.

    The weights that are played are compared, in float32: the arithmetic of bfloat16 alone moves
    SmolLM2 by about 0.001 nats a token, so that no update which moves it by less than 0.1 could
    pass if the arithmetic counted, however it is played.
    """
    params = policy_params(learning_rate=rate, epochs=steps / 4, batch_size=4)
    game = made_up_game(episodes=8)
    train_policy(params, PACE, [game], coarse, tmp_path / "p", seed=0, cache=tmp_path / "cache")
    ids = torch.randint(0, 250, (4, 60), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        trained = load_adapter(load_model(coarse), tmp_path / "p").eval()(ids).logits
        played = load_for_play(coarse, tmp_path / "p", "bfloat16")
        merged = merge_adapter(load_model(coarse), tmp_path / "p").bfloat16()
        moved = kl(trained, load_model(coarse)(ids).logits)
        assert kl(played.float()(ids).logits, trained) < 0.01 * moved
        assert kl(merged.float()(ids).logits, trained) > rounded * moved


def test_the_base_model_can_be_made_of_an_adapter(adapter, tmp_path):
    params = BaseModelParams.model_construct(
        source=str(adapter), trust_remote_code=False, warm_start=False
    )
    materialise(params, PACE, tmp_path / "out", seed=0, dialogues=lambda *_: [])
    written = ModelSource(tmp_path / "out")
    assert not written.is_adapter
    load_tokenizer(written)
    expected = load_model(adapter).state_dict()
    for name, tensor in load_file(tmp_path / "out" / "model.safetensors").items():
        assert torch.equal(tensor, expected[name].bfloat16()), name


def test_an_adapter_without_its_base_is_one_line(adapter, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    lost = tmp_path / "lost"
    shutil.copytree(adapter.folder, lost)
    config = read_json(lost / "adapter_config.json")
    write_json(lost / "adapter_config.json", config | {"base_model_name_or_path": "no/such"})
    with pytest.raises(AriaError, match="the model no/such cannot be loaded") as caught:
        load_model(ModelSource(lost))
    assert "\n" not in str(caught.value)


def test_fingerprints_follow_what_a_model_says_and_nothing_else(adapter, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(adapter.folder, copy)
    before = fingerprint(adapter.folder)
    config = read_json(copy / "adapter_config.json")
    write_json(
        copy / "adapter_config.json",
        config
        | {
            "base_model_name_or_path": "elsewhere",
            "target_modules": config["target_modules"][::-1],
        },
    )
    write_json(copy / "metrics.json", {"steps": 3})
    (copy / "history.csv").write_text("step,loss\n")
    assert fingerprint(copy) == before
    write_json(copy / "adapter_config.json", config | {"lora_alpha": 99})
    assert fingerprint(copy) != before
    write_json(copy / "adapter_config.json", config)
    weights = load_file(copy / "adapter_model.safetensors")
    save_file({n: t + 1 for n, t in weights.items()}, copy / "adapter_model.safetensors")
    assert fingerprint(copy) != before


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setattr(fingerprint_module, "_newest_commit", lambda repo: None)
    fingerprint_module._hub_commit.cache_clear()
    yield
    fingerprint_module._hub_commit.cache_clear()


def test_a_name_that_nobody_knows_is_its_own_fingerprint(no_hub):
    assert fingerprint("org/model") == fingerprint(ModelSource("org/model")) == "org/model"
    assert fingerprint("./no/folder/here") == "./no/folder/here"


def test_a_hub_id_is_its_commit(no_hub, monkeypatch, tmp_path):
    config = tmp_path / "snapshots" / "c0ffee" / "config.json"
    monkeypatch.setattr(
        "huggingface_hub.try_to_load_from_cache",
        lambda repo, file: str(config) if repo == "sentence-transformers/mini" else None,
    )
    assert fingerprint("mini") == "mini@c0ffee"
    fingerprint_module._hub_commit.cache_clear()
    monkeypatch.setattr(fingerprint_module, "_newest_commit", lambda repo: f"new-{repo}")
    assert fingerprint("org/mini") == "org/mini@new-org/mini"
    monkeypatch.chdir(tmp_path)
    assert fingerprint(BASE_MODEL) == BASE_MODEL  # a folder of ours, which is not there


def test_packaged_weights_have_the_fingerprint_of_their_content(monkeypatch, tmp_path):
    for name in (*packaged.LANGUAGE_MODELS, *packaged.SENTENCE_ENCODERS):
        assert name not in fingerprint(name)
    for content in (b"1", b"2"):
        (tmp_path / "model.gguf").write_bytes(content)
        monkeypatch.setattr(
            fingerprint_module, "packaged_path", lambda source, among: tmp_path / "model.gguf"
        )
        assert fingerprint("any") == hashlib.sha256(content).hexdigest()


def test_an_adapter_as_a_model_is_known_by_its_base_too(base, adapter, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(adapter.folder, copy)
    known = []
    for seed in (0, 1):
        tiny_model(seed=seed).save_pretrained(tmp_path / "base")
        config = read_json(copy / "adapter_config.json")
        changed = {**config, "base_model_name_or_path": str(tmp_path / "base")}
        write_json(copy / "adapter_config.json", changed)
        known.append((fingerprint(copy), fingerprint(ModelSource(copy))))
    assert known[0][0] == known[1][0]
    assert known[0][1] != known[1][1]


def test_what_is_nearly_called_like_packaged_weights_is_a_slip():
    with pytest.raises(AriaError, match="did you mean all-minilm-l6-v2"):
        packaged.packaged_encoder("all-minilm-l6-v3")
    for other in (
        "all-MiniLM-L6-v2",
        "all-mpnet-base-v2",
        "multi-qa-MiniLM-L6-cos-v1",
        "org/all-minilm-l6-v3",
    ):
        assert packaged.packaged_encoder(other) is None


def test_packaged_weights_are_located_and_not_imported(monkeypatch):
    assert packaged.packaged_path("org/model", packaged.LANGUAGE_MODELS) is None
    for known in (packaged.LANGUAGE_MODELS, packaged.SENTENCE_ENCODERS):
        for name, (package, _) in known.items():
            path = packaged.packaged_path(ModelSource(name), known)
            assert path is not None
            assert path.exists()
            assert package not in sys.modules
    remedy = r"mine needs the package no_such_package, .*: pip install no-such-package, or name"
    with pytest.raises(AriaError, match=remedy):
        packaged.packaged_path("mine", {"mine": ("no_such_package", "x")})


def test_the_hub_is_not_asked_for_a_slip_of_the_pen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AriaError, match=r"smollm-135m: neither packaged .*\(did you mean smollm2-"):
        load_model(ModelSource("smollm-135m"))
    (tmp_path / "smollm-135m").mkdir()
    for name in ("smollm-135m", "me/smollm-135m", "gpt2"):
        assert packaged.packaged_language_model(name) is None


def test_trust_travels_with_the_source():
    trusted = ModelSource("a", trust_remote_code=True)
    assert trusted.named("b") == ModelSource("b", trust_remote_code=True)
    assert not ModelSource("a").named("b").trust_remote_code


def test_play_and_training_agree_about_the_hardware():
    assert uses_bfloat16("auto") == bfloat16_is_faster()
    assert (inference_dtype("auto") == torch.bfloat16) == bfloat16_is_faster()


@pytest.mark.parametrize(
    ("processor", "faster"),
    [
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, True),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, False),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True}, True),
        ({"cpu_name": "AMD EPYC"}, False),
        ({}, False),
    ],
)
def test_narrow_numbers_only_where_they_are_faster(monkeypatch, processor, faster):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: processor)
    assert bfloat16_is_faster() == faster


def fail_quietly():
    with quiet_transformers():
        assert theirs.get_verbosity() == theirs.ERROR
        raise ZeroDivisionError


def test_transformers_is_as_loud_as_before_even_after_an_error():
    before = theirs.get_verbosity()
    theirs.set_verbosity_info()
    with pytest.raises(ZeroDivisionError):
        fail_quietly()
    assert theirs.get_verbosity() == theirs.INFO
    theirs.set_verbosity(before)
