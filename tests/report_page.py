"""A page made of a small log that says hostile things, and of a large one made up."""

from __future__ import annotations

import numpy as np
import pandas as pd

from aria_dvc.credit.chain import credit_table
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions
from aria_dvc.params import load_params
from aria_dvc.report.evaluation import rates
from aria_dvc.report.intentions import intention_table
from aria_dvc.report.intervals import paired_difference, rate
from aria_dvc.report.page.blocks import LogTables, log_block
from aria_dvc.report.page.document import Page
from aria_dvc.report.page.results import learning_block, results

HOSTILE = "</script><img src=x onerror=alert(1)><!-- <script> & $x^2$ {{ 7 }} \u2028 \u202e"
KINDS = ["half each", "take it", "leave it", "never", HOSTILE, "all mine"]
ROLES = ("alice", "bob")


def made_log(episodes: int, kinds: int = 6, spread: float = 0.01, seed: int = 0) -> Log:
    """Games of four utterances; what is said is one of `kinds`, and so is where it lies."""
    rng = np.random.default_rng(seed)
    n = 4 * episodes
    kind = rng.integers(0, kinds, n)
    turns = pd.DataFrame(
        {
            "game": "own",
            "episode_id": np.repeat([f"e{number} {HOSTILE}" for number in range(episodes)], 4),
            "position": np.tile(np.arange(4), episodes),
            "role": np.tile(ROLES, 2 * episodes),
            "is_action": True,
            "turn": np.tile([1, 1, 2, 2], episodes),
            "turns": 2,
            "text": [f"{KINDS[one % 6]} ({row})" for row, one in enumerate(kind)],
            "reward": np.repeat(rng.choice([0.0, 0.5, 1.0], episodes), 4),
        }
    )
    vectors = np.eye(kinds)[kind] + rng.normal(0, spread, (n, kinds))
    return Log.of(turns, vectors.astype(np.float32), gamma=0.9)


def made_tables(log: Log, k: int = 6, drawn: int = 1500) -> LogTables:
    """The tables of a log as the stages would write them, the map at random places."""
    shipped = load_params("params.yaml")
    params = shipped.model_copy(
        update={"aggregate": shipped.aggregate.model_copy(update={"method": "aria"})}
    )
    cuts = find_intentions(log, shipped.cluster.model_copy(update={"k_max": k})).cuts
    labelled = log.with_labels(cuts.at(k))
    rewards = credit_table(labelled, params)
    rows = log.distinct.first[:drawn]
    points = np.random.default_rng(0).normal(size=(len(rows), 2))
    curve = pd.DataFrame({"k": cuts.ks, "silhouette": 0.5 / cuts.ks, "r2": np.nan})
    curve["davies_bouldin"] = np.where(cuts.ks < k, 0.4, 0.0)
    curve["calinski_harabasz"] = np.where(cuts.ks < k, 9.0, 1.0)
    runners = {"split_score": 2, "davies_bouldin": k}
    chosen = {"selected_k": k, "method": "silhouette", "runners_up": runners}
    selection = {**chosen, "per_role": {}, "overridden": False}
    table = intention_table(labelled, rewards["reward"].to_numpy())
    return LogTables(labelled, cuts, rewards, curve, selection, table, rows, points)


def made_evaluation() -> dict:
    """One game in which `aria` wins more than vanilla, by a difference of 60 pairs."""
    after, before = np.arange(60) < 45, np.arange(60) < 15
    gain = paired_difference(after, before, np.arange(60))
    gain |= {"p_holm": gain["p"], "comparisons": 1}
    by_variant = {"vanilla": rate(before), "aria": rate(after)}
    metrics = {"all": by_variant, "by_role": {"alice": by_variant}, "minus_vanilla": {"aria": gain}}
    return {"bargaining": metrics}


def made_learning() -> dict:
    course = pd.DataFrame(
        {
            "variant": "aria",
            "log": "own",
            "role": [*ROLES, *ROLES],
            "games": [0, 0, 40, 40],
            "episodes": 20,
            "win_rate": [0.2, 0.3, 0.5, 0.6],
            "mean_reward": [0.3, 0.3, 0.5, 0.5],
            "kl_per_action": [0.0, 0.0, 0.1, 0.1],
        }
    )
    history = pd.DataFrame({"step": [1, 2], "loss": [0.5, 0.4], "gradient_norm": [1.0, 0.9]})
    model = {"r2": 0.2, "r2_low": 0.1, "r2_high": 0.3, "mse": 0.04, "mse_of_baseline": 0.05}
    return learning_block("adversarial", course, {"aria": history}, model)


def made_page(*tables: LogTables, most: float = 8e6) -> Page:
    blocks = [{**log_block(one, most), "learning": made_learning()} for one in tables]
    logs = {f"log {number} {HOSTILE}": block for number, block in enumerate(blocks)}
    finding = {"about": HOSTILE, "words": HOSTILE, "try": HOSTILE, "level": "warning"}
    found = made_evaluation()
    return Page(0, results(found), rates(found), [finding] * 8, logs)
