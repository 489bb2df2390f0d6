"""Settings for tests: everything is given, what a test is about is said by the test."""

from __future__ import annotations

from typing import Any

from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import Pace


def play_settings(**changes: Any) -> PlaySettings:
    """Short replies, sampled, two re-asks."""
    values = {"temperature": 1.0, "top_p": 0.95, "max_new_tokens": 8, "max_reasks": 2}
    return PlaySettings(**{**values, "sampling": {}, **changes})


def pace(**changes: Any) -> Pace:
    """Eight games at once, a minute's patience, float32."""
    values = {
        "in_flight": 8,
        "cache_gib": 1.0,
        "deadline_s": 60,
        "embed_batch": 64,
        "tokens_per_batch": 1024,
        "checkpoint_every": 20,
        "precision": "float32",
    }
    return Pace(**{**values, **changes})
