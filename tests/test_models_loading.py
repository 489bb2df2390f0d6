"""Loading: safetensors only, no foreign code, one line for what does not load."""

import json

import pytest
import torch
from learning_tiny import save_tiny_base, tiny_model

from aria_dvc.errors import AriaError
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import top_layers
from aria_dvc.models.source import ModelSource


def test_pickled_weights_are_refused(tmp_path):
    save_tiny_base(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(tiny_model().state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(AriaError, match="safetensors") as caught:
        load_model(ModelSource(tmp_path))
    assert "\n" not in str(caught.value)


def test_code_in_a_model_folder_does_not_run(tmp_path):
    save_tiny_base(tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w')\nraise RuntimeError")
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {
        "model_type": "evil",
        "auto_map": {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(AriaError, match="cannot be loaded"):
        load_model(ModelSource(tmp_path))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("load", [load_model, load_tokenizer])
def test_a_base_model_that_is_not_made_yet_is_told(load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AriaError, match=r"no data/base_model yet: `dvc repro base_model` writes"):
        load(ModelSource("data/base_model"))


def test_missing_folder_is_one_line(tmp_path):
    with pytest.raises(AriaError, match="cannot be loaded") as caught:
        load_tokenizer(ModelSource(tmp_path / "nothing"))
    assert "\n" not in str(caught.value)


def test_precision_follows_the_parameter():
    assert uses_bfloat16("bfloat16")
    assert not uses_bfloat16("float32")


def test_top_layers_are_those_nearest_the_output():
    model = tiny_model(layers=3)
    assert top_layers(model, None) is None
    assert top_layers(model, 2) == [1, 2]
    assert top_layers(model, 9) == [0, 1, 2]
