"""A hub on this machine: what `hf upload` asks of one, with every file taken as it is (no Xet)."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from huggingface_hub import ModelCard


class Hub(ThreadingHTTPServer):
    """files: repository -> path -> content. cards: what was asked to be validated."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, dict[str, bytes]] = {}
        self.cards: list[ModelCard] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and JSON of a POST."""
        parts = path.partition("?")[0].strip("/").split("/")
        if parts == ["api", "repos", "create"]:
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.files[name] = {}
            return 200, {"url": f"{self.url}/{name}"}
        if parts == ["api", "validate-yaml"]:
            self.cards.append(ModelCard(json.loads(body)["content"]))  # refuses wrong metadata
            return 200, {"errors": [], "warnings": []}
        if parts[:2] == ["api", "models"] and len(parts) == 6:
            name, what = "/".join(parts[2:4]), parts[4]
            if what == "preupload":
                asked = json.loads(body)["files"]
                told = {"uploadMode": "regular", "shouldIgnore": False}
                return 200, {"files": [{"path": file["path"], **told} for file in asked]}
            if what == "commit":
                self.files[name] |= dict(_committed(body))
                return 200, {"commitUrl": f"{self.url}/{name}/commit/0", "commitOid": "0"}
        return 404, {"error": f"this hub knows no {path}"}


def _committed(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Path and content of each file of a commit."""
    for line in map(json.loads, body.splitlines()):
        if line["key"] == "file":
            yield line["value"]["path"], base64.b64decode(line["value"]["content"])


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, told = self.server.answer(self.path, body)
        answer = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def local_hub() -> Iterator[Hub]:
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
