"""A few real steps of a method on this machine, in a process of their own: peak memory and speed.

The model has random weights, which need the memory and time of any others, and the trainer, the
objectives and the collators are those of the stages.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.plan.batch import Load, values_of
from aria_dvc.plan.estimate import PROGRESS, Training
from aria_dvc.plan.shapes import ModelShape
from aria_dvc.settings.machine import Pace
from aria_dvc.settings.training import PolicyParams

STEPS = 3  # the first is not timed
MICRO_BATCHES = 2  # a step, so that gradients are there while the second one is computed
# glibc keeps the pieces of freed memory that nothing fits into (docs/plan.md): it gives back what
# is larger than this. Other systems do not know the variable.
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072"}


@dataclass(frozen=True)
class Case:
    """What is trained: a model of a shape, by a method, on micro-batches of a load."""

    shape: ModelShape
    training: Training
    load: Load
    params: PolicyParams
    pace: Pace


@dataclass(frozen=True)
class Measured:
    """peak: bytes beyond those of the process before there was a model. tokens_per_second: of
    steps, without the passes before the first."""

    peak: int
    tokens_per_second: float


def measure(case: Case) -> Measured:
    """Train a few steps in a fresh process.

    Raises:
        AriaError: the system cannot say how much memory a process took; or there was too little.
    """
    if sys.platform == "win32":
        raise AriaError("--measure: Windows does not tell a process's peak: use Linux or macOS")
    fresh = multiprocessing.get_context("spawn")
    try:
        with _environment(GIVEN_BACK), ProcessPoolExecutor(1, mp_context=fresh) as pool:
            return pool.submit(_measured, case).result()
    except BrokenProcessPool:
        raise AriaError(
            f"--measure: the process that trained {case.training.method.name} was ended, as a "
            "rule for lack of memory: try smaller --tokens"
        ) from None


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """What processes that start in this block inherit besides."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _measured(case: Case) -> Measured:
    from aria_dvc.memory import give_back_memory
    from aria_dvc.models.quiet import quiet_transformers

    with quiet_transformers(), tempfile.TemporaryDirectory() as folder:
        small = ModelShape("warm-up", 1, 32, 2, 1, 16, 64, 1_000, tied=True)
        load = Load(2, 64, case.load.own)
        _train(replace(case, shape=small, load=load), Path(folder) / "warm-up", lambda: None)
        give_back_memory()
        peak = _watch()
        ticks: list[float] = []
        _train(case, Path(folder) / "run", lambda: ticks.append(time.perf_counter()))
        tokens = MICRO_BATCHES * case.load.tokens * (len(ticks) - 1)
        return Measured(peak(), tokens / (ticks[-1] - ticks[0]))


def _watch() -> Callable[[], int]:
    """A function that says by how many bytes memory has peaked above what it is now."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.max_memory_allocated
    import psutil

    before = psutil.Process().memory_info().rss
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")  # the peak so far: Linux counts anew
    return lambda: _peak_rss() - before


def _peak_rss() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _train(case: Case, folder: Path, tick: Callable[[], None]) -> None:
    from aria_dvc.learning.batches import Member
    from aria_dvc.learning.trainer import FitSettings, fit, make_deterministic

    make_deterministic(0)
    load, method = case.load, case.training.method
    count = STEPS * MICRO_BATCHES * load.dialogues
    data: list[Member] = list(values_of(load.examples(count, case.shape.vocabulary)))
    model = _model(case)
    if method.name == PROGRESS:
        kind, collate, extra = _progress(model)
    elif method.scores:
        kind, collate, extra = _regression(model)
    else:
        kind, collate, extra, data = _objective(case, model, data)
    fit(
        kind,
        model,
        data,
        np.array_split(np.arange(len(data)), STEPS),
        collate,
        folder,
        FitSettings(learning_rate=1e-4, seed=0, pace=case.pace),
        progress=lambda done, steps: tick(),
        **extra,
    )


def _model(case: Case) -> Any:
    """As the stages `policy`, `reward_model` and `progress` make it, from nothing, where it will
    compute: a GPU draws the weights of a large model in no time."""
    from aria_dvc.models.hardware import best_device

    with best_device():
        return _drawn(case)


def _drawn(case: Case) -> Any:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    from aria_dvc.models.lora import add_lora, cast_by_autocast

    training, config = case.training, case.shape.config()
    if training.method.scores:
        config.num_labels = 1
        model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
        return add_lora(model, training.lora, "reward_model") if training.lora else model
    if training.lora is None:
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    dtype = torch.bfloat16 if training.bfloat16 else torch.float32
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    return cast_by_autocast(add_lora(model, training.lora, "policy"))


def _regression(model: Any) -> tuple[Any, Any, dict[str, Any]]:
    from aria_dvc.learning.reward_head import regression_collate
    from aria_dvc.learning.reward_model import RewardTrainer

    return RewardTrainer, regression_collate(0, {}, model=model), {}


def _progress(model: Any) -> tuple[Any, Any, dict[str, Any]]:
    from aria_dvc.learning.progress import ProgressTrainer, WholeDialogues, in_float32
    from aria_dvc.learning.reward_head import score_head
    from aria_dvc.learning.tree_attention import use_tree_attention

    score_head(model).register_forward_hook(in_float32)
    collate = WholeDialogues(0, use_tree_attention(model))
    return ProgressTrainer, collate, {"objective": "prefix"}  # the one with the most to compute


def _objective(case: Case, model: Any, data: Any) -> tuple[Any, Any, dict[str, Any], Any]:
    """Trainer, collator, its further arguments, and the data as the first step finds it."""
    from aria_dvc.learning.objective import KlPenalty, adapter_off, frozen_copy, policy_collate
    from aria_dvc.learning.objectives.base import Material
    from aria_dvc.learning.objectives.clipped import ClippedRatio
    from aria_dvc.learning.objectives.dpo import Pair
    from aria_dvc.learning.objectives.ppo import Ppo
    from aria_dvc.learning.objectives.registry import objective_of
    from aria_dvc.learning.objectives.scoring import Scorer
    from aria_dvc.learning.policy import PolicyTrainer

    training = case.training
    objective = objective_of(case.params.model_copy(update={"method": training.method.name}))
    collate = policy_collate(0, model=model)
    scorer = Scorer(model, collate, case.pace.tokens_per_batch, training.bfloat16)
    if training.method.pairs:
        sides = [example for example, _ in data]
        pairs = [Pair(*two) for two in zip(sides[::2], sides[1::2], strict=True)]
        data = objective.ready(Material([(pair, np.ones(1)) for pair in pairs]), scorer).data
    elif isinstance(objective, Ppo):  # its advantages need tables, whose place the values take
        scorer.read([example for example, _ in data], hidden=True)
        data = ClippedRatio.ready(objective, Material(data), scorer).data
    elif objective.scores_first:
        data = objective.ready(Material(data), scorer).data
    penalty = None
    if training.kl and objective.exact_kl:
        reference = adapter_off if training.lora else frozen_copy(_model(case))
        penalty = KlPenalty(case.params.kl, reference)
    extra = {"objective": objective, "penalty": penalty}
    return PolicyTrainer, objective.collate(0, model), extra, data


def multiplied_tflops(bfloat16: bool) -> float:
    """How many operations (10^12 a second) products of large matrices reach on this machine."""
    import torch

    from aria_dvc.models.hardware import best_device

    device = best_device()
    size = 8192 if device.type == "cuda" else 1536
    dtype = torch.bfloat16 if bfloat16 else torch.float32
    one, other = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        product = one @ other
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
        del product
    return 2 * size**3 / best / 1e12


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
