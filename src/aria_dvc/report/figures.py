"""Pictures of a run: numbers come in as frames that are also written as CSV; one figure a function.

Every function returns a matplotlib figure; `Pictures` writes it, byte-stable, as PNG and as SVG.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, cast

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patheffects import withStroke

from aria_dvc.files import written_aside
from aria_dvc.report.names import shortened
from aria_dvc.shown import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 110
FORMATS: dict[str, dict[str, Any]] = {  # without dates, so that equal figures are equal files
    "png": {"dpi": DPI, "metadata": {"Software": None}},
    "svg": {"metadata": {"Date": None, "Creator": None}},
}
CAPTION_SIZE, LETTERS_PER_INCH = 7, 17
INDICES = {
    "silhouette": "silhouette (higher is better)",
    "calinski_harabasz": "Calinski-Harabasz (higher is better)",
    "davies_bouldin": "Davies-Bouldin (lower is better)",
    "split_score": "SplitScore (stable when small)",
}
GREY, BLUE = "#8a8f98", "#1f6fb4"
OTHERS = "#c9ccd1"
# Paul Tol's scheme "muted": told apart by the colour-blind; the markers do without any colour.
NAMED = tuple(
    zip(
        (
            "#332288",
            "#cc6677",
            "#117733",
            "#88ccee",
            "#ddcc77",
            "#aa4499",
            "#44aa99",
            "#882255",
            "#999933",
        ),
        "osD^vPX<>",
        strict=True,
    )
)
WIDEST_NAME = 44
LEGEND_AREA = 45.0
COLOURS = (GREY, BLUE, "#c98a2b", "#4a9c6d", "#b5577f", "#7a68b8", "#5b7f95", "#a0522d")


@dataclass(frozen=True)
class Pictures:
    """Where the pictures of a run go: the same ones as PNG into one folder, as SVG into another.

    seed, run: of the run and its name, as on its page (see report/page/document.py).
    """

    png: Path
    svg: Path
    seed: int
    run: str

    def save(self, figure: Figure, name: str, shown: str) -> None:
        """Write `name`.png and `name`.svg; below the figure stand `shown` (what, k, n), seed, run.

        Letters of an SVG are outlines: it looks the same wherever it is opened.
        """
        text = f"{shown}, seed {self.seed}, run {self.run}".replace("$", r"\$")
        lines = fill(text, int(LETTERS_PER_INCH * figure.get_figwidth()))
        figure.supxlabel(lines, x=0.01, ha="left", fontsize=CAPTION_SIZE, color=GREY)
        for suffix, options in FORMATS.items():
            path = getattr(self, suffix) / f"{name}.{suffix}"
            # without a salt the ids of an SVG's parts are drawn at random
            with written_aside(path) as aside, plt.rc_context({"svg.hashsalt": name}):
                figure.savefig(aside, format=suffix, **options)
        plt.close(figure)


def counted(k: object, n: int, what: str) -> str:
    """The middle of a caption: number of intentions, number of what is shown."""
    return f"k = {k}, n = {n:,} {what}"


def k_curve(curve: pd.DataFrame, selected: int, title: str) -> Figure:
    """Every index against k; a line marks the chosen k."""
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), sharex=True, layout="constrained")
    for axis, (column, label) in zip(axes.flat, INDICES.items(), strict=True):
        axis.plot(curve["k"], curve[column], color=BLUE, linewidth=1.4)
        axis.axvline(selected, color="#c44e52", linewidth=1, linestyle="--")
        axis.set_title(label, fontsize=9)
        axis.grid(alpha=0.25)
    for axis in axes[-1]:
        axis.set_xlabel("number of intentions k")
    figure.suptitle(f"{title}: chosen k = {selected}")
    return figure


def sparsity(curve: pd.DataFrame, title: str) -> Figure:
    """How sparse the cells are: shares of singleton cells and of turns that can still change."""
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    axis.plot(curve["k"], curve["singleton_share"], label="turns alone in their cell")
    axis.plot(curve["k"], curve["live_share"], label="turns whose cell can still change")
    axis.set(xlabel="number of intentions k", ylabel="share of turns", ylim=(-0.02, 1.02))
    axis.set_title(title, fontsize=10)
    axis.grid(alpha=0.25)
    axis.legend(frameon=False)
    return figure


def rewards(frame: pd.DataFrame, title: str) -> Figure:
    """Distribution of the returns before, and of the credit after aggregation."""
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    low = min(frame["return"].min(), frame["reward"].min())
    high = max(frame["return"].max(), frame["reward"].max())
    bins = np.linspace(low, max(high, low + 1e-6), 31).tolist()
    axis.hist(frame["return"], bins, alpha=0.55, label="discounted return", color=GREY)
    axis.hist(frame["reward"], bins, alpha=0.65, label="credit", color=BLUE)
    axis.set(xlabel="reward of a turn", ylabel="turns")
    axis.set_title(title, fontsize=10)
    axis.legend(frameon=False)
    return figure


def evaluation(frame: pd.DataFrame) -> Figure:
    """Win or success rate per game and role for every variant, with 95 % intervals.

    Columns of `frame`: game, role, variant, rate, low, high.
    """
    pairs = list(dict.fromkeys(zip(frame["game"], frame["role"], strict=True)))
    variants = list(dict.fromkeys(frame["variant"]))
    frame = frame.astype(dict.fromkeys(("rate", "low", "high"), float))  # null: no game to judge
    width = 0.76 / len(variants)
    figure, axis = plt.subplots(figsize=(1.6 + 1.3 * len(pairs), 3.8), layout="constrained")
    for number, variant in enumerate(variants):
        part = frame[frame["variant"] == variant].set_index(["game", "role"]).loc[pairs]
        x = np.arange(len(pairs)) + (number - (len(variants) - 1) / 2) * width
        errors = np.abs(part[["low", "high"]].to_numpy().T - part["rate"].to_numpy())
        colour = COLOURS[number % len(COLOURS)]
        axis.bar(x, part["rate"], 0.95 * width, color=colour, label=_named(variant))
        axis.errorbar(x, part["rate"], errors, fmt="none", ecolor="#333333", capsize=3)
    axis.set_xticks(range(len(pairs)), [f"{game}\n{role}" for game, role in pairs], fontsize=8)
    axis.set(ylabel="win or success rate", ylim=(0, 1))
    axis.grid(axis="y", alpha=0.25)
    axis.legend(frameon=False)
    return figure


def intention_map(
    points: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    names: dict[int, str],
    title: str,
) -> Figure:
    """Utterances in two dimensions; the most frequent intentions in colour, by name and number.

    Args:
        points: (m, 2) float, a position for each different utterance.
        labels: (m,) int, its intention. counts: (m,) int, how often it is said: the area.
        names: intention -> name, in the order of the legend; only the first NAMED of them are in
            colour, each with a marker of its own, all others are grey.
    """
    figure, axis = plt.subplots(figsize=(9.2, 5.2), layout="constrained")
    areas = 14 * np.sqrt(counts)
    shown = [number for number in names if (labels == number).any()][: len(NAMED)]
    rest = ~np.isin(labels, shown)
    if rest.any():
        axis.scatter(points[rest, 0], points[rest, 1], s=areas[rest], c=OTHERS, linewidths=0)
    for number, (colour, marker) in zip(shown, NAMED, strict=False):
        own = labels == number
        kind: dict[str, Any] = {"c": colour, "marker": marker, "label": _label(number, names)}
        x, y = points[own].T
        axis.scatter(x, y, s=areas[own], edgecolors="white", linewidths=0.4, **kind)
    for number in shown:  # above all points
        _number(axis, points[labels == number], number)
    if rest.any():
        others = f"{len(np.unique(labels[rest]))} others"
        axis.scatter([], [], c=OTHERS, linewidths=0, label=others)
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=10, loc="left")
    legend = figure.legend(loc="outside right upper", frameon=False, fontsize=8.5)
    for handle in legend.legend_handles:
        cast(Any, handle).set_sizes([LEGEND_AREA])
    return figure


def _label(number: int, names: dict[int, str]) -> str:
    """The number and name, cut; a dollar of the texts begins no formula."""
    name = shortened(printable(names[number]), WIDEST_NAME, " ..")
    return f"{number}  {name}".replace("$", r"\$")


def _named(variant: str) -> str:
    """A variant in a legend, from which matplotlib leaves out what begins with an underscore."""
    return f" {variant}" if variant.startswith("_") else variant


def _number(axis: Axes, points: np.ndarray, number: int) -> None:
    """The intention's number at the utterance that is nearest to the middle of its own."""
    middle = np.median(points, axis=0)
    place = points[int(np.square(points - middle).sum(axis=1).argmin())]
    axis.annotate(
        str(number),
        place,
        xytext=(5, 4),
        textcoords="offset points",
        fontsize=9.5,
        fontweight="bold",
        color="#222222",
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )


def learning_curve(curve: pd.DataFrame) -> Figure:
    """Win rate by games played, a panel a log and a line a variant, with 95 % intervals.

    Columns of `curve`: log, variant, games, win_rate, low, high.
    """
    logs, variants = curve["log"].unique(), curve["variant"].unique()
    size = (1.2 + 3.4 * len(logs), 3.4)
    figure, grid = plt.subplots(
        1, len(logs), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for axis, log in zip(grid[0], logs, strict=True):
        for number, variant in enumerate(variants):
            part = curve[(curve["log"] == log) & (curve["variant"] == variant)]
            colour = COLOURS[(number + 1) % len(COLOURS)]  # grey is for what is not trained
            axis.fill_between(
                part["games"], part["low"], part["high"], color=colour, alpha=0.15, linewidth=0
            )
            label = _named(variant)
            axis.plot(part["games"], part["win_rate"], color=colour, marker="o", label=label)
        axis.set_title(str(log).replace("_", " "), fontsize=10)
        axis.set(xlabel="games played before", ylim=(0, 1))
        axis.grid(alpha=0.25)
    grid[0, 0].set_ylabel("win or success rate")
    grid[0, 0].legend(frameon=False)
    return figure
