"""What games can be worth to both sides together; apart, since no stage that plays needs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

BEST: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "bargaining": lambda config: 1.0,
    "negotiation": lambda config: max(0.0, config["buyer_value"] - config["seller_value"]),
}


def best_total(game: str, config: Mapping[str, Any]) -> float:
    """The largest sum of both utilities that a configuration allows; NaN where none is defined."""
    return BEST[game](config) if game in BEST else math.nan
