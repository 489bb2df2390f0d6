"""Adapters and models: safetensors alone, whole, finite, on their own base; no pickle ever runs."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_tiny import LORA, save_tiny_base
from safetensors.torch import load_file, save_file

from aria_dvc.errors import AriaError
from aria_dvc.learning.trainer import _resuming
from aria_dvc.models.loading import load_for_play, load_model
from aria_dvc.models.lora import add_lora, load_adapter, merge_adapter
from aria_dvc.models.sentences import load_encoder
from aria_dvc.models.source import ADAPTER_CONFIG, ADAPTER_WEIGHTS, ModelSource
from aria_dvc.models.weights import FORCE, FORCE_NOT, no_pickles


class Evil:
    """Writes a file as soon as it is unpickled."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.witness),)


@pytest.fixture
def base(tmp_path) -> Path:
    save_tiny_base(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def adapter(base, tmp_path) -> Path:
    worn = add_lora(load_model(ModelSource(base)), LORA, "policy")
    worn.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


def change_config(folder: Path, **changes: Any) -> None:
    file = folder / ADAPTER_CONFIG
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def change_weights(folder: Path, change: Any) -> None:
    save_file(change(load_file(folder / ADAPTER_WEIGHTS)), folder / ADAPTER_WEIGHTS)


def evil_file(file: Path, witness: Path) -> None:
    """A pickle as torch writes it, which torch does not run though it is asked to."""
    torch.save({"x": Evil(witness)}, file)
    with pytest.raises(pickle.UnpicklingError), no_pickles():
        torch.load(file, weights_only=False)


@pytest.mark.parametrize("name", ["adapter_model.bin", "pytorch_model.bin"])
@pytest.mark.parametrize("load", [load_adapter, merge_adapter])
def test_a_pickled_adapter_does_not_run(base, adapter, tmp_path, name, load):
    (adapter / ADAPTER_WEIGHTS).unlink()
    evil_file(adapter / name, tmp_path / "ran")
    model = load_model(ModelSource(base))
    with pytest.raises(AriaError, match=rf"only pickled weights \({name}\).*save_pretrained"):
        load(model, adapter)
    with pytest.raises(AriaError, match="only pickled weights"):
        load_for_play(ModelSource(base), adapter, "float32")
    with pytest.raises(AriaError, match="only pickled weights"):
        load_model(ModelSource(adapter))
    assert not (tmp_path / "ran").exists()


def test_a_pickle_beside_an_adapter_is_not_read(base, adapter, tmp_path):
    evil_file(adapter / "adapter_model.bin", tmp_path / "ran")
    load_adapter(load_model(ModelSource(base)), adapter)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_a_pickled_model_does_not_run(base, tmp_path, name):
    (base / "model.safetensors").unlink()
    evil_file(base / name, tmp_path / "ran")
    with pytest.raises(AriaError, match="only pickled weights"):
        load_model(ModelSource(base))
    assert not (tmp_path / "ran").exists()


def test_a_pickled_module_of_an_encoder_does_not_run(tmp_path):
    (tmp_path / "e" / "2_Dense").mkdir(parents=True)
    evil_file(tmp_path / "e" / "2_Dense" / "pytorch_model.bin", tmp_path / "ran")
    with pytest.raises(AriaError, match=r"2_Dense has only pickled weights"):
        load_encoder(str(tmp_path / "e"))
    assert not (tmp_path / "ran").exists()


def test_the_environment_is_as_before(monkeypatch):
    monkeypatch.setenv(FORCE_NOT, "1")
    monkeypatch.delenv(FORCE, raising=False)
    with no_pickles():
        assert os.environ[FORCE] == "1"
        assert FORCE_NOT not in os.environ
    assert os.environ[FORCE_NOT] == "1"
    assert FORCE not in os.environ


def _nan(weights: dict) -> dict:
    next(iter(weights.values()))[0, 0] = float("nan")
    return weights


def _wide(weights: dict) -> dict:
    return {name: torch.cat([tensor, tensor], dim=1) for name, tensor in weights.items()}


def _fewer(weights: dict) -> dict:
    return dict(list(weights.items())[2:])


@pytest.mark.parametrize(
    ("change", "told"),
    [(_nan, "holds NaN or infinity"), (_wide, "size mismatch"), (_fewer, "lacks weights")],
)
def test_weights_that_do_not_fit_are_one_line(base, adapter, change, told):
    change_weights(adapter, change)
    with pytest.raises(AriaError, match=told) as caught:
        load_adapter(load_model(ModelSource(base)), adapter)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("size", [0, 5, 300, -8])
def test_truncated_weights_are_one_line(base, adapter, size):
    file = adapter / ADAPTER_WEIGHTS
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(AriaError, match="cannot be put on the base model"):
        load_adapter(load_model(ModelSource(base)), adapter)


def test_an_adapter_of_another_base_is_refused(base, adapter, tmp_path):
    save_tiny_base(tmp_path / "other", seed=1)
    other = load_model(ModelSource(tmp_path / "other"))
    with pytest.raises(AriaError, match=r"trained on .*base, which is another model than .*other"):
        load_adapter(other, adapter)
    shutil.copytree(base, tmp_path / "copy")
    load_adapter(load_model(ModelSource(tmp_path / "copy")), adapter)
    change_config(adapter, base_model_name_or_path="org/somewhere")
    load_adapter(other, adapter)  # a hub's name tells nothing


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"peft_type": "IA3"}, "peft_type is IA3"),
        ({"peft_type": None}, "only LORA"),
        ({"r": 9}, "size mismatch"),
        ({"target_modules": ["nothing"]}, "nothing"),
    ],
)
def test_a_config_that_does_not_fit_is_one_line(base, adapter, changes, told):
    change_config(adapter, **changes)
    with pytest.raises(AriaError, match=told):
        load_adapter(load_model(ModelSource(base)), adapter)


@pytest.mark.parametrize("name", [None, 3, ""])
def test_an_adapter_without_a_base_is_one_line(adapter, name):
    change_config(adapter, base_model_name_or_path=name)
    with pytest.raises(AriaError, match="names no base model"):
        load_model(ModelSource(adapter))


def test_an_adapter_on_itself_is_one_line(adapter, tmp_path):
    shutil.copytree(adapter, tmp_path / "second")
    change_config(adapter, base_model_name_or_path=str(tmp_path / "second"))
    change_config(tmp_path / "second", base_model_name_or_path=str(adapter))
    with pytest.raises(AriaError, match="in the end its own base"):
        load_model(ModelSource(adapter))


def test_no_adapter_is_looked_for_on_the_network(base):
    with pytest.raises(AriaError, match="there is no such folder"):
        load_adapter(load_model(ModelSource(base)), "org/adapter")


def test_a_model_with_missing_or_nan_weights_is_one_line(base):
    file = base / "model.safetensors"
    weights = load_file(file)
    name = next(iter(weights))
    save_file({k: v for k, v in weights.items() if k != name}, file, {"format": "pt"})
    with pytest.raises(AriaError, match=r"lack \d weights, such as "):
        load_model(ModelSource(base))
    weights[name][0] = float("inf")
    save_file(weights, file, {"format": "pt"})
    with pytest.raises(AriaError, match="holds NaN or infinity"):
        load_model(ModelSource(base))
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(AriaError, match="cannot be loaded"):
        load_model(ModelSource(base))


def test_a_score_head_may_be_fresh(base):
    assert load_model(ModelSource(base), head="score").score.weight.shape == (1, 32)


def test_a_foreign_file_in_a_checkpoint_does_not_run(tmp_path):
    evil_file(tmp_path / "optimizer.pt", tmp_path / "ran")
    with pytest.raises(AriaError, match="delete that folder"), _resuming(str(tmp_path)):
        torch.load(tmp_path / "optimizer.pt", weights_only=True)  # as Trainer does
    assert not (tmp_path / "ran").exists()
