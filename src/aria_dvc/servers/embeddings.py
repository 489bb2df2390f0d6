"""Embeddings from a server that speaks the OpenAI protocol."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.servers.client import Fault, NoAnswer, Refusal, Server, read_json
from aria_dvc.settings import Endpoint


def endpoint_encoder(name: str, endpoint: Endpoint) -> Callable[[list[str]], np.ndarray]:
    """A function from n texts to their vectors, (n, d) float32, made by `endpoints.<name>`.

    Raises:
        AriaError: the key is missing; the function raises it where the server stays away,
            refuses, or sends vectors of different lengths.
    """
    server, title = Server.of(name, endpoint), f"endpoint {name} ({endpoint.base_url})"

    def encode(batch: list[str]) -> np.ndarray:
        body = {"model": endpoint.model, "input": batch, "encoding_format": "float"}
        try:
            rows = server.ask("/embeddings", body, _rows)
        except (NoAnswer, Refusal) as error:
            raise AriaError(
                f"endpoint {name} gave no embeddings ({error}): "
                f"check that the server runs and serves {endpoint.model}"
            ) from None
        try:
            return np.asarray(rows, dtype=np.float32)
        except (TypeError, ValueError):
            raise AriaError(
                f"{title} gave vectors of different lengths: "
                f"check that {endpoint.model} is an embedding model"
            ) from None

    return encode


def _rows(content: bytes) -> list[list[float]]:
    """The vectors in the order of the texts; Fault if the answer holds none."""
    try:
        found = sorted(read_json(content)["data"], key=lambda item: item["index"])
        return [item["embedding"] for item in found]
    except (TypeError, KeyError):
        raise Fault("an answer that is not a list of embeddings") from None
