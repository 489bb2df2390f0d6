"""How much of the machine this process may use."""

from __future__ import annotations

import os

import joblib


def default_threads() -> int:
    """OMP_NUM_THREADS if set, else the processors this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else joblib.cpu_count()
