"""How a server of ours says no."""

from __future__ import annotations

AGAIN_S = 1  # Retry-After of a server that is full


class Rejection(Exception):
    """A request that is not answered as asked: `status` is its HTTP code, `headers` go with it."""

    def __init__(self, message: str, status: int = 422, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def full(message: str, status: int = 503) -> Rejection:
    """A rejection after which the client should ask again."""
    return Rejection(message, status, Retry_After=str(AGAIN_S))
