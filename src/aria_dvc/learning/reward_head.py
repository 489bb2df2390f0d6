"""The reward model as a model: its score head, its scale, its predictions (sec. 5.3).

A causal backbone with a one-output head scores every (history, action) of a dialogue at the
action's last token, its end of turn, in one pass: what follows cannot reach it. Targets are
standardised; the scale is stored beside the weights and undone by `predict`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_json
from aria_dvc.learning.batches import Collate, Paired, cut_by_tokens, pad
from aria_dvc.learning.examples import Key
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import load_adapter
from aria_dvc.models.source import ModelSource

SCALE_FILE = "scale.json"
Tensors = dict[str, torch.Tensor]


def regression_collate(pad_id: int, weights: dict[Key, float]) -> Collate:
    """The collator of (example, standardised targets of its actions).

    Beside the model's inputs (see batches.pad): select (B, L) bool, true at the last token of
    every action with a target; targets and weights (N,) float32 in the order of `select`; count.
    """

    def collate(members: Sequence[Paired], count: int) -> Tensors:
        inputs, action = pad([example for example, _ in members], pad_id)
        select = np.zeros(action.shape, dtype=bool)
        targets: list[float] = []
        scale: list[float] = []
        for row, (example, values) in enumerate(members):
            for index, key in enumerate(example.keys):
                if np.isnan(values[index]):
                    continue
                select[row, np.flatnonzero(action[row] == index)[-1]] = True
                targets.append(float(values[index]))
                scale.append(weights.get(key, 1.0))
        inputs["select"] = torch.from_numpy(select)
        inputs["targets"] = torch.tensor(targets, dtype=torch.float32)
        inputs["weights"] = torch.tensor(scale, dtype=torch.float32)
        inputs["count"] = torch.tensor(float(count))
        return inputs

    return collate


@contextmanager
def all_scores(model: Any) -> Iterator[list[torch.Tensor]]:
    """Catch the head's output for every token, (B, L, 1); the model itself returns the last."""
    head = score_head(model)
    caught: list[torch.Tensor] = []
    handle = head.register_forward_hook(lambda module, args, output: caught.append(output))
    try:
        yield caught
    finally:
        handle.remove()


def score_head(model: Any) -> Any:
    """The regression head inside any wrapper.

    Raises:
        AriaError: the backbone's classification head is not called `score`.
    """
    for name, module in model.named_modules():
        if name.rpartition(".")[2] == "score":
            return module
    raise AriaError(
        "reward_model.backbone: its classification head is not a causal one (no module `score`): "
        "choose a decoder model"
    )


def action_scores(model: Any, inputs: Tensors) -> torch.Tensor:
    """Standardised scores (N,) float32 of the selected actions."""
    with all_scores(model) as caught:
        model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            position_ids=inputs["position_ids"],
            use_cache=False,
        )
    return caught[0].squeeze(-1).float()[inputs["select"]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Standardisation of the target: score = (credit - mean) / std."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: np.ndarray) -> Scale:
        return cls(float(values.mean()), float(values.std()) or 1.0)


def read_scale(folder: Path) -> Scale:
    """The scale stored beside a reward model.

    Raises:
        AriaError: the folder holds no reward model.
    """
    noted = _noted(folder)
    return Scale(noted["mean"], noted["std"])


def trained_length(folder: Path) -> int:
    """The longest history + action, in tokens, that a reward model was trained on.

    Raises:
        AriaError: the folder holds no reward model.
    """
    return int(_noted(folder)["max_tokens"])


def note_scale(folder: Path, scale: Scale, max_tokens: int) -> None:
    """Write beside a reward model what `read_scale` and `trained_length` read."""
    noted = {"mean": scale.mean, "std": scale.std, "max_tokens": max_tokens}
    write_json(folder / SCALE_FILE, noted)


def _noted(folder: Path) -> dict[str, float]:
    if not (folder / SCALE_FILE).is_file():
        raise AriaError(f"{folder} holds no reward model: run the reward_model stage")
    noted: dict[str, float] = read_json(folder / SCALE_FILE)
    return noted


def load_scored(
    source: ModelSource, backbone: ModelSource | None, *, trainable: bool = False
) -> Any:
    """A trained reward model: an adapter on its backbone, or a whole model.

    Args:
        backbone: None takes the one that the adapter names (relative to the repository's root).

    Raises:
        AriaError: the model or its backbone cannot be loaded.
    """
    if not source.is_adapter:
        return load_model(source, head="score")
    base = load_model(backbone, head="score") if backbone else _named_backbone(source)
    base.config.pad_token_id = load_tokenizer(source).pad_token_id
    name = str(backbone or source.base())
    return load_adapter(base, source.folder, base_name=name, trainable=trainable)


def _named_backbone(source: ModelSource) -> Any:
    try:
        return load_model(source.base(), head="score")
    except AriaError:
        raise AriaError(
            f"{source} is an adapter on {source.base()}, which cannot be loaded here: "
            "pass --base FOLDER"
        ) from None


@torch.no_grad()
def predict(
    model: Any,
    data: Sequence[Paired],
    scale: Scale,
    collate: Collate,
    *,
    tokens_per_batch: int,
    bfloat16: bool,
) -> np.ndarray:
    """Credits (N,) float64 of every action with a target, in the order of `data`."""
    model.eval()
    device = next(model.parameters()).device
    parts: dict[int, np.ndarray] = {}
    lengths = np.array([len(example) for example, _ in data])
    for batch in cut_by_tokens(range(len(data)), lengths, tokens_per_batch):
        inputs = collate([data[i] for i in batch], 1)
        inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
            scores = action_scores(model, inputs).double().cpu().numpy()
        ends = np.cumsum(inputs["select"].sum(dim=1).cpu().numpy())
        for index, part in zip(batch, np.split(scores, ends[:-1]), strict=True):
            parts[index] = part * scale.std + scale.mean
    return np.concatenate([parts[i] for i in range(len(data))])
