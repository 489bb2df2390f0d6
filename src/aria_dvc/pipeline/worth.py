"""What games were worth to both sides together: efficiency and fairness (GLEE, sec. 3).

Evaluation tables have both sides' utilities; the games say the rest by their configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.games.totals import best_total

if TYPE_CHECKING:
    import pandas as pd


ROUNDING = 1e-9  # of a sum of utilities


def with_worth(games: pd.DataFrame) -> pd.DataFrame:
    """Evaluation games with float64 columns `efficiency` and `fairness`.

    efficiency: the sum of both utilities over the largest that was possible; where no trade can
    help, 1 without a trade, or with one that costs nothing, and 0 with any other. fairness: 1 -
    (difference of both utilities)^2, of games with a deal: 1 where both gain alike. NaN for games
    without utilities.
    """
    import orjson

    own, other = (games[name].to_numpy(float) for name in ("utility", "opponent_utility"))
    columns = zip(games["game"], games["config"], strict=True)
    best = np.array([best_total(game, orjson.loads(text)) for game, text in columns], float)
    total = own + other
    deal = ~games["no_deal"].to_numpy(bool) & (games["failure_kind"] == "").to_numpy(bool)
    shares = np.divide(total, best, out=np.full(len(games), np.nan), where=best > 0)
    harmless = ~deal | (total > -ROUNDING)
    efficiency = np.where(best > 0, shares, np.where(best == 0, harmless, np.nan))
    fairness = np.where(deal & ~np.isnan(best), 1 - (own - other) ** 2, np.nan)
    return games.assign(efficiency=efficiency, fairness=fairness)
