"""What games were worth to both sides together: efficiency and fairness (GLEE, sec. 3).

Evaluation tables have both sides' utilities; the games say the rest by their configuration. These
columns are made here and not by the games, whose code every stage that plays depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

BEST: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "bargaining": lambda config: 1.0,
    "negotiation": lambda config: max(0.0, config["buyer_value"] - config["seller_value"]),
}
"""The largest sum of both utilities that a configuration allows."""


def with_worth(games: pd.DataFrame) -> pd.DataFrame:
    """Evaluation games with float64 columns `efficiency` and `fairness`.

    efficiency: the sum of both utilities over the largest that was possible; where no trade can
    help, 1 without a trade and 0 with one. fairness: 1 - (difference of both utilities)^2, of games
    with a deal: 1 where both gain alike. NaN for games without utilities.
    """
    import orjson

    own, other = (games[name].to_numpy(float) for name in ("utility", "opponent_utility"))
    columns = zip(games["game"], games["config"], strict=True)
    best = np.array([_best(game, orjson.loads(text)) for game, text in columns], float)
    total = own + other
    deal = ~games["no_deal"].to_numpy(bool) & (games["failure_kind"] == "").to_numpy(bool)
    shares = np.divide(total, best, out=np.full(len(games), np.nan), where=best > 0)
    efficiency = np.where(best > 0, shares, np.where(best == 0, ~deal, np.nan))
    fairness = np.where(deal & ~np.isnan(best), 1 - (own - other) ** 2, np.nan)
    return games.assign(efficiency=efficiency, fairness=fairness)


def _best(game: str, config: Mapping[str, Any]) -> float:
    return BEST[game](config) if game in BEST else np.nan
