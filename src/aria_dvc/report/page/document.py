"""One HTML file out of blocks: jinja2 writes the first screen, the client draws the rest.

Opens from file:// and asks for nothing: plotly.js lies inside as text and is run after the first
paint. Whatever a log says is data: jinja2 escapes it, JSON is written without `<`, the client sets
it as text, and the policy of the page runs no script but its own two, which it knows by their sums.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from aria_dvc.packaged import read_text
from aria_dvc.report.page.results import HISTORY
from aria_dvc.shown import printable

PACKAGE = "aria_dvc.report.page"
SCRIPTS = ("core.js", "figures.js", "map.js", "dialogues.js", "start.js")
SHOWN_INTENTIONS, SHOWN_WARNINGS = 8, 6
CURVES = {
    "silhouette": "silhouette (higher is better)",
    "calinski_harabasz": "Calinski-Harabasz (higher is better)",
    "davies_bouldin": "Davies-Bouldin (lower is better)",
    "split_score": "SplitScore (stable when small)",
    "r2": "R2 of the credit on held-out episodes",
    "singleton_share": "share of the turns alone in their cell",
}
LEARNING = {
    "win_rate": "win or success rate of the games played",
    "mean_reward": "return",
    "kl_per_action": "KL from the base, nats an action",
    "entropy_per_action": "entropy, nats an action",
    "gradient_norm": "gradient norm",
    "loss": "loss",
}
_CLOSING = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


@dataclass(frozen=True)
class Page:
    """What is shown.

    seed: of the run. results, rates: see `results`. health: about, words and try
    of each finding, the most important first (see report/health.py).
    logs: name -> what `log_block` gives, with `learning` (see `learning_block`).
    """

    seed: int
    results: Sequence[Mapping[str, Any]]
    rates: Sequence[Mapping[str, Any]]
    health: Sequence[Mapping[str, str]]
    logs: Mapping[str, Mapping[str, Any]]

    @cached_property
    def blocks(self) -> dict[str, str]:
        """name -> the log's block as JSON."""
        return {name: as_json(block) for name, block in self.logs.items()}

    @cached_property
    def shared(self) -> dict[str, Any]:
        """What is of no one log, with `run`: the run's name, a hash of all that the page shows."""
        shared = {"seed": self.seed, "rates": self.rates, "results": self.results}
        shared |= {"curves": CURVES, "learning": LEARNING}
        return {**shared, "run": run_name(*self.blocks.values(), as_json(shared))}

    @property
    def run(self) -> str:
        return str(self.shared["run"])


def document(page: Page) -> str:
    """The page as one HTML text."""
    own, plotly = (as_script(text) for text in ("\n".join(map(_asset, SCRIPTS)), _plotly()))
    return _template().render(
        page=page,
        run=page.run,
        blocks=page.blocks,
        shared=as_json(page.shared),
        style=_asset("page.css"),
        script=own,
        plotly=plotly,
        sums=[sum_of(own), sum_of(plotly)],
        compared=comparisons(page.results),
        reach=reach(page.results),
        first=SHOWN_INTENTIONS,
        warnings=SHOWN_WARNINGS,
        curves=CURVES.items(),
        learning=LEARNING.items(),
        offline=HISTORY,
    )


def run_name(*contents: str) -> str:
    """Eight letters that two runs of other results do not share, for captions."""
    return hashlib.sha256("".join(contents).encode()).hexdigest()[:8]


def comparisons(rows: Sequence[Mapping[str, Any]]) -> int:
    """How many p values the correction of the table is for."""
    return max((row["difference"]["comparisons"] for row in rows if row["difference"]), default=0)


def reach(rows: Sequence[Mapping[str, Any]]) -> float:
    """How far from 0 the intervals of differences are drawn: the quarter that holds them all."""
    found = [row["difference"] for row in rows if row["difference"]]
    bounds = [abs(one[key]) for one in found for key in ("low", "mean", "high") if one[key]]
    return math.ceil(4 * max(bounds, default=0.25)) / 4


def as_json(value: Any) -> str:
    """JSON that no text of which ends a script or begins a comment."""
    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    return text.decode().replace("<", "\\u003c").replace("\u2028", "\\u2028")


def as_script(text: str) -> str:
    """A script for the inside of an element: in its strings and patterns `\\x3c` is `<`."""
    return _CLOSING.sub(r"\\x3c", text)


def sum_of(script: str) -> str:
    """How the page's policy names a script that it may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return read_text(PACKAGE, name)


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters |= FILTERS
    made.globals["dict"] = dict
    return made.from_string(_asset("page.html"))


def _plain(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _signed(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:+.{digits}f}"


def _p(p: float | None) -> str:
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


FILTERS: dict[str, Any] = {
    "plain": _plain,
    "signed": _signed,
    "p": _p,
    "printable": printable,
    "words": lambda name: name.replace("_", " "),
}
