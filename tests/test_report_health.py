"""Findings in words: every check fires where it should, and only there; the last lines of a run."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from aria_dvc.params import load_params
from aria_dvc.report.closing import CAVEAT, closing_lines
from aria_dvc.report.health import BY_VALUES, Finding, LogFacts, health

ROOT = Path(__file__).parent.parent

GAIN: dict[str, Any] = {
    "pairs": 128,
    "mean": 0.3,
    "low": 0.2,
    "high": 0.4,
    "p": 0.001,
    "p_holm": 0.001,
    "comparisons": 1,
    "undecided": False,
    "games_needed": None,
    "utility": {"mean": 0.1, "low": 0.05, "high": 0.15},
}
FAILED: dict[str, dict[str, int]] = {"failures": {}, "broken_off": {}}
RATE = {"rate": 0.5, "low": 0.4, "high": 0.6, "episodes": 128, **FAILED}
PAIRINGS: dict[str, Any] = {
    f"{role} against {opponent}": {"aria": {**GAIN, "pairs": 32}}
    for role in ("alice", "bob")
    for opponent in ("scripted:fair", "scripted:conceding")
}
SOUND: dict[str, Any] = {
    "credit": {
        "log": {
            "selection": {
                "selected_k": 12,
                "distinct_utterances": 300,
                "overridden": False,
                "per_role": {},
                "runners_up": {"split_score": 9, "cross_validated": None},
            },
            "credit_quality": {"method": "aria", "r2": {"method": 0.1}},
            "singleton_share": 0.3,
        }
    },
    "facts": {"log": LogFacts((2, 100), 40, {}, (0.0, 1.0))},
    "learning": {
        "pair": {
            "reward_model": {"r2": 0.4, "r2_low": 0.2},
            "progress": {"logs": {"log": {"sum_r2": 0.2}}},
            "policy": {
                "vanilla": {},
                "aria": {
                    "steps": 4,
                    "zero_advantages": 0.1,
                    "gradient_variance": 1.0,
                    "gradient_variance_discounted": 2.0,
                    "gradient_variance_ratio": 0.5,
                },
            },
            "online": {"aria": {"updates": 7, "games": 90}},
        }
    },
    "evaluation": {
        "game": {
            "all": {"vanilla": RATE, "aria": RATE},
            "minus_vanilla": {"aria": GAIN},
            "differences": {"vanilla": {"by_pairing": PAIRINGS}},
        }
    },
}


def changed(change: Callable[[dict[str, Any]], Any]) -> list[Finding]:
    run = copy.deepcopy(SOUND)
    change(run)
    return health(**run)


def selection(run):
    return run["credit"]["log"]["selection"]


def facts(**values):
    known = {"k_range": (2, 100), "episodes": 40, "failed": {}, "rewards": (0.0, 1.0)} | values
    return lambda run: run["facts"].update(log=LogFacts(**known))


def aria(run):
    return run["learning"]["pair"]["policy"]["aria"]


def gain(**values):
    return lambda run: run["evaluation"]["game"]["minus_vanilla"]["aria"].update(values)


def pairing(name, **values):
    def change(run):
        of = run["evaluation"]["game"]["differences"]["vanilla"]["by_pairing"]
        of[name]["aria"].update(values)

    return change


def only(family, name, **values):
    """Like `pairing`, where there is one role or one opponent alone."""

    def change(run):
        of = run["evaluation"]["game"]["differences"]["vanilla"]
        for other in {"by_pairing", "by_role", "by_opponent"} - {family}:
            of[other] = {}
        of[family] = {part: {"aria": dict(GAIN)} for part in (name, "another")}
        of[family][name]["aria"].update(values)

    return change


def model(**values):
    return lambda run: run["learning"]["pair"]["reward_model"].update(values)


COSTLY = {"utility": {"mean": -0.3, "low": -0.4, "high": -0.2}}

# name: (what is wrong, the only check that finds it, what it says)
WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str, str]] = {
    "singletons": (
        lambda run: run["credit"]["log"].update(singleton_share=0.97),
        "aggregation_idle",
        "97 % of the turns are alone",
    ),
    "smallest k": (
        lambda run: selection(run).update(selected_k=2),
        "k_at_edge",
        "k = 2 is the smal",
    ),
    "largest k": (
        lambda run: selection(run).update(selected_k=100),
        "k_at_edge",
        "k = 100 is the largest",
    ),
    "k of all": (
        lambda run: selection(run).update(distinct_utterances=12),
        "k_at_edge",
        "k = 12 merges nothing",
    ),
    "never won": (facts(rewards=(0.0, 0.0)), "no_success", "no success in 40 games"),
    "costs alone": (
        facts(rewards=(-1.0, -0.25)),
        "no_success",
        "no success in 40 games: no reward is above -0.25",  # a credit with a baseline may be
    ),
    "always won": (facts(rewards=(1.0, 1.0)), "equal_outcomes", "all 40 games have the reward 1"),
    "broken off": (
        facts(failed={"bob: no_offer": 4, "alice: empty": 16}),
        "refused_moves",
        "50 % of 40 games ended by refused moves (bob: no_offer 4, alice: empty 16)",
    ),
    "no replies": (
        facts(failed={"bob: no_offer": 4, "alice: context_full": 16}),
        "refused_moves",
        "50 % of 40 games ended since a player could not go on (bob: no_offer 4, alice: context",
    ),
    "useless credit": (
        lambda run: run["credit"]["log"]["credit_quality"].update(r2={"method": -0.32}),
        "credit_no_better_than_mean",
        "(R2 -0.32)",
    ),
    "no R2": (
        lambda run: run["credit"]["log"]["credit_quality"].update(r2={"method": None}),
        "r2_undefined",
        "has no R2",
    ),
    "constant model": (model(r2=0.1, r2_low=-0.1), "reward_model_constant", "R2 0.10, from -0.10"),
    "constant sums": (
        lambda run: run["learning"]["pair"]["progress"]["logs"]["log"].update(sum_r2=-0.1),
        "progress_constant",
        "no better than 0 does (R2 -0.10)",
    ),
    "equal credits": (model(r2=None, r2_low=None), "reward_model_undefined", "all equal"),
    "no step": (
        lambda run: (aria(run).update(steps=0), run["learning"]["pair"].pop("online")),
        "no_step",
        "it is the base model",
    ),
    "no credit": (
        lambda run: aria(run).update(zero_advantages=0.95),
        "zero_advantages",
        "95 % of its offline advantages are 0",
    ),
    "no credit online": (
        lambda run: run["learning"]["pair"]["online"]["aria"].update(zero_advantages=0.95),
        "zero_advantages",
        "95 % of its last online advantages are 0",
    ),
    "no variance": (
        lambda run: aria(run).update(gradient_variance=0.0),
        "ratio_undefined",
        "have no ratio",
    ),
    "not trained": (
        lambda run: aria(run).update(not_trained="no games"),
        "not_trained",
        "was not trained: no games",
    ),
    "no win": (
        lambda run: run["evaluation"]["game"]["all"]["aria"].update(rate=0.0, high=0.14),
        "no_success",
        "no success in 128 games (the true rate may be up to 14 %)",
    ),
    "refused": (
        lambda run: run["evaluation"]["game"]["all"]["aria"].update(failures={"alice: empty": 64}),
        "refused_moves",
        "50 % of 128 games",
    ),
    "refused by the oracle": (
        lambda run: run["evaluation"]["game"]["all"]["aria"].update(
            broken_off={"oracle: no_answer": 64}
        ),
        "refused_moves",
        "33 % of 192 games ended since a player could not go on (oracle: no_answer 64)",
    ),
    "worse": (
        gain(mean=-0.3, low=-0.4, high=-0.2),
        "worse",
        "does worse than vanilla (-0.30)",
    ),
    "a win that costs": (
        gain(utility={"mean": -0.1, "low": -0.14, "high": -0.06}),
        "utility_falls",
        "its own utility falls by 0.10",
    ),
    "a loss against one": (
        pairing("bob against scripted:fair", **COSTLY, mean=-0.2),
        "worse_somewhere",
        "its own utility falls by 0.30, and it wins less often (-0.20)",
    ),
    "wins that cost against one": (
        pairing("alice against scripted:fair", **COSTLY),
        "worse_somewhere",
        "as alice against scripted:fair its own utility falls by 0.30",
    ),
    "a loss as one role": (
        only("by_role", "bob", **COSTLY),
        "worse_somewhere",
        "as bob its own utility falls by 0.30",
    ),
    "a loss against one opponent": (
        only("by_opponent", "scripted:fair", **COSTLY),
        "worse_somewhere",
        "against scripted:fair its own utility falls by 0.30",
    ),
    "deals at a loss": (
        lambda run: run["evaluation"]["game"]["all"]["aria"].update(losing_deals=6),
        "losing_deals",
        "6 of 128 games end in deals that are worth less to it than none",
    ),
    "one trained offline alone": (
        lambda run: run["learning"]["pair"]["policy"].update(other=dict(aria(run))),
        "unequal_training",
        "other did not train online as aria did",
    ),
    "few games": (
        gain(undecided=True, pairs=24, games_needed=186),
        "undecided",
        "undecided after 24 pairs of games; 186 would decide",
    ),
    "one of six": (
        gain(p=0.02, p_holm=0.12, comparisons=6),
        "not_after_correction",
        "p = 0.020 alone, but 0.12 as one of 6 differences",
    ),
    "several": (
        lambda run: run["evaluation"].update(other=copy.deepcopy(run["evaluation"]["game"])),
        "several_differences",
        "2 differences are shown together",
    ),
}


def test_a_sound_run_has_no_findings():
    assert health(**SOUND) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_and_nothing_else(name):
    change, check, words = WRONG[name]
    found = changed(change)
    checks = {one.check for one in found}
    assert checks == {check} or (checks == {check, "ratio_undefined"} and name == "no step")
    first = next(one for one in found if one.check == check)
    assert words in first.words
    assert first.line.startswith(f"{first.about}: ")
    assert set(first.record()) == {"level", "about", "check", "words", "try"}
    assert first.level == "note" or first.remedy


def test_the_worst_pairing_is_named_once_and_what_vanilla_loses_is_not():
    def both(run):
        pairing("bob against scripted:fair", **COSTLY)(run)
        worse = {"utility": {"mean": -0.5, "low": -0.6, "high": -0.4}}
        pairing("alice against scripted:fair", **worse)(run)
        run["evaluation"]["game"]["all"]["vanilla"] = {**RATE, "losing_deals": 9}

    (one,) = changed(both)
    assert one.words.startswith("as alice against scripted:fair its own utility falls by 0.50")


def test_the_credit_that_remedies_name_runs_with_the_shipped_params(tmp_path):
    """A variant beside the shipped one, as the remedy says it."""
    known = yaml.safe_load((ROOT / "params.yaml").read_text("utf-8"))
    named = re.fullmatch(r"a variant with (.*) \((aggregate\.further): (.*)\)", BY_VALUES)
    known["variants"]["more"] = yaml.safe_load(f"{{{named[1]}}}")
    known["aggregate"]["further"] = yaml.safe_load(named[3])
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(known, sort_keys=False), "utf-8")
    params = load_params(tmp_path / "params.yaml")
    assert params.variant("more").credit == "gae"


def test_the_reward_that_a_remedy_names_is_known(tmp_path):
    (one,) = changed(gain(utility={"mean": -0.1, "low": -0.14, "high": -0.06}))
    (rule,) = re.fullmatch(r"rewards\.game: (\w+)", one.remedy).groups()
    known = (ROOT / "params.yaml").read_text("utf-8")
    text = re.sub(r"(\nrewards:.*\n(?:.*\n)*?  bargaining:) \w+", rf"\1 {rule}", known)
    assert f"bargaining: {rule}" in text
    (tmp_path / "params.yaml").write_text(text, "utf-8")
    load_params(tmp_path / "params.yaml")


def test_worse_is_said_where_the_table_of_the_report_says_it():
    """By its interval alone it would be; one of six differences it is not."""
    found = changed(gain(mean=-0.3, low=-0.4, high=-0.2, p=0.02, p_holm=0.12, comparisons=6))
    assert [one.check for one in found] == ["not_after_correction"]


FALLS = {"utility": {"mean": -0.1, "low": -0.14, "high": -0.06}, "low": None, "high": None}


def test_wins_that_are_no_more_hide_no_loss_of_utility():
    (same,) = changed(gain(mean=0.0, **FALLS))
    assert same.words == "its own utility falls by 0.10, which its win rate does not show"
    assert changed(gain(mean=-1.0, **FALLS)) == []  # it loses wherever vanilla wins
    (more,) = changed(gain(mean=0.5, **FALLS))
    assert more.words.endswith("which winning more often hides")


def test_singletons_matter_to_cell_means_alone():
    def kernel(run):
        run["credit"]["log"].update(singleton_share=0.97)
        run["credit"]["log"]["credit_quality"].update(method="regression")

    assert changed(kernel) == []


@pytest.mark.parametrize("distinct", [300, 100])
def test_a_method_that_takes_the_same_k_is_no_remedy(distinct):
    def at_edge(run, **runners_up):
        wanted = {"selected_k": 100, "distinct_utterances": distinct, "runners_up": runners_up}
        selection(run).update(wanted)

    (one,) = changed(lambda run: at_edge(run, silhouette=100, split_score=9))
    assert one.remedy.startswith("another select_k.method (split_score: 9)")
    (none,) = changed(lambda run: at_edge(run, silhouette=100))
    assert none.remedy == "more games"


def test_a_k_that_was_given_is_not_judged():
    assert changed(lambda run: selection(run).update(selected_k=2, overridden=True)) == []


def test_warnings_come_before_notes():
    def both(run):
        gain(undecided=True, pairs=24, games_needed=None)(run)
        facts(rewards=(0.0, 0.0))(run)

    assert [one.level for one in changed(both)] == ["warning", "note"]


def test_the_last_lines_say_what_was_trained_what_it_brought_and_what_to_doubt():
    found = changed(WRONG["never won"][0])
    lines = closing_lines(SOUND["learning"], SOUND["evaluation"], found, 7)
    assert lines[0] == (
        "trained (seed 7): aria on pair (4 offline steps, 7 online updates over 90 games)"
    )
    assert lines[1] == (
        "game: aria 0.50 (0.40 to 0.60), +0.30 (+0.20 to +0.40) to vanilla, p = 0.001"
    )
    assert lines[2].startswith("warning: log: no success in 40 games")
    assert lines[-2].startswith("try next: easier games")
    assert lines[-1] == CAVEAT


def test_the_last_lines_stay_few_and_one_check_hides_no_other():
    run = copy.deepcopy(SOUND)
    run["evaluation"] = {f"game{n}": copy.deepcopy(run["evaluation"]["game"]) for n in range(9)}
    found = [Finding(f"log{n}", "one", "w", "r") for n in range(9)] + [
        Finding("x", "two", "v", "s")
    ]
    lines = closing_lines(run["learning"], run["evaluation"], found, 0)
    assert len(lines) == 10
    assert [line for line in lines if line.startswith("warning")] == [
        "warning: log0: w",
        "warning: x: v",
    ]
    assert "metrics/details/health.json (8 more warnings)" in lines[-3]
    assert "6 more differences: metrics/details/leaderboard.csv" in lines


def test_rates_stand_alone_where_nothing_is_compared():
    alone = {"game": {"all": {"vanilla": RATE}, "minus_vanilla": {}}}
    lines = closing_lines({}, alone, [], 0)
    assert lines[:3] == [
        "trained (seed 0): nothing",
        "game: vanilla 0.50 (0.40 to 0.60)",
        "no warnings",
    ]
    unknown = {"rate": None, "low": None, "high": None, "episodes": 0, **FAILED}
    nothing = {"game": {"all": {"vanilla": unknown}, "minus_vanilla": {}}}
    assert "game: vanilla played no game" in closing_lines({}, nothing, [], 0)
    empty = GAIN | {"mean": None, "low": None, "high": None, "p": None, "p_holm": None}
    run = {"game": {"all": {"aria": RATE}, "minus_vanilla": {"aria": empty}}}
    assert "no games in common" in closing_lines({}, run, [], 0)[1]
