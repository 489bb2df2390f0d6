"""A policy that was handed over, served by a real vLLM: `make test-vllm` runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.test_handover import POLICY, fill

from aria_dvc.__main__ import main
from aria_dvc.models.loading import load_tokenizer
from aria_dvc.models.source import ModelSource

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, "scripts/vllm_server.py"]
TOKENS = 6  # two implementations in bfloat16 part ways sooner or later
SAID = (
    "You and Bob divide 100 coins. What do you propose?",
    "I am thinking of a city. Ask your first question.",
    "Alice asks 60 for the bicycle. What do you say?",
)


@contextmanager
def served(model: Path, *options: str) -> Iterator[str]:
    """The base_url of a server of the model, which calls it `policy`."""
    if not (ROOT / ".aria_cache/vllm/venv/bin/python").exists():
        subprocess.run([*SERVER, "install"], cwd=ROOT, check=True)
    command = [*SERVER, "start", "--model", str(model), *options]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert started.returncode == 0, started.stderr
    try:
        yield started.stdout.strip()
    finally:
        subprocess.run([*SERVER, "stop"], cwd=ROOT, check=True)


def greedy(base_url: str, model: str) -> list[str]:
    """What a served model answers to each of SAID."""
    texts = []
    for said in SAID:
        asked = {"model": model, "temperature": 0, "max_tokens": TOKENS}
        asked["messages"] = [{"role": "user", "content": said}]
        request = urllib.request.Request(
            f"{base_url}/chat/completions",
            json.dumps(asked).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            texts.append(json.load(answer)["choices"][0]["message"]["content"])
    return texts


def expected(model, folder: Path) -> list[str]:
    """The same by transformers."""
    tokenizer, texts = load_tokenizer(ModelSource(folder)), []
    for said in SAID:
        chat = [{"role": "user", "content": said}]
        asked = tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        found = model.generate(**asked, do_sample=False, max_new_tokens=TOKENS)
        answer = found[0, asked["input_ids"].shape[1] :]
        texts.append(tokenizer.decode(answer, skip_special_tokens=True))
    return texts


def test_vllm_says_what_the_handed_over_policy_says(tmp_path, monkeypatch):
    """The adapter's folder over its base, and the merged model alone."""
    import torch
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoModelForCausalLM

    def real_base(folder: Path) -> ModelSource:
        shutil.copytree(ROOT / "data/base_model", folder)
        return ModelSource(folder)

    monkeypatch.chdir(tmp_path)
    fill(tmp_path, real_base, spread=0.05)
    base, adapter, merged = tmp_path / "data/base_model", tmp_path / "adapter", tmp_path / "merged"
    assert main(["card", POLICY, "--out", str(adapter)]) == 0
    assert main(["merge", str(adapter), "--out", str(merged), "--dtype", "bfloat16"]) == 0
    with served(base, "--adapter", f"aria={adapter}") as url:
        of_base, of_adapter = greedy(url, "policy"), greedy(url, "aria")
    with served(merged) as url:
        of_merged = greedy(url, "policy")
    half = {"dtype": torch.bfloat16}
    assert of_adapter != of_base
    assert of_adapter == expected(
        AutoPeftModelForCausalLM.from_pretrained(adapter, **half), adapter
    )
    assert of_merged == expected(AutoModelForCausalLM.from_pretrained(merged, **half), merged)
