"""Sentence encoders that run in process."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.embedder_specs import embedder_weights, is_half
from aria_dvc.errors import AriaError
from aria_dvc.models.packaged import SENTENCE_ENCODERS, packaged_encoder
from aria_dvc.models.quiet import quiet_transformers
from aria_dvc.models.weights import no_pickles, refuse_pickled
from aria_dvc.shown import brief

if TYPE_CHECKING:
    import numpy as np

Encoder = Callable[[list[str]], "np.ndarray"]


@lru_cache(maxsize=1)
def load_encoder(name: str) -> Encoder:
    """A function from n texts, taken as one batch, to their vectors (n, d) float32.

    The last one stays loaded: online training embeds every iteration's games.

    Args:
        name: a packaged encoder, a sentence-transformers id or a folder, maybe with `@bfloat16`
            behind (see embedder_specs.py).

    Raises:
        AriaError: there is no such encoder.
    """
    plain = embedder_weights(name)
    folder = packaged_encoder(plain)
    if folder is not None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        with quiet_transformers(), no_pickles():
            _refuse_pickled_modules(Path(folder or plain))
            options: dict[str, Any] = {"use_safetensors": True}
            if is_half(name):
                options["dtype"] = torch.bfloat16
            model = SentenceTransformer(str(folder or plain), model_kwargs=options)
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise AriaError(
            f"the embedder {name} cannot be loaded ({brief(error)}): name a "
            f"sentence-transformers model, a folder, or one of {', '.join(SENTENCE_ENCODERS)}"
        ) from None
    return lambda batch: model.encode(
        batch, batch_size=len(batch), convert_to_numpy=True, show_progress_bar=False
    )


def _refuse_pickled_modules(folder: Path) -> None:
    """Refuse a local encoder with pickled weights, in its own folder or a module's."""
    for place in (folder, *(folder.glob("*/") if folder.is_dir() else ())):
        refuse_pickled(place)
