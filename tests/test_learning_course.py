"""The learning curve: its rows, and how they are drawn."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aria_dvc.files import write_csv
from aria_dvc.learning.course import compact, role_rows
from aria_dvc.params import load_params
from aria_dvc.pipeline import paths, report
from aria_dvc.records.episodes import BrokenOff, Episode, PlayerName, Record, Tokens, Utterance
from aria_dvc.report import figures
from aria_dvc.report.intervals import mean_rate, rate
from aria_dvc.report.metrics import pooled_curve


def game(utilities, players=("policy", "scripted:hard"), failure=None, name="bargaining"):
    roles = ("alice", "bob")
    record = Record(
        players={r: PlayerName(p, "m") for r, p in zip(roles, players, strict=True)},
        tokens=dict.fromkeys(roles, Tokens(9, 4)),
        utilities=dict(zip(roles, utilities, strict=True)),
        failure=BrokenOff(failure, "no_offer") if failure else None,
    )
    said = [Utterance("alice", "mine"), Utterance("bob", "yours")]
    rewards = {"alice": 0.75, "bob": 0.25}
    return Episode("e", name, said, rewards, info=record.to_json())


def test_rows_count_what_the_policy_played():
    games = [
        game((0.6, 0.4)),
        game((0.4, 0.6)),
        game((0.5, 0.5), players=("scripted:hard", "policy")),
        game((0.0, 0.0), failure="alice"),
        game((0.0, 0.0), failure="bob"),
        game((0.6, 0.4), players=("scripted:hard", "scripted:hard")),
        game((0.4, 0.6), players=(None, "endpoint:stranger"), name="negotiation"),
    ]
    alice, bob, unnamed = role_rows(games)
    assert alice == {
        "log": "bargaining", "role": "alice", "episodes": 4, "win_rate": 0.25,
        "mean_reward": 0.75, "refused_rate": 0.25, "tokens": 16, "groups": "1/4",
    }  # fmt: skip
    assert (bob["role"], bob["episodes"], bob["win_rate"]) == ("bob", 1, 0.0)  # a tie is no win
    assert (unnamed["log"], unnamed["role"], unnamed["episodes"]) == ("negotiation", "alice", 1)


def test_games_with_itself_count_only_where_there_are_no_others():
    alone = [game((0.6, 0.4), players=("policy", "policy")) for _ in range(3)]
    alice, bob = role_rows(alone)
    assert (alice["episodes"], alice["win_rate"], bob["win_rate"]) == (3, 1.0, 0.0)
    alice, bob = role_rows([*alone, game((0.4, 0.6))])
    assert (alice["episodes"], alice["win_rate"]) == (1, 0.0)
    assert bob["episodes"] == 3
    assert (alice["tokens"], bob["tokens"]) == (16, 12)  # said in all of them


@pytest.mark.parametrize(("reward", "solved"), [(1.0, 1.0), (0.9, 0.0)])
def test_a_game_without_utilities_is_won_by_success(reward, solved):
    said = [Utterance("agent", "Is it a cat?"), Utterance("oracle", "Yes.")]
    (row,) = role_rows([Episode("e", "twenty_questions", said, {"agent": reward})])
    assert (row["win_rate"], row["tokens"]) == (solved, 0)


def course(variant, wins):
    """An iteration for each of `wins`, of four games of each role, won alike."""
    return pd.DataFrame(
        [
            {
                "iteration": i, "games": 8 * i, "log": log, "role": role, "episodes": 4,
                "win_rate": wins[i] / 4, "mean_reward": wins[i] / 4, "refused_rate": 0.0,
                "variant": variant,
            }
            for i in range(len(wins))
            for log in ("bargaining", "negotiation")
            for role in ("alice", "bob")
        ]
    )  # fmt: skip


def test_metrics_hold_the_first_and_the_last():
    found = compact(course("aria", (0, 3, 2)))
    assert found["negotiation"]["bob"] == {
        "win_rate": [0.0, 0.5], "mean_reward": [0.0, 0.5], "refused_rate": [0.0, 0.0],
    }  # fmt: skip


@pytest.mark.parametrize("online", [["aria"], []])
def test_the_report_writes_a_line_a_role_and_variant(tmp_path, monkeypatch, online):
    monkeypatch.chdir(tmp_path)
    params = load_params(Path(__file__).parent.parent / "params.yaml")
    params = params.model_copy(
        update={"online": params.online.model_copy(update={"variants": online})}
    )
    for name in online:  # the single-agent category played nothing
        rows = course(name, (0, 1, 4)).drop(columns="variant")
        rows = rows.assign(tokens=5, credit="games", loss=[None] * 4 + [0.5] * 8)
        write_csv(paths.online(name, "adversarial") / "online.csv", rows)
    drawn = figures.Pictures(tmp_path / "plots" / "pictures", tmp_path / "svg", 0, "a1b2c3d4")
    report._learning_curve(report.Run(params), tmp_path / "plots", drawn)
    written = pd.read_csv(tmp_path / "plots" / "learning_curve.csv")
    assert written.columns.tolist() == report.CURVE
    assert set(written["line"]) == {
        f"{game}, {role}: {name}"
        for name in online
        for game in ("bargaining", "negotiation")
        for role in ("alice", "bob")
    }
    picture = tmp_path / "plots" / "pictures" / "learning_curve.png"
    assert picture.exists() == bool(online)


def test_one_iteration_is_no_curve(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    params = load_params(Path(__file__).parent.parent / "params.yaml")
    rows = course("aria", (1,)).drop(columns="variant")
    rows = rows.assign(tokens=5, credit="games", loss=[None] * (len(rows) - 1) + [0.5])
    write_csv(paths.online("aria", "adversarial") / "online.csv", rows)
    drawn = figures.Pictures(tmp_path / "plots" / "pictures", tmp_path / "svg", 0, "a1b2c3d4")
    report._learning_curve(report.Run(params), tmp_path / "plots", drawn)
    assert len(pd.read_csv(tmp_path / "plots" / "learning_curve.csv")) == len(rows)
    assert not (tmp_path / "plots" / "pictures" / "learning_curve.png").exists()


def test_curves_pool_the_roles_and_are_drawn_a_panel_a_game():
    rows = pd.concat([course("aria", (0, 1, 4)), course("discounted", (1, 2, 3))])
    curve = pooled_curve(rows)
    assert len(curve) == 12
    last = curve[(curve["variant"] == "discounted") & (curve["games"] == 16)].iloc[0]
    expected = mean_rate([rate(np.arange(4) < 3)] * 2)
    assert last[["win_rate", "low", "high"]].tolist() == [
        expected[name] for name in ("rate", "low", "high")
    ]
    grouped = pooled_curve(rows.assign(groups="2/2 1/2"))
    last = grouped[(grouped["variant"] == "discounted") & (grouped["games"] == 16)].iloc[0]
    of_role = rate(np.array([1, 1, 1, 0], bool), np.repeat(np.arange(2), 2))
    expected = mean_rate([of_role] * 2)
    assert last[["low", "high"]].tolist() == [expected["low"], expected["high"]]
    figure = figures.learning_curve(curve)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["bargaining", "negotiation"]
    for axis in figure.axes:
        drawn = {line.get_label(): line.get_ydata().tolist() for line in axis.lines}
        assert drawn == {"aria": [0, 0.25, 1], "discounted": [0.25, 0.5, 0.75]}
