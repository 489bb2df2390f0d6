"""metrics/*.json and metrics/plots/ from the outputs of all stages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.credit.chain import ALL, chosen_labels, largest_k
from aria_dvc.files import read_json, read_parquet, write_csv, write_json
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import read_cuts
from aria_dvc.params import CATEGORIES, Params
from aria_dvc.pipeline import paths
from aria_dvc.records.names import PLAYABLE, category_of
from aria_dvc.records.tables import read_vectors
from aria_dvc.report import figures
from aria_dvc.report.metrics import VARIANTS, credit_metrics, evaluation_metrics
from aria_dvc.report.projection import project

if TYPE_CHECKING:
    import pandas as pd


def write_metrics(params: Params, folder: Path) -> None:
    """credit.json, learning.json and evaluation.json under `folder`."""
    write_json(folder / "credit.json", {game: _credit(game) for game in params.games})
    write_json(folder / "learning.json", _learning(params))
    played = [game for game in params.games if game in PLAYABLE]
    evaluation = {game: _evaluation(game) for game in played}
    write_json(folder / "evaluation.json", evaluation)


def write_plots(params: Params, folder: Path) -> None:
    """CSV files with the numbers behind every picture, and the pictures as PNG."""
    curves = {game: _curve(game) for game in params.games}
    write_csv(folder / "k_curve.csv", _stacked(curves))
    for game, curve in curves.items():
        selection = read_json(paths.selected_k(game))
        figures.save(
            figures.k_curve(curve, largest_k(selection), game), folder / f"k_curve_{game}.png"
        )
        figures.save(figures.sparsity(curve, game), folder / f"sparsity_{game}.png")
        rewards = read_parquet(paths.rewards(game))
        figures.save(figures.rewards(rewards, game), folder / f"rewards_{game}.png")
        if params.report.umap:
            _intention_map(params, game, selection, folder)
    _learning_plots(params, folder)
    rates = _rates(params)
    write_csv(folder / "evaluation.csv", rates)
    if len(rates):
        figures.save(figures.evaluation(rates), folder / "evaluation.png")


def _credit(game: str) -> dict[str, Any]:
    return credit_metrics(
        read_json(paths.selected_k(game)),
        read_parquet(paths.rewards(game)),
        read_json(paths.credit_quality(game)),
    )


def _curve(game: str) -> pd.DataFrame:
    """The rows of k_curve that are about all roles together."""
    import pandas as pd

    curve = pd.read_csv(paths.k_curve(game))
    return curve[curve["role"] == ALL].drop(columns="role")


def _learning(params: Params) -> dict[str, Any]:
    """What the learning stages measured, per category with games in this run."""
    return {
        category: {
            "reward_model": read_json(paths.reward_model(category) / "metrics.json"),
            "policy": read_json(paths.policy(category) / "metrics.json"),
        }
        for category in CATEGORIES
        if params.games_of(category)
    }


def _evaluation(game: str) -> dict[str, Any]:
    table = read_parquet(paths.evaluation(game))
    return evaluation_metrics(table, category_of(game) == "adversarial")


def _rates(params: Params) -> pd.DataFrame:
    """One row per game, role and policy: rate, low, high."""
    import pandas as pd

    rows = []
    for game in params.games:
        if game not in PLAYABLE:
            continue
        key = "win_rate" if category_of(game) == "adversarial" else "success_rate"
        for role, numbers in _evaluation(game).items():
            for variant in VARIANTS:
                values = (numbers[variant][name] for name in (key, f"{key}_low", f"{key}_high"))
                rows.append((game, role, variant, *values))
    return pd.DataFrame(rows, columns=["game", "role", "variant", "rate", "low", "high"])


def _learning_plots(params: Params, folder: Path) -> None:
    import pandas as pd

    offline: dict[str, pd.DataFrame] = {}
    for category in filter(params.games_of, CATEGORIES):
        history, online = (paths.policy(category) / f"{name}.csv" for name in ("history", "online"))
        if history.exists():
            offline[category] = pd.read_csv(history)
            figure = figures.loss(offline[category], f"policy, {category}")
            figures.save(figure, folder / f"policy_loss_{category}.png")
        if online.exists():
            figure = figures.online(pd.read_csv(online), f"policy, {category}, online")
            figures.save(figure, folder / f"policy_online_{category}.png")
    write_csv(folder / "policy_loss.csv", _stacked(offline, "category"))


def _stacked(frames: dict[str, pd.DataFrame], name: str = "game") -> pd.DataFrame:
    """Frames under each other, their keys in a first column."""
    import pandas as pd

    if not frames:
        return pd.DataFrame(columns=[name])
    return pd.concat([f.assign(**{name: key}) for key, f in frames.items()], ignore_index=True)


def _intention_map(params: Params, game: str, selection: dict[str, Any], folder: Path) -> None:
    log = Log.of(read_parquet(paths.turns(game)), read_vectors(paths.embeddings(game)))
    labels = chosen_labels(log, read_cuts(paths.labels(game)), selection)[log.clustered]
    drawn, points = project(log.points, params.report.umap_points, params.seed)
    title = f"{game}: {largest_k(selection)} intentions"
    figures.save(
        figures.intention_map(points, labels[drawn], title), folder / f"intentions_{game}.png"
    )
