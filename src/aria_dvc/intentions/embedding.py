"""Sentence embeddings of utterances (paper sec. 3.2), each distinct text encoded once.

Texts are de-duplicated, looked up in a cache of raw vectors by (model, text), and what is left is
encoded in order of length, so that a batch holds texts of like length and padding costs little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import orjson

from aria_dvc.cache.folder import note_use
from aria_dvc.cache.vectors import VectorStore, vectors_file
from aria_dvc.embedder_specs import HALF, embedder_weights, is_half
from aria_dvc.errors import AriaError
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.libraries import EMBEDDING, library_versions
from aria_dvc.models.sentences import Encoder, load_encoder
from aria_dvc.player_specs import endpoint_name, find_endpoint
from aria_dvc.settings.machine import Endpoint

Progress = Callable[[int, int], None]


def embed_texts(
    texts: Sequence[str],
    source: str,
    batch_size: int,
    normalize: bool,
    endpoints: Mapping[str, Endpoint],
    progress: Progress = lambda done, total: None,
) -> np.ndarray:
    """Embeddings of `texts`, (n, d) float32, equal texts having equal rows.

    Args:
        texts: n non-empty strings.
        source: a packaged model's name, a sentence-transformers id or folder, or
            `endpoint:NAME` for an OpenAI-compatible embeddings server named in `endpoints`.
        batch_size: texts that are encoded at once.
        normalize: scale every row to unit length.
        endpoints: servers by name.

    Raises:
        AriaError: an empty text, an unknown source, or vectors that are not finite, empty or of
            different lengths.
    """
    for index, text in enumerate(texts):
        if not text.strip():
            raise AriaError(f"text {index} is empty and cannot be embedded: remove the utterance")
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    store = VectorStore(embedder_identity(source, endpoints))
    known = store.get(distinct)
    missing = [text for text in distinct if text not in known]
    if missing:
        encode = _encoder(source, endpoints)
        for start in range(0, len(missing), batch_size):
            batch = missing[start : start + batch_size]
            vectors = _checked(encode(batch), batch, source)
            store.put(batch, vectors)
            known.update(zip(batch, vectors, strict=True))
            progress(min(start + batch_size, len(missing)), len(missing))
    note_use(store.path)
    _check_lengths(known, source)
    matrix = np.stack([known[text] for text in texts])
    return unit(matrix) if normalize else matrix


def _checked(vectors: np.ndarray, batch: list[str], source: str) -> np.ndarray:
    if vectors.shape[:1] != (len(batch),) or not np.isfinite(vectors).all():
        raise AriaError(f"embed.source {source} returned vectors that are not finite numbers")
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise AriaError(f"embed.source {source} returned no numbers: name an embedding model")
    return vectors


def _check_lengths(known: dict[str, np.ndarray], source: str) -> None:
    lengths = sorted({vector.size for vector in known.values()})
    if len(lengths) > 1:
        raise AriaError(
            f"embed.source {source} has vectors of {' and '.join(map(str, lengths))} numbers: "
            f"use one model, and delete {vectors_file()} if it keeps those of another"
        )


def unit(matrix: np.ndarray) -> np.ndarray:
    """Rows of an (n, d) float32 matrix scaled to length 1; zero rows stay zero."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return (matrix / np.where(norms == 0, 1, norms)).astype(np.float32)


def _encoder(source: str, endpoints: Mapping[str, Endpoint]) -> Encoder:
    name = endpoint_name(source)
    if name is None:
        return load_encoder(source)
    from aria_dvc.servers.embeddings import endpoint_encoder

    return endpoint_encoder(name, find_endpoint(name, endpoints))


def embedder_identity(source: str, endpoints: Mapping[str, Endpoint]) -> str:
    """What vectors depend on beside the text: the content of the model and the libraries that run
    it, or who answers for it.

    An endpoint is known by its address, model and options; what runs behind them only its owner can
    tell.
    """
    name = endpoint_name(source)
    if name is not None:
        endpoint = find_endpoint(name, endpoints)
        asked = f"endpoint {endpoint.base_url} {endpoint.model}"
        if not endpoint.options:
            return asked
        options = orjson.dumps(endpoint.options, option=orjson.OPT_SORT_KEYS).decode()
        return f"{asked} {options}"
    weights = fingerprint(embedder_weights(source))
    return f"{weights} {library_versions(EMBEDDING)}{HALF if is_half(source) else ''}"
