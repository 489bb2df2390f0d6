"""vLLM serves what `aria card` and `aria merge` write; `make test-vllm` runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from finished_policy import POLICY, fill

from aria_dvc.__main__ import main
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.source import ModelSource

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, "scripts/vllm_server.py"]
SAID = [{"role": "user", "content": "We divide 100 dollars. I keep 60 of them. What do you say?"}]
TOKENS = 12


def save_small_model(folder: Path) -> ModelSource:
    """The packaged language model: vLLM takes no tiny one, whose heads are too narrow for it."""
    source = ModelSource("smollm2-135m-instruct")
    load_model(source).save_pretrained(folder)
    load_tokenizer(source).save_pretrained(folder)
    return ModelSource(folder)


@contextmanager
def served(model: Path, *options: str) -> Iterator[str]:
    command = [*SERVER, "start", "--model", str(model), "--dtype", "float32", *options]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert started.returncode == 0, started.stderr
    try:
        yield started.stdout.strip()
    finally:
        subprocess.run([*SERVER, "stop"], cwd=ROOT, check=True)


def answer(base_url: str, name: str) -> str:
    body = {"model": name, "messages": SAID, "temperature": 0, "max_tokens": TOKENS}
    request = urllib.request.Request(
        f"{base_url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


def expected(model: Any, tokenizer: Any) -> str:
    prompt = tokenizer.apply_chat_template(
        SAID, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.no_grad():
        said = model.eval().generate(**prompt, do_sample=False, max_new_tokens=TOKENS)
    new = said[0, prompt["input_ids"].shape[1] :]
    return str(tokenizer.decode(new, skip_special_tokens=True))


def test_vllm_says_what_the_trained_policy_says(tmp_path, monkeypatch):
    from transformers import AutoModelForCausalLM

    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    fill(project, save_small_model)
    adapter, merged = tmp_path / "adapter", tmp_path / "model"
    assert main(["card", POLICY, "--out", str(adapter)]) == 0
    assert main(["merge", POLICY, "--out", str(merged)]) == 0
    monkeypatch.chdir(tmp_path)
    tokenizer = load_tokenizer(ModelSource(merged))
    base = project / "data" / "base_model"
    trained = expected(AutoModelForCausalLM.from_pretrained(merged), tokenizer)
    untrained = expected(AutoModelForCausalLM.from_pretrained(base), tokenizer)
    assert trained != untrained
    with served(base, "--adapter", f"carded={adapter}") as base_url:
        assert answer(base_url, "carded") == trained
        assert answer(base_url, "policy") == untrained
    with served(merged) as base_url:
        assert answer(base_url, "policy") == trained
