"""What the run shows: few numbers for reviews, all numbers as details, tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.chain import read_selection
from aria_dvc.credit.selection import drawn_curve
from aria_dvc.files import write_csv, write_json
from aria_dvc.games.registry import get_game
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.log_outputs import LogOutputs
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.worth import with_worth
from aria_dvc.player_specs import endpoint_name, find_endpoint
from aria_dvc.records.names import PLAYABLE
from aria_dvc.records.schemas import EVALUATION
from aria_dvc.records.stored import read_evaluation, read_stage_csv, read_stage_json
from aria_dvc.report import figures
from aria_dvc.report.closing import closing_lines
from aria_dvc.report.evaluation import RATE, evaluation_metrics, leaderboard, rates, with_holm
from aria_dvc.report.figures import Pictures, counted
from aria_dvc.report.health import Finding, LogFacts, health
from aria_dvc.report.intentions import intention_table
from aria_dvc.report.metrics import (
    brief_credit,
    brief_evaluation,
    brief_learning,
    credit_metrics,
    log_failures,
    pooled_curve,
    refused_per_turn,
)
from aria_dvc.report.namer import named_by_model
from aria_dvc.report.names import shortened
from aria_dvc.report.projection import project

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """The outputs of all stages, as params.yaml names them (never what else lies in folders)."""

    params: Params

    @cached_property
    def logs(self) -> dict[str, LogOutputs]:
        return {name: LogOutputs(files_of(self.params, name)) for name in self.params.logs}

    @cached_property
    def credit(self) -> dict[str, Any]:
        """Everything that was measured of each log's intentions and credit."""
        return {name: self._credited(log) for name, log in self.logs.items()}

    def _credited(self, log: LogOutputs) -> dict[str, Any]:
        measured = credit_metrics(
            read_selection(log.files.selected_k),
            log.rewards,
            read_stage_json(log.files.credit_quality, "aggregate"),
        )
        return {**measured, "refused_per_turn": refused_per_turn(log.turns, log.episodes)}

    @cached_property
    def learning(self) -> dict[str, Any]:
        """What the learning stages measured, per category: reward model, estimator, policies."""
        return {category: self._learned(category) for category in self.params.categories}

    def _learned(self, category: str) -> dict[str, Any]:
        online = {
            name: read_stage_json(paths.online(name, category) / "metrics.json", "online")
            for name in self.params.online.variants
        }
        return {
            "reward_model": read_stage_json(
                paths.reward_model(category) / "metrics.json", "reward_model"
            ),
            "progress": read_stage_json(paths.progress(category) / "metrics.json", "progress"),
            "policy": {
                name: read_stage_json(paths.policy(name, category) / "metrics.json", "policy")
                for name in self.params.variants
            },
            **({"online": online} if online else {}),
        }

    @cached_property
    def course(self) -> pd.DataFrame:
        """One row an iteration, log and trained role of every variant that trained online."""
        import pandas as pd

        tables = [
            read_stage_csv(file, ("log", "role"), "online").assign(variant=name, category=category)
            for category in self.params.categories
            for name in self.params.online.variants
            if (file := paths.online(name, category) / "online.csv").exists()
        ]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=CURVE)

    def projected(self, name: str, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a log's (m, d) points and their places on its map (see report/projection.py).

        Computed once a log; none where params.yaml wants no map.
        """
        if name not in self._maps:
            most, seed = self.params.report.umap_points, self.params.seed
            nothing = np.zeros(0, np.int64), np.zeros((0, 2), np.float32)
            self._maps[name] = project(points, most, seed) if self.params.report.umap else nothing
        return self._maps[name]

    @cached_property
    def _maps(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {}

    @cached_property
    def games(self) -> pd.DataFrame:
        """One row per evaluation game of every variant; none where no policy is trained."""
        import pandas as pd

        tables = [pd.DataFrame(columns=list(EVALUATION.dtypes)).astype(EVALUATION.dtypes)]
        tables += [
            read_evaluation(paths.evaluation(variant, category), variant)
            for category in self.params.categories
            for variant in self.params.variants
        ]
        return pd.concat([table for table in tables if len(table)] or tables[:1])

    @cached_property
    def evaluation(self) -> dict[str, Any]:
        """Per game: rates by role and over both, and what each variant gains over vanilla."""
        baselines = self.params.report.baselines
        measured = {
            str(game): evaluation_metrics(
                with_worth(with_task_kind(with_winnable(rows))),
                PLAYABLE[str(game)] == "adversarial",
                baselines,
            )
            for game, rows in self.games.groupby("game")
        }
        return with_holm(measured)

    @cached_property
    def intentions(self) -> dict[str, pd.DataFrame]:
        """By log one row an intention (see report/intentions.py)."""
        return {name: self._intentions(log) for name, log in self.logs.items()}

    def _intentions(self, log: LogOutputs) -> pd.DataFrame:
        credit = log.rewards["reward"].to_numpy()
        table = intention_table(log.labelled, credit, log.turns["embedded"].tolist())
        asked = endpoint_name(self.params.report.names)
        if asked is None:
            return table
        return named_by_model(table, asked, find_endpoint(asked, self.params.endpoints))

    @cached_property
    def findings(self) -> list[Finding]:
        """What is to be known before a figure is believed."""
        facts = {name: _facts(log) for name, log in self.logs.items()}
        return health(self.credit, facts, self.learning, self.evaluation)

    @property
    def closing(self) -> list[str]:
        """The last lines of a run."""
        found = (self.learning, self.evaluation, self.findings)
        return closing_lines(*found, self.params.seed)


def _facts(log: LogOutputs) -> LogFacts:
    turns, ks = log.turns, log.curves["k"]
    rewards = turns.loc[turns["is_action"], "reward"]
    return LogFacts(
        (int(ks.min()), int(ks.max())),
        int(turns["episode_id"].nunique()),
        log_failures(log.episodes),
        (float(rewards.min()), float(rewards.max())),
    )


def with_winnable(games: pd.DataFrame) -> pd.DataFrame:
    """Evaluation games with a bool column `winnable`, by each game's rules (see games/base.py)."""
    import orjson

    columns = zip(games["game"], games["config"], games["role"], strict=True)
    winnable = [get_game(game).winnable(orjson.loads(text), role) for game, text, role in columns]
    return games.assign(winnable=np.array(winnable, dtype=bool))


def with_task_kind(games: pd.DataFrame) -> pd.DataFrame:
    """Evaluation games with a column `kind`, null where a game's tasks are of no kinds."""
    import orjson

    columns = zip(games["game"], games["config"], strict=True)
    kinds = [get_game(game).task_kind(orjson.loads(text)) for game, text in columns]
    return games.assign(kind=np.array(kinds, dtype=object))


def write_metrics(run: Run, folder: Path) -> None:
    """credit.json, learning.json and evaluation.json: what a review looks at, rounded."""
    write_json(folder / "credit.json", {n: brief_credit(m) for n, m in run.credit.items()})
    write_json(folder / "learning.json", {n: brief_learning(m) for n, m in run.learning.items()})
    brief = {name: brief_evaluation(m) for name, m in run.evaluation.items()}
    write_json(folder / "evaluation.json", brief)


def write_details(run: Run, folder: Path) -> None:
    """All numbers, in files of the same names."""
    for name in ("credit", "learning", "evaluation"):
        write_json(folder / f"{name}.json", getattr(run, name))
    write_csv(folder / "leaderboard.csv", leaderboard(run.evaluation))
    found = [finding.record() for finding in run.findings]
    write_json(folder / "health.json", {"closing": run.closing, "findings": found})


def write_intentions(run: Run, folder: Path) -> None:
    """<log>.csv: the intentions of every log, examples cut so that the files stay small."""
    for name, table in run.intentions.items():
        cut = [
            " | ".join(shortened(text, WIDEST_EXAMPLE) for text in texts)
            for texts in table["examples"]
        ]
        write_csv(folder / f"{name}.csv", table.assign(examples=cut))


def write_plots(run: Run, folder: Path, pictures: Pictures) -> None:
    """CSV files for `dvc plots`, one a log, and the pictures."""
    import pandas as pd

    for name, log in run.logs.items():
        _log_plots(run, name, log, folder, pictures)
        if run.params.report.umap:
            _intention_map(run, name, pictures)
    for category in run.params.categories:
        _losses(run, category, folder)
    if not (folder / "training").exists():  # DVC calls a plot that has no file a failure
        write_csv(folder / "training" / "none.csv", pd.DataFrame(columns=["step", "loss"]))
    _learning_curve(run, folder, pictures)
    table = evaluation_rates(run.evaluation)
    write_csv(folder / "evaluation.csv", table)
    if len(table):
        ks = ", ".join(f"{number['selected_k']} ({log})" for log, number in run.credit.items())
        shown = counted(ks, int(table["episodes"].sum()), "games, 95 % intervals")
        pictures.save(figures.evaluation(table), "evaluation", shown)


def _log_plots(run: Run, name: str, log: LogOutputs, folder: Path, pictures: Pictures) -> None:
    import pandas as pd

    curve = drawn_curve(log.curve)
    write_csv(folder / "k_curve" / f"{name}.csv", curve)
    calibration = run.credit[name]["credit_quality"].get("calibration", [])
    columns = ["decile", "actions", "credit", "return"]
    write_csv(folder / "credit" / f"{name}.csv", pd.DataFrame(calibration, columns=columns))
    k, rewards = run.credit[name]["selected_k"], log.rewards
    shown = f"{name}, {counted(k, len(log.turns), 'utterances')}"
    pictures.save(figures.k_curve(curve, k, name), f"k_curve_{name}", shown)
    pictures.save(figures.sparsity(curve, name), f"sparsity_{name}", shown)
    shown = f"{name}, {counted(k, len(rewards), 'actions')}"
    pictures.save(figures.rewards(rewards, name), f"rewards_{name}", shown)


def _losses(run: Run, category: str, folder: Path) -> None:
    """The loss of every variant that took a step."""
    for variant in run.params.variants:
        history = paths.policy(variant, category) / "history.csv"
        if history.exists():
            file = folder / "training" / f"{category}-{variant}.csv"
            write_csv(file, read_stage_csv(history, ("step", "loss"), "policy"))


def _learning_curve(run: Run, folder: Path, pictures: Pictures) -> None:
    """What the games of online training were worth, iteration by iteration."""
    course = run.course
    lines = course["log"] + ", " + course["role"] + ": " + course["variant"]
    write_csv(folder / "learning_curve.csv", course.assign(line=lines).reindex(columns=CURVE))
    curve = pooled_curve(course)
    several = curve.groupby("log")["games"].transform("nunique") > 1  # one point is no curve
    if several.any():
        shown = counted(run.params.k, int(curve["episodes"][several].sum()), "games")
        figure = figures.learning_curve(curve[several])
        pictures.save(figure, "learning_curve", f"{shown}, 95 % intervals")


def evaluation_rates(evaluation: dict[str, Any]) -> pd.DataFrame:
    """One row per game, role and variant: policy (a label), rate, low, high, episodes."""
    import pandas as pd

    table = pd.DataFrame(rates(evaluation), columns=["game", "role", "variant", *RATE])
    label = table["game"] + ", " + table["role"] + ": " + table["variant"]
    table.insert(0, "policy", label)
    return table


WIDEST_EXAMPLE = 80
CURVE = [
    "games",
    "win_rate",
    "line",
    "log",
    "role",
    "variant",
    "iteration",
    "episodes",
    "mean_reward",
    "refused_rate",
    "tokens",
    "credit",
    "loss",
    "kl_per_action",
    "entropy_per_action",
    "gradient_norm",
    "zero_advantages",
]


def _intention_map(run: Run, name: str, pictures: Pictures) -> None:
    log, table = run.logs[name].labelled, run.intentions[name]
    drawn, points = run.projected(name, log.points)
    labels, counts = log.labels[log.clustered][drawn], log.distinct.count[log.distinct.point[drawn]]
    title = f"{name}: {len(np.unique(log.labels[log.clustered]))} intentions"
    shown = counted(run.credit[name]["selected_k"], int(log.clustered.sum()), "utterances")
    names = dict(zip(table["intention"].tolist(), table["name"], strict=True))
    figure = figures.intention_map(points, labels, counts, names, title)
    drawn_of = f"{name}, {shown} ({len(drawn)} different texts drawn)"
    pictures.save(figure, f"intentions_{name}", drawn_of)
