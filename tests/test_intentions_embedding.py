"""Embedding: equal texts once, the cache, an endpoint, and refusals."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from aria_dvc.cache.folder import VARIABLE
from aria_dvc.credit.settings import EMBEDDER
from aria_dvc.embedder_specs import HALF
from aria_dvc.errors import AriaError
from aria_dvc.intentions import embedding
from aria_dvc.intentions.embedding import embed_texts, embedder_identity
from aria_dvc.settings.machine import Endpoint

TEXTS = ["Is it a cat?", "Is it a dog?", "Is it a cat?", "Where does a very large animal live?"]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """The cache folder of this test; another one may be named by the function that it gives."""

    def use(name):
        monkeypatch.setenv(VARIABLE, str(tmp_path / name))
        return tmp_path / name

    use("cache")
    return use


def embed(texts, source="m", batch_size=64, normalize=True, **endpoints):
    return embed_texts(texts, source, batch_size, normalize, endpoints)


@pytest.fixture
def counted(monkeypatch):
    """A stand-in encoder that records what it is asked to encode."""
    asked: list[str] = []

    def encode(batch):
        asked.extend(batch)
        return np.array([[len(text), text.count("a"), 1.0] for text in batch], np.float32)

    monkeypatch.setattr(embedding, "_encoder", lambda source, endpoints: encode)
    return asked


def test_equal_texts_are_encoded_once_in_order_of_length(counted):
    vectors = embed(TEXTS, normalize=False)
    assert counted == sorted(set(TEXTS), key=lambda text: (len(text), text))
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[0], vectors[2])
    assert vectors[:, 0].tolist() == [len(text) for text in TEXTS]


def test_only_new_texts_cost_anything(counted, cache):
    first = embed(TEXTS)
    counted.clear()
    again = embed([*TEXTS, "Is it new?"])
    assert counted == ["Is it new?"]
    assert np.array_equal(again[:4], first)
    counted.clear()
    embed(TEXTS, "another model")
    assert len(counted) == 3
    cache("elsewhere")
    embed(TEXTS)
    assert len(counted) == 6


def test_the_cache_is_one_file_of_raw_vectors_in_the_cache_folder(counted, cache):
    raw = embed(TEXTS, normalize=False)
    counted.clear()
    np.testing.assert_allclose(embed(TEXTS), raw / np.linalg.norm(raw, axis=1, keepdims=True))
    assert np.array_equal(embed(TEXTS, normalize=False), raw)
    assert counted == []
    assert [path.name for path in cache("cache").iterdir()] == ["vectors.sqlite"]


def test_a_changed_model_folder_is_another_model(counted, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"1")
    embed(TEXTS, str(folder))
    counted.clear()
    (folder / "model.safetensors").write_bytes(b"22")
    embed(TEXTS, str(folder))
    assert len(counted) == 3


def test_normalize_gives_unit_rows(counted):
    vectors = embed(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_batch_order_does_not_change_the_packaged_model_beyond_rounding(cache):
    together = embed(TEXTS, EMBEDDER, batch_size=64)
    cache("another")
    apart = embed(TEXTS, EMBEDDER, batch_size=1)
    np.testing.assert_allclose(together, apart, atol=2e-6)
    assert together.shape == (4, 384)


def test_a_model_rounds_on_request_and_its_vectors_are_kept_apart(cache):
    exact = embed(TEXTS, EMBEDDER)
    half = embed(TEXTS, EMBEDDER + HALF)
    assert half.dtype == np.float32
    cosines = (half * exact).sum(axis=1)
    assert cosines.min() > 0.999
    assert cosines.max() < 1.0
    assert np.array_equal(embed(TEXTS, EMBEDDER), exact)
    assert np.array_equal(embed(TEXTS, EMBEDDER + HALF), half)
    assert embedder_identity(EMBEDDER + HALF, {}) == embedder_identity(EMBEDDER, {}) + HALF


def test_vectors_of_an_endpoint_are_those_of_its_options():
    def identity(**options):
        served = Endpoint(base_url="http://h/v1", model="m", options=options)
        return embedder_identity("endpoint:x", {"x": served})

    assert identity() == "endpoint http://h/v1 m"
    assert len({identity(), identity(dimensions=256), identity(dimensions=512)}) == 3
    assert identity(a=1, b=2) == identity(b=2, a=1)


@pytest.mark.parametrize(
    ("texts", "source", "expected"),
    [
        (["fine"], f"endpoint:nowhere{HALF}", "no endpoint nowhere@bfloat16 under endpoints"),
        (["fine", "  "], "m", "text 1 is empty"),
        (["fine"], "endpoint:nowhere", "no endpoint nowhere under endpoints"),
        (["fine"], "./no/such/folder", "cannot be loaded"),
    ],
)
def test_refusals(texts, source, expected):
    with pytest.raises(AriaError, match=expected):
        embed(texts, source)


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [([[1.0, np.nan]], "not finite"), ([[]], "no numbers"), ([1.0], "no numbers")],
)
def test_vectors_that_cannot_be_used_are_refused(monkeypatch, vectors, expected):
    broken = np.array(vectors, np.float32)
    monkeypatch.setattr(embedding, "_encoder", lambda source, endpoints: lambda batch: broken)
    with pytest.raises(AriaError, match=expected):
        embed(["text"])


def test_cached_vectors_of_another_length_are_refused(counted, monkeypatch, cache):
    embed(TEXTS)
    monkeypatch.setattr(
        embedding, "_encoder", lambda source, endpoints: lambda b: np.ones((len(b), 5))
    )
    found = r"vectors of 3 and 5 numbers: .* delete .*cache.vectors\.sqlite if"
    with pytest.raises(AriaError, match=found):
        embed([*TEXTS, "Is it new?"])


@pytest.mark.parametrize("change", [{"model": "n"}, {"base_url": "http://there/v1"}])
def test_another_model_behind_an_endpoint_embeds_anew(counted, change):
    endpoint = Endpoint(base_url="http://here/v1", model="m")
    for served, encoded in ((endpoint, 3), (endpoint, 0), (endpoint.model_copy(update=change), 3)):
        counted.clear()
        embed(TEXTS, "endpoint:here", here=served)
        assert len(counted) == encoded


class _Server(BaseHTTPRequestHandler):
    keys: list[str] = []  # noqa: RUF012
    ragged = False

    def do_POST(self):
        self.keys.append(self.headers["Authorization"])
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        data = [
            {"index": i, "embedding": [len(t), 1.0][: 2 - self.ragged * (i % 2)]}
            for i, t in enumerate(texts)
        ]
        body = json.dumps({"object": "list", "data": data[::-1], "model": "m"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_an_endpoint_embeds_with_the_key_from_the_environment(monkeypatch, cache):
    server = HTTPServer(("127.0.0.1", 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    endpoint = Endpoint(base_url=url, model="m", api_key_env="EMBED_TEST_KEY")
    monkeypatch.delenv("EMBED_TEST_KEY", raising=False)
    with pytest.raises(AriaError, match="environment variable EMBED_TEST_KEY is not set"):
        embed(TEXTS, "endpoint:here", here=endpoint)
    monkeypatch.setenv("EMBED_TEST_KEY", "s3cret")
    vectors = embed(TEXTS, "endpoint:here", normalize=False, here=endpoint)
    cache("another")
    monkeypatch.setattr(_Server, "ragged", True)
    with pytest.raises(AriaError, match="vectors of different lengths"):
        embed(TEXTS, "endpoint:here", here=endpoint.model_copy(update={"deadline_s": 0.5}))
    server.shutdown()
    assert vectors[:, 0].tolist() == [len(text) for text in TEXTS]
    assert set(_Server.keys) == {"Bearer s3cret"}
