"""Embeddings from a server that speaks the OpenAI protocol."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.servers.client import Misfit, NoAnswer, Refusal, Server, read_json, with_options
from aria_dvc.settings.machine import Endpoint

LARGEST = 64 << 20  # bytes: 512 texts with vectors of 4,096 numbers, written in full, are 46 MiB


def endpoint_encoder(name: str, endpoint: Endpoint) -> Callable[[list[str]], np.ndarray]:
    """A function from n texts to their vectors, (n, d) float32, made by `endpoints.<name>`.

    Raises:
        AriaError: the key is missing; the function raises it where the server stays away,
            refuses, or sends anything but n vectors of d finite numbers.
    """
    server = Server.of(name, endpoint)
    server.largest = LARGEST

    def encode(batch: list[str]) -> np.ndarray:
        asked = {"model": endpoint.model, "input": batch, "encoding_format": "float"}
        body = with_options(asked, endpoint.options)
        try:
            return server.ask("/embeddings", body, lambda content: _vectors(content, len(batch)))
        except NoAnswer as error:
            remedy = f"check that {endpoint.model} is an embedding model, or lower pace.embed_batch"
            raise _failed(name, error, remedy if error.misfit else _running(endpoint)) from None
        except Refusal as error:
            raise _failed(name, error, _running(endpoint)) from None

    return encode


def _running(endpoint: Endpoint) -> str:
    return f"check that the server runs and serves {endpoint.model}"


def _failed(name: str, error: Exception, remedy: str) -> AriaError:
    return AriaError(f"endpoint {name} gave no embeddings ({error}): {remedy}")


def _vectors(content: bytes, count: int) -> np.ndarray:
    """(count, d) float32 in the order of the texts; Misfit if the answer does not hold them."""
    try:
        found = sorted(read_json(content)["data"], key=lambda item: item["index"])
        rows = [item["embedding"] for item in found]
        places = [item["index"] for item in found]
    except (TypeError, KeyError):
        raise Misfit("an answer that is not a list of embeddings") from None
    if places != list(range(count)):
        raise Misfit(f"embeddings of {len(places)} texts in place of {count}, or of others")
    try:
        with np.errstate(over="ignore"):
            vectors = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise Misfit("vectors of different lengths, or not of numbers") from None
    if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise Misfit("vectors that are not rows of finite numbers")
    return vectors
