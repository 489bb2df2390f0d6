"""The shape of a language model, as its config.json says it: enough to count its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.suggestions import did_you_mean

# Families with a gated feed-forward part and two norms a layer; of these the last has biases.
FAMILIES = ("llama", "mistral", "qwen2")
CONFIG = "config.json"


@dataclass(frozen=True)
class ModelShape:
    """Widths and depths of a decoder of one of FAMILIES.

    query, keys: width of all query heads, and of all key (or value) heads. tied: the output head is
    the embedding. biased: query, key and value projections have biases.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    tied: bool
    biased: bool = False

    @property
    def query(self) -> int:
        return self.heads * self.head_width

    @property
    def keys(self) -> int:
        return self.kv_heads * self.head_width

    @property
    def linear(self) -> dict[str, tuple[int, int]]:
        """(in, out) of the linear modules of a layer."""
        h, f = self.hidden, self.feed_forward
        return {
            "q_proj": (h, self.query),
            "k_proj": (h, self.keys),
            "v_proj": (h, self.keys),
            "o_proj": (self.query, h),
            "gate_proj": (h, f),
            "up_proj": (h, f),
            "down_proj": (f, h),
        }

    @property
    def linear_of_layer(self) -> int:
        """Weights of a layer's matrices."""
        return sum(inner * outer for inner, outer in self.linear.values())

    @property
    def of_layer(self) -> int:
        """Parameters of a layer, with its norms and biases."""
        biases = self.query + 2 * self.keys if self.biased else 0
        return self.linear_of_layer + 2 * self.hidden + biases

    @property
    def embedding(self) -> int:
        return self.vocabulary * self.hidden

    def parameters(self, *, scores: bool = False) -> int:
        """All of them; `scores`: with one output for the head, as a reward model has."""
        head = self.hidden if scores else 0 if self.tied else self.embedding
        return self.embedding + self.layers * self.of_layer + self.hidden + head

    def config(self) -> Any:
        """The same for transformers."""
        from transformers import AutoConfig

        return AutoConfig.for_model(
            "qwen2" if self.biased else "llama",
            vocab_size=self.vocabulary,
            hidden_size=self.hidden,
            intermediate_size=self.feed_forward,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.head_width,
            max_position_embeddings=131_072,
            tie_word_embeddings=self.tied,
            pad_token_id=0,
        )


SHAPES = {
    shape.name: shape
    for shape in (
        ModelShape("smollm2-135m", 30, 576, 9, 3, 64, 1536, 49_152, tied=True),
        ModelShape("llama-3-8b", 32, 4096, 32, 8, 128, 14_336, 128_256, tied=False),
    )
}


def shape_of(model: str) -> ModelShape:
    """The shape called `model`, or that of a config.json, or of the one in a folder.

    Raises:
        AriaError: there is neither, or it describes a model of another family.
    """
    if model in SHAPES:
        return SHAPES[model]
    path = Path(model)
    file = path / CONFIG if path.is_dir() else path
    if not file.is_file():
        raise AriaError(
            f"--model {model}: neither a {CONFIG}, a folder with one, nor one of "
            f"{', '.join(SHAPES)}{did_you_mean(model, SHAPES)}"
        )
    try:
        config = read_json(file)
    except (orjson.JSONDecodeError, UnicodeDecodeError):
        raise AriaError(f"{file}: broken JSON: give a model's {CONFIG}") from None
    if not isinstance(config, dict):
        raise AriaError(f"{file} describes no model: give a model's {CONFIG}")
    return _read(config, file)


def _read(config: Mapping[str, Any], file: Path) -> ModelShape:
    family = config.get("model_type")
    if family not in FAMILIES or config.get("attention_bias") or config.get("mlp_bias"):
        raise AriaError(
            f"{file}: a model of the type {family!r} is not known here: the formulas hold for "
            f"{', '.join(FAMILIES)} without further biases"
        )
    try:
        heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
        shape = ModelShape(
            name=file.resolve().parent.name,
            layers=int(config["num_hidden_layers"]),
            hidden=hidden,
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_width=int(config.get("head_dim") or hidden // max(heads, 1)),
            feed_forward=int(config["intermediate_size"]),
            vocabulary=int(config["vocab_size"]),
            # what transformers takes where the file is silent
            tied=bool(config.get("tie_word_embeddings", False)),
            biased=family == "qwen2",
        )
    except (KeyError, TypeError, ValueError) as error:
        raise AriaError(
            f"{file}: {error} is missing or no number: give a model's {CONFIG}"
        ) from None
    sizes = [value for value in vars(shape).values() if type(value) is int]
    if min(sizes) < 1 or shape.heads % shape.kv_heads:
        raise AriaError(
            f"{file}: no such model: every size is at least 1, and the attention heads share the "
            "key-value heads evenly"
        )
    return shape
