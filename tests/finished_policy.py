"""A repository with one finished policy, which real DVC keeps."""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from dvc.repo import Repo
from learning_tiny import LORA, save_tiny_base

from aria_dvc.models.loading import load_model
from aria_dvc.models.lora import add_lora
from aria_dvc.models.saving import save_model
from aria_dvc.models.source import ModelSource
from aria_dvc.report.intervals import paired_difference, rate

POLICY = "data/policy/adversarial/aria/online"
OFFLINE = "data/policy/adversarial/aria/offline"
DVC_YAML = """
stages:
  base_model:
    cmd: cp -r made/base data/base_model
    deps: [made/base]
    params: [base_model]
    outs: [data/base_model]
  collect:
    cmd: cp -r made/raw data/raw
    deps: [made/raw]
    outs: [data/raw/adversarial/bargaining.jsonl]
  policy:
    matrix: {variant: [aria], category: [adversarial]}
    cmd: mkdir -p data/policy/adversarial/aria && cp -r made/adapter DIR
    deps: [data/base_model, made/adapter]
    params: [seed, policy, "variants.${item.variant}"]
    outs: [DIR]
  online:
    matrix: {variant: [aria], category: [adversarial]}
    cmd: cp -r made/adapter data/policy/adversarial/aria/online
    deps: [data/policy/adversarial/aria/offline, made/adapter]
    params: [seed, endpoints, policy, "variants.${item.variant}"]
    outs: [data/policy/adversarial/aria/online]
  evaluate:
    matrix: {variant: [aria], category: [adversarial]}
    cmd: mkdir -p data/eval/adversarial && cp POLICY/metrics.json data/eval/adversarial/aria.parquet
    deps: [data/policy/adversarial/aria]
    outs: [data/eval/adversarial/aria.parquet]
  report:
    cmd: mkdir -p metrics && cp -r made/details metrics/details
    deps: [data/eval, made/details]
    outs:
      - metrics/details: {cache: false}
""".replace("DIR", OFFLINE).replace("POLICY", POLICY)
PARAMS = """
seed: 0
endpoints: {mine: {base_url: "http://secret.example:8000"}}
base_model: {source: tiny, warm_start: true}
policy:
  learning_rate: 0.001
  lora: {rank: 4}
variants:
  aria: {credit: aria}
"""


def evaluation(wins: int, wins_before: int) -> dict[str, object]:
    won, before = np.arange(40) < wins, np.arange(40) < wins_before
    by_variant = {"aria": rate(won), "vanilla": rate(before)}
    gain = paired_difference(won, before, np.arange(40))
    return {
        "all": by_variant,
        "by_role": {"alice": by_variant},
        "minus_vanilla": {"aria": gain},
    }


def git(*arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def save_adapter(base: ModelSource, folder: Path) -> None:
    """An adapter that changes what the base says."""
    torch.manual_seed(1)
    model = add_lora(load_model(base), LORA, "policy")
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    save_model(model, folder, base)
    (folder / "metrics.json").write_text("{}")
    (folder / "adapter_model.safetensors").chmod(0o600)


def fill(folder: Path, save_base: Callable[[Path], ModelSource] = save_tiny_base) -> None:
    """A repository with one finished policy, whose params differ in one knob from version v1."""
    git("init", "-q", "-b", "main")
    logging.getLogger("dvc").setLevel(logging.ERROR)
    with Repo.init(str(folder)):
        pass
    Path("data").mkdir()
    save_adapter(save_base(Path("made/base")), Path("made/adapter"))
    config = Path("made/adapter/adapter_config.json")
    config.write_text(config.read_text().replace("made/base", "data/base_model"))
    Path("made/raw/adversarial").mkdir(parents=True)
    Path("made/raw/adversarial/bargaining.jsonl").write_text("{}\n")
    Path("made/details").mkdir(parents=True)
    found = {
        "bargaining": evaluation(30, 10),
        "negotiation": evaluation(10, 10),
        "guess_my_city": evaluation(30, 30),
    }
    Path("made/details/evaluation.json").write_text(json.dumps(found))
    finding = {"level": "warning", "about": "chess", "words": "few games"}
    Path("made/details/health.json").write_text(json.dumps({"findings": [finding]}))
    Path("dvc.yaml").write_text(DVC_YAML)
    Path("params.yaml").write_text(PARAMS)
    Path(".gitignore").write_text("/data/policy\n/data/raw\n/data/base_model\n/data/eval\n")
    git("add", "-A")
    git("commit", "-qm", "start")
    git("tag", "v1")
    Path("params.yaml").write_text(PARAMS.replace("0.001", "0.002"))
    with Repo(str(folder)) as repo:
        repo.reproduce()
    git("add", "-A")
    git("commit", "-qm", "run")
