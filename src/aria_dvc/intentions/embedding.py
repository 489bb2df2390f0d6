"""Sentence embeddings of utterances (paper sec. 3.2), each distinct text encoded once.

Texts are de-duplicated, looked up in a cache of raw vectors by (model, text), and what is left is
encoded in order of length, so that a batch holds texts of like length and padding costs little.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

import numpy as np

from aria_dvc.cache import cache_folder
from aria_dvc.errors import AriaError
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.sentences import Encoder, load_encoder
from aria_dvc.player_specs import endpoint_name, find_endpoint
from aria_dvc.settings import Endpoint

CACHE = "embeddings.sqlite"  # in the cache folder
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
    with closing(_Cache(_identity(source, endpoints))) as store:
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
            f"use one model, and delete {cache_folder() / CACHE} if it keeps those of another"
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


def _identity(source: str, endpoints: Mapping[str, Endpoint]) -> str:
    """What vectors depend on: the source's name, and what may change behind it.

    That is an endpoint's address and model, and the content of a folder.
    """
    name = endpoint_name(source)
    if name is not None:
        endpoint = find_endpoint(name, endpoints)
        return f"{source} {endpoint.base_url} {endpoint.model}"
    return fingerprint(source)


class _Cache:
    """Vectors of one model's texts, in the SQLite file that all models share."""

    def __init__(self, model: str) -> None:
        self.model = model
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(folder / CACHE, timeout=60)
        self.db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB)")

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self.model}\0{text}".encode()).digest()

    def get(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        query, found = "SELECT value FROM vectors WHERE key = ?", {}
        for text in texts:
            row = self.db.execute(query, (self._key(text),)).fetchone()
            if row is not None:
                found[text] = np.frombuffer(row[0], dtype=np.float32)
        return found

    def put(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        rows = [
            (self._key(text), np.ascontiguousarray(vector, dtype=np.float32).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        with self.db:
            self.db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def close(self) -> None:
        self.db.close()
