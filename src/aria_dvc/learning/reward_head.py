"""The reward model as a model: its score head, its scale, its predictions (sec. 5.3).

A causal backbone with a one-output head scores every (history, action) of a dialogue at the
action's last token, its end of turn, in one pass: what follows cannot reach it. Targets are
standardised; the scale is stored beside the weights and undone by `predict`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_json
from aria_dvc.learning.batches import Collate, Paired
from aria_dvc.learning.examples import Key
from aria_dvc.learning.packing import Laying, model_inputs
from aria_dvc.learning.tree_attention import use_tree_attention
from aria_dvc.models.hooks import hooked
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import load_adapter
from aria_dvc.models.source import ModelSource

SCALE_FILE = "scale.json"
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class RegressionCollate(Laying):
    """The collator of (example, standardised targets of its actions).

    Beside the model's inputs (see `Layout`): rows (N,) int64, where in the flattened (B x L) the
    last token of every action with a target is; targets and weights (N,) float32; count.
    """

    weights: Mapping[Key, float] = field(default_factory=dict)

    def __call__(self, members: Sequence[Paired], count: int) -> Tensors:
        layout = self.lay_out([example for example, _ in members])
        rows: list[int] = []
        targets: list[float] = []
        scale: list[float] = []
        for (example, values), places in zip(members, layout.places, strict=True):
            for index in np.flatnonzero(~np.isnan(values)):
                rows.append(int(places[np.flatnonzero(example.action == index)[-1]]))
                targets.append(float(values[index]))
                scale.append(self.weights.get(example.keys[index], 1.0))
        return {
            **layout.inputs,
            "rows": torch.tensor(rows, dtype=torch.int64),
            "targets": torch.tensor(targets, dtype=torch.float32),
            "weights": torch.tensor(scale, dtype=torch.float32),
            "count": torch.tensor(float(count)),
        }


def regression_collate(
    pad_id: int, weights: Mapping[Key, float], *, model: Any = None
) -> RegressionCollate:
    """The collator for `model`: as prefix trees if its attention can take them.

    Args:
        weights: of actions in the loss, by default 1.
        model: gets tree attention; None stands for one that cannot.
    """
    packed = model is not None and use_tree_attention(model)
    return RegressionCollate(pad_id, packed, weights)


@contextmanager
def all_scores(model: Any) -> Iterator[list[torch.Tensor]]:
    """Catch the head's output for every token, (B, L, 1); the model itself returns the last."""
    caught: list[torch.Tensor] = []
    register = score_head(model).register_forward_hook
    with hooked(register, lambda module, args, output: caught.append(output)):
        yield caught


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
        model(**model_inputs(inputs))
    return caught[0].flatten().float()[inputs["rows"]]


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
    for batch in collate.cut([example for example, _ in data], tokens_per_batch):
        inputs = collate([data[i] for i in batch], 1)
        inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
            scores = action_scores(model, inputs).double().cpu().numpy()
        ends = np.cumsum([int((~np.isnan(data[i][1])).sum()) for i in batch])
        for index, part in zip(batch, np.split(scores, ends[:-1]), strict=True):
            parts[index] = part * scale.std + scale.mean
    return np.concatenate([parts[i] for i in range(len(data))])
