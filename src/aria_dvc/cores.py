"""How much of the machine this process may use."""

from __future__ import annotations

import os
from typing import Literal

import joblib

MOST = 4  # lanes, unless more are asked for: each holds what it computes in memory


def default_threads() -> int:
    """OMP_NUM_THREADS if set, else the processors this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else joblib.cpu_count()


def lanes(asked: Literal["auto"] | int) -> int:
    """How many things a model computes side by side on the CPU; by default one thing on a GPU."""
    if asked != "auto":
        return asked
    import torch

    return 1 if torch.cuda.is_available() else min(MOST, default_threads())


def cores_of_lane(lanes: int) -> int:
    """The threads that each of so many lanes may use."""
    return max(1, default_threads() // lanes)
