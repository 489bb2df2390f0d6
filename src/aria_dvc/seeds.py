"""The one idiom for seeds: a seed for a purpose is derived from the run's seed and the purpose."""

from __future__ import annotations

import hashlib
from typing import Any


def derived_seed(*parts: Any) -> int:
    """A 63-bit seed that depends on all the parts and on nothing else."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1
