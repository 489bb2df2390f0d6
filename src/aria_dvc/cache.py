"""Where what may be computed again is kept: journals of games, checkpoints, vectors of texts."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "ARIA_CACHE"


def cache_folder() -> Path:
    """`.aria_cache` in the current folder, or what the environment variable ARIA_CACHE names.

    Experiments in temporary folders share one cache by that variable.
    """
    return Path(os.environ.get(VARIABLE) or ".aria_cache")
