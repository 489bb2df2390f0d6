"""The study: its files change what is shipped, and its comparisons are paired and over seeds."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dag import ROOT, Workspace
from dvc.exceptions import PathMissingError
from scripts import study as script
from scripts.study import results, run

from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.params import Params, check_params
from aria_dvc.report import intervals
from aria_dvc.report.intervals import holm
from aria_dvc.report.study import at_equal_tokens, compared, learning, minutes, table, within
from aria_dvc.report.study_file import Study, load_study


@pytest.mark.parametrize("name", ["credit", "default", "paper", "ablation"])
def test_the_settings_are_what_dvc_takes_and_params_allow(name):
    study = load_study(Path(f"configs/study/{name}.yaml"))
    last = list(study.experiments().values())[-max(1, len(study.arms)) :]
    assert all(f"seed={study.seeds[-1]}" in settings for settings in last)
    for settings in last:
        params = params_under(settings)
        assert set(study.variants) <= set(params.variants)
        assert study.reference in (study.arms or study.variants)
        assert params.categories == study.categories
        assert set(params.logs) <= {"bargaining", "negotiation"}
        for game in params.logs:
            assert params.evaluate.games[game].episodes % 24 == 0
            assert params.evaluate.games[game].facing("bob") == [
                "scripted:fair",
                "scripted:conceding",
            ]


def params_under(settings: list[str]) -> Params:
    """What is shipped with an experiment's settings."""
    return check_params(script.params_under(settings, Path("params.yaml").read_text("utf-8")))


def params_of(name: str, size: str = "") -> Params:
    """What a study's first experiment runs with."""
    study = load_study(Path(f"configs/study/{name}.yaml"))
    (first, *_) = (study.sized(size) if size else study).experiments().values()
    params = params_under(first)
    assert set(params.variants) == set(study.variants)
    assert params.categories == study.categories
    return params


# Who learns, as in its paper, from games of the untrained model alone, beside arms that play on.
OFFLINE = {"behaviour_cloning", "spag", "trajectory_dpo", "step_dpo"}
METHODS = ("methods", "methods_household")
OFFLINE_OF = {**dict.fromkeys(METHODS, OFFLINE), "arms": {"behaviour_cloning"}}


@pytest.mark.parametrize("name", sorted(path.stem for path in Path("configs/study").iterdir()))
def test_what_a_study_compares_plays_on_alike(name):
    """The stage evaluate judges what online training left of a variant, or else the offline one."""
    study = load_study(Path(f"configs/study/{name}.yaml"))
    for sized in (study, *map(study.sized, study.sizes)):
        for settings in sized.experiments().values():
            online = set(params_under(settings).online.variants)
            offline = OFFLINE_OF.get(name, set())
            assert not online or online | offline == set(study.variants) - {"vanilla"}


def test_the_study_of_the_guessing_games_trains_on_what_answers_tell():
    params = params_of("guessing")
    assert set(params.logs) == set(params.base_model.games) == {"twenty_questions", "guess_my_city"}
    assert not set(params.online.variants) - set(params.variants)
    credits = {params.variant(name).credit for name in params.online.variants}
    assert credits == {"discounted", *params.aggregate.further}
    assert params.variant("igpo").method == "igpo"
    assert params.online.course_of("single_agent").repeats == 4


def test_the_study_of_the_household_plays_trains_and_judges_it():
    params = params_of("household")
    assert list(params.logs) == params.base_model.games == params.categories == ["household"]
    log, evaluation = params.logs["household"], params.evaluate.games["household"]
    game = get_game("household")
    played, judged = (game.grid(grid) for grid in (log.grid, evaluation.grid))
    assert not [config for config in judged if config in played]
    assert evaluation.episodes == len(judged)
    assert params.base_model.warm_start_settings.lessons("household")[1] == log.grid
    course = params.online.course_of("household")
    assert (course.iterations, course.updates) == (4, 5)


def test_the_study_of_spa_explores_in_groups_and_trains_on_contributions():
    params = params_of("spa")
    assert list(params.logs) == params.base_model.games == params.categories == ["household"]
    log, spa = params.logs["household"], params.variant("spa")
    assert (log.repeats, log.episodes % 10) == (10, 0)
    assert (spa.method, spa.credit, spa.ppo.grounding) == ("ppo", "estimator", 0.5)
    assert params.variant("ppo").ppo.grounding == 0.0
    played = get_game("household").grid(log.grid)
    judged = get_game("household").grid(params.evaluate.games["household"].grid)
    assert not [config for config in judged if config in played]


def test_an_arm_is_an_experiment_and_the_name_of_what_it_trains(tmp_path):
    config = tmp_path / "small.yaml"
    config.write_text(
        "{seeds: [0, 1], reference: full, categories: [adversarial], settings: [a=1],"
        " variants: [vanilla, discounted], arms: {full: [], placebo: [b=2]}}"
    )
    study = load_study(config)
    assert study.experiments() == {
        "small-full-seed-0": ["seed=0", "a=1"],
        "small-placebo-seed-0": ["seed=0", "a=1", "b=2"],
        "small-full-seed-1": ["seed=1", "a=1"],
        "small-placebo-seed-1": ["seed=1", "a=1", "b=2"],
    }
    labels = [(place.experiment, place.label) for place in study.places() if place.seed == 0]
    assert labels == [
        ("small-full-seed-0", "vanilla"),
        ("small-full-seed-0", "full"),
        ("small-placebo-seed-0", "placebo"),
    ]


def test_a_missing_key_is_named(tmp_path):
    config = tmp_path / "study.yaml"
    config.write_text("seeds: [0]\n")
    with pytest.raises(
        AriaError, match=r"reference: field required.*see configs/study/credit\.yaml"
    ):
        load_study(config)


SOUND = "{seeds: [0], reference: aria, categories: [a], variants: [vanilla, aria], settings: []}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SOUND[:-1], "study.yaml is not valid YAML"),
        ("[0]", r"must be a mapping.*see configs/study/credit\.yaml"),
        (SOUND.replace("reference: aria", "reference: a"), "reference: a is none of vanilla, aria"),
        (SOUND[:-1] + ", arms: {full: [], less: []}}", "reference: aria is none of full, less"),
        (SOUND.replace("vanilla, ", ""), "variants: no vanilla"),
        (SOUND.replace("[0]", "3"), "seeds: input should be a valid list"),
        (SOUND.replace("[0]", "[zero]"), r"seeds.0: input should be a valid integer.*'zero'"),
        (SOUND.replace("[0]", "[]"), "seeds: list should have at least 1 item"),
        (SOUND.replace("[0]", "[0, 1, 0]"), "seeds: 0 is there 2 times"),
        (SOUND.replace("[0]", "[true]"), "seeds.0: input should be a number"),
        (SOUND.replace("[0]", "[-1]"), "seeds.0: input should be greater"),
        (SOUND.replace("settings: []", "settings: null"), "settings: is empty"),
        (SOUND.replace("settings: []", "settings: x=1"), "settings: input should be a valid list"),
        (
            SOUND.replace("settings: []", "settings: [x: 1]"),
            "settings.0: input should be a valid str",
        ),
        (SOUND.replace("[a]", "adversarial"), "categories: input should be a valid list"),
        (SOUND[:-1] + ", arm: {}}", "arm: unknown key .did you mean arms"),
        (SOUND[:-1] + ", name: mine}", "name: unknown key"),
        (SOUND[:-1] + ", arms: [full, o]}", "arms: input should be a valid dictionary"),
        (SOUND[:-1] + ", arms: {aria: null}}", "arms.aria: is empty"),
        (
            SOUND[:-1] + ", arms: {aria: [], vanilla: []}}",
            "arms: vanilla is the policy that no arm",
        ),
        (
            SOUND.replace("vanilla, aria", "vanilla, b, c")[:-1] + ", arms: {aria: []}}",
            "arms: each trains one variant beside vanilla, variants has b, c",
        ),
    ],
)
def test_a_study_that_cannot_be_compared_is_one_line(tmp_path, text, said):
    config = tmp_path / "study.yaml"
    config.write_text(text)
    with pytest.raises(AriaError, match=said) as raised:
        load_study(config)
    assert str(raised.value).startswith(str(config))


def outcomes(variant, seed, won):
    return pd.DataFrame(
        {
            "seed": seed, "game": "bargaining", "role": "alice", "opponent": "scripted:fair",
            "episode": [f"e{i}" for i in range(len(won))], "variant": variant, "won": won,
            "no_deal": False, "failure_kind": "", "winnable": True,
        }
    )  # fmt: skip


def test_variants_are_compared_game_by_game_with_intervals_over_seeds():
    won = {
        "vanilla": ([0, 0, 1, 1], [0, 0, 1, 1]),
        "discounted": ([0, 1, 0, 1], [0, 1, 0, 1]),
        "aria": ([0, 1, 1, 1], [1, 1, 1, 1]),
    }
    tables = [
        outcomes(variant, seed, list(map(bool, games)))
        for variant, seeds in won.items()
        for seed, games in enumerate(seeds)
    ]
    found = compared(pd.concat(tables).sample(frac=1, random_state=0), "discounted")
    assert found["seeds"] == [0, 1]
    numbers = found["games"]["bargaining"]["alice"]
    assert numbers["win_rate"]["aria"]["rate"] == 0.875
    assert numbers["win_rate"]["aria"]["episodes"] == 8
    won = np.array([0, 1, 1, 1, 1, 1, 1, 1], bool)
    assert numbers["win_rate"]["aria"] == intervals.rate(won, np.repeat([0, 1], 4))
    assert numbers["by_seed"]["1"]["aria"] == 1.0
    gain = numbers["aria_minus_discounted"]
    assert gain["mean"] == 0.375
    assert gain["count"] == 2
    half = 12.706204736432095 * 0.125  # t with one degree of freedom times the standard error
    assert (gain["low"], gain["high"]) == pytest.approx((0.375 - half, 0.375 + half))
    assert set(numbers) >= {"aria_minus_vanilla", "discounted_minus_vanilla"}
    assert gain["few_seeds"] is True
    assert numbers["cost"] == {}


def test_five_seeds_are_not_few_and_a_game_that_one_lacks_makes_no_pair():
    tables = [
        outcomes(variant, seed, [variant == "aria", seed % 2 == 0])
        for variant in ("vanilla", "aria")
        for seed in range(5)
    ]
    games = pd.concat(tables).assign(completion_tokens=7)
    numbers = compared(games, "vanilla")["all"]
    assert numbers["aria_minus_vanilla"]["few_seeds"] is False
    assert numbers["aria_minus_vanilla"]["mean"] == 0.5
    assert numbers["cost"] == {"completion_tokens": {"vanilla": 70, "aria": 70}}
    fewer = games[~((games["variant"] == "vanilla") & (games["seed"] == 4))]
    numbers = compared(fewer, "vanilla")["all"]
    assert numbers["aria_minus_vanilla"]["few_seeds"] is True
    assert numbers["aria_minus_vanilla"]["count"] == 4
    assert numbers["win_rate"]["vanilla"]["episodes"] == 8
    assert numbers["win_rate"]["vanilla"]["rate"] == 0.25


def test_games_that_somebody_else_broke_off_are_no_losses():
    tables = [
        outcomes(name, seed, [name == "aria", True, False])
        for name in ("vanilla", "aria")
        for seed in (0, 1)
    ]
    games = pd.concat(tables, ignore_index=True)
    games["broken_off"] = (games["episode"] == "e2") & (games["variant"] == "aria")
    found = compared(games, "vanilla")
    assert found["broken_off"] == {"aria": 2}
    assert found["all"]["win_rate"]["aria"]["rate"] == 1.0
    assert found["all"]["win_rate"]["vanilla"]["episodes"] == 6
    assert found["all"]["aria_minus_vanilla"]["mean"] == 0.5


def test_a_reference_whose_games_of_a_role_were_all_broken_off_is_compared_in_the_others():
    games = pd.concat(
        outcomes(name, seed, [True, False]).assign(role=role)
        for name in ("vanilla", "aria", "discounted")
        for seed in (0, 1)
        for role in ("alice", "bob")
    )
    games["broken_off"] = (games["variant"] == "discounted") & (games["role"] == "bob")
    found = compared(games, "discounted")
    (game,) = found["games"].values()
    assert "aria_minus_discounted" in game["alice"]
    assert "aria_minus_discounted" not in game["bob"]
    assert "| aria |" in table(found, "discounted")


def test_a_single_seed_has_a_rate_and_no_interval():
    tables = [outcomes(name, 0, [True, False, True]) for name in ("vanilla", "aria")]
    found = compared(pd.concat(tables), "vanilla")
    rate = found["all"]["win_rate"]["aria"]
    assert (rate["rate"], rate["low"], rate["high"]) == (pytest.approx(2 / 3), None, None)
    assert "| all | aria | 0.67 |" in table(found, "vanilla")


def test_the_table_says_what_its_intervals_and_areas_are():
    """Games with itself are in no curve (see `role_rows`); a rate's interval is not that of t."""
    tables = [outcomes(name, seed, [True]) for name in ("vanilla", "aria") for seed in (0, 1)]
    shown = table(compared(pd.concat(tables), "vanilla"), "vanilla")
    assert "area: the mean win rate of all training games against others;" in shown
    assert "Intervals of `won`: Wilson's, a seed's games as one cluster; else t over" in shown
    assert "; with fewer than 5 seeds intervals hang on hardly any evidence." in shown


def test_within_a_training_intervals_are_clustered_by_configuration():
    """Each role has an order of its own: one number is not one configuration."""
    won = {
        "vanilla": {"alice": [0, 0, 0, 0], "bob": [0, 0, 1, 0]},
        "aria": {"alice": [1, 1, 0, 0], "bob": [1, 0, 1, 1]},
    }
    configs = {"alice": ["a", "b", "c", "d"], "bob": ["b", "d", "c", "a"]}
    tables = [
        outcomes(name, 3, list(map(bool, games))).assign(role=role, config=configs[role])
        for name, roles in won.items()
        for role, games in roles.items()
    ]
    games = pd.concat(tables, ignore_index=True)
    games["winnable"] = games["config"] != "d"
    found = within(games.sample(frac=1, random_state=0), "vanilla")
    gained, of = np.array([1, 1, 0, 0, 1, 0, 0, 1.0]), [*configs["alice"], *configs["bob"]]
    gain = found["3"]["all"]["aria_minus_vanilla"]
    assert gain == intervals.clustered_interval(gained, np.array(of))
    assert gain["clusters"] == 4
    by_number = intervals.clustered_interval(gained, np.tile(np.arange(4), 2))
    assert gain["high"] - gain["low"] > 1.2 * (by_number["high"] - by_number["low"])
    assert found["3"]["bargaining"]["aria_minus_vanilla"]["count"] == 6
    shown = table({**compared(games, "vanilla"), "within": found}, "vanilla")
    assert f"| all | aria | 0.62 | +0.50 ({gain['low']:+.2f} to {gain['high']:+.2f}) |" in shown
    assert "of this one training's games, clustered by configuration" in shown
    unknown = within(games.assign(config=""), "vanilla")
    assert unknown == {}
    shown = table({**compared(games, "vanilla"), "within": unknown}, "vanilla")
    assert "| all | aria | 0.62 | +0.50 |" in shown
    assert "the configurations are not known" in shown


def test_p_values_are_adjusted_for_all_comparisons_of_a_table():
    rng = np.random.default_rng(0)
    tables = [
        outcomes(variant, seed, (rng.random(20) < chance).tolist()).assign(role=role)
        for role in ("alice", "bob")
        for variant, chance in (("vanilla", 0.2), ("discounted", 0.4), ("aria", 0.7))
        for seed in range(6)
    ]
    found = compared(pd.concat(tables), "discounted")
    by_role = found["games"]["bargaining"]
    names = ("aria_minus_vanilla", "discounted_minus_vanilla", "aria_minus_discounted")
    rows = [by_role[role][name] for role in ("alice", "bob") for name in names]
    assert [row["p_holm"] for row in rows] == holm([row["p"] for row in rows])
    assert min(row["p_holm"] for row in rows) == 6 * min(row["p"] for row in rows)
    overall = [found["all"][name] for name in names]
    assert [row["p_holm"] for row in overall] == holm([row["p"] for row in overall])


def test_the_table_counts_what_holm_leaves():
    variants = (("vanilla", 0.2), ("aria", 0.7), ("other", 0.2))
    tables = [
        outcomes(variant, seed, [i < 20 * chance + seed * len(variant) % 4 for i in range(20)])
        for variant, chance in variants
        for seed in range(6)
    ]
    found = compared(pd.concat(tables), "vanilla")
    counted = (
        "Of {} differences of win rates {} have an interval off 0, and {} p below 0.05 by Holm"
    )
    assert counted.format(2, 1, 1) in table(found, "vanilla")  # one game is all of them
    both = [part.assign(game=game) for part in tables for game in ("bargaining", "negotiation")]
    found = compared(pd.concat(both), "vanilla")
    assert counted.format(6, 3, 3) in table(found, "vanilla")
    found["all"]["aria_minus_vanilla"]["p_holm"] = 0.05
    assert counted.format(6, 3, 2) in table(found, "vanilla")


def test_holm_corrects_for_all_that_is_printed_as_one_table():
    rng = np.random.default_rng(0)
    games = pd.concat(
        outcomes(variant, seed, (rng.random(20) < chance).tolist()).assign(game=game)
        for game in ("bargaining", "negotiation")
        for variant, chance in (("vanilla", 0.3), ("aria", 0.6))
        for seed in range(6)
    )
    found = compared(games, "vanilla")
    parts = [found["all"], *found["winnable"].values()]
    rows = [part["aria_minus_vanilla"] for part in parts]
    assert [row["p_holm"] for row in rows] == holm([row["p"] for row in rows])
    assert min(row["p_holm"] for row in rows) == 3 * min(row["p"] for row in rows)


def test_trainings_that_differ_are_not_pooled_as_games():
    """Three seeds of 192 games whose pooled interval nearly excluded 0."""
    won = {"vanilla": (38, 41, 43), "aria": (39, 50, 43)}
    tables = [
        outcomes(variant, seed, [i < count for i in range(192)])
        for variant, counts in won.items()
        for seed, count in enumerate(counts)
    ]
    gain = compared(pd.concat(tables), "vanilla")["all"]["aria_minus_vanilla"]
    differences = np.array([1, 9, 0]) / 192
    half = 4.302652729696142 * differences.std(ddof=1) / np.sqrt(3)
    assert gain["mean"] == pytest.approx(10 / 576)
    assert (gain["low"], gain["high"]) == pytest.approx((10 / 576 - half, 10 / 576 + half))
    assert gain["low"] < 0 < gain["high"]


def test_winnable_games_are_compared_apart():
    won = {"vanilla": [False, False, True, False], "aria": [True, False, True, False]}
    tables = [outcomes(variant, seed, games) for variant, games in won.items() for seed in (0, 1)]
    games = pd.concat(tables)
    games["winnable"] = games["episode"].isin(["e0", "e2"])
    found = compared(games, "vanilla")["winnable"]["bargaining"]
    assert found["win_rate"]["aria"]["rate"] == 1.0
    assert found["aria_minus_vanilla"]["mean"] == 0.5


def test_the_area_under_a_learning_curve_is_the_win_rate_of_all_training_games():
    def curve(variant, seed, rates):
        return pd.DataFrame(
            {
                "variant": variant, "seed": seed, "log": "bargaining", "role": ["alice", "bob"] * 2,
                "iteration": [0, 0, 1, 1], "episodes": [10, 30, 20, 20], "win_rate": rates,
            }
        )  # fmt: skip

    plain = [curve("discounted", seed, [0.1, 0.1, 0.1, 0.1]) for seed in range(5)]
    better = [curve("aria", seed, [0.1, 0.5, 0.1, 0.1 + seed / 10]) for seed in range(5)]
    found = learning(pd.concat([*plain, *better]), "discounted")
    areas = [(1 + 15 + 2 + 2 + 2 * seed) / 80 for seed in range(5)]
    assert found["all"] == found["bargaining"]
    assert found["all"]["area"] == pytest.approx({"discounted": 0.1, "aria": np.mean(areas)})
    gain = found["all"]["aria_minus_discounted"]
    assert gain["mean"] == pytest.approx(np.mean(areas) - 0.1)
    assert 0 < gain["low"] < gain["mean"] < gain["high"]
    assert gain["p_holm"] == gain["p"]


def test_at_equal_tokens_only_what_the_thriftiest_said_counts():
    def curve(variant, tokens, rates):
        rounds = {"iteration": [0, 1], "episodes": 10, "win_rate": rates, "tokens": tokens}
        return pd.DataFrame(rounds).assign(variant=variant, log="bargaining")

    brief, wordy = curve("discounted", [30, 70], [0.2, 0.4]), curve("aria", [80, 400], [0.3, 0.9])
    curves = pd.concat([brief.assign(seed=0), wordy.assign(seed=0)])
    found = at_equal_tokens(curves, "discounted")["all"]
    areas = {"discounted": (30 * 0.2 + 70 * 0.4) / 100, "aria": (80 * 0.3 + 20 * 0.9) / 100}
    assert found["area"] == pytest.approx(areas)
    assert found["aria_minus_discounted"]["mean"] == pytest.approx(0.08)
    thriftier = curve("aria", [10, 10], [0.3, 0.9]).assign(seed=1)
    found = at_equal_tokens(pd.concat([curves, brief.assign(seed=1), thriftier]), "discounted")
    areas = {"discounted": (0.34 + 0.2) / 2, "aria": (0.42 + 0.6) / 2}
    assert found["all"]["area"] == pytest.approx(areas)
    assert found["bargaining"] == found["all"]


def test_minutes_are_of_a_seed_and_count_an_iteration_once():
    rounds = [("bargaining", 0, 30.0), ("negotiation", 0, 30.0), ("bargaining", 1, 90.0)]
    curve = pd.DataFrame(rounds, columns=["log", "iteration", "play_seconds"])
    curve = curve.assign(train_seconds=60.0, variant="aria", category="adversarial")
    curves = pd.concat([curve.assign(seed=0), curve.assign(seed=1, train_seconds=0.0)])
    assert minutes(curves) == {"aria": 3.0}
    further = curves.assign(log="household", category="household", play_seconds=60.0)
    assert minutes(pd.concat([curves, further])) == {"aria": 6.0}


def test_a_reference_that_learned_from_no_games_is_compared_with_nothing():
    rows = [("aria", "bargaining"), ("aria", "negotiation"), ("other", "negotiation")]
    curves = pd.DataFrame(rows, columns=["variant", "log"]).assign(seed=0, episodes=4, win_rate=0.5)
    found = learning(curves, "vanilla")
    assert found["all"] == {"area": {"aria": 0.5, "other": 0.5}}
    found = learning(curves, "other")
    assert found["bargaining"] == {"area": {"aria": 0.5}}
    assert found["negotiation"]["aria_minus_other"]["mean"] == 0.0


@pytest.mark.parametrize("name", METHODS)
def test_the_methods_have_the_settings_of_their_papers_on_a_gpu(name):
    params = params_of(name, "gpu")
    assert set(params.base_model.games) == set(params.logs)
    found = {name: params.variant(name) for name in params.variants}
    assert (found["ppo"].ppo.lam, found["ppo"].clip.low, found["ppo"].kl) == (0.95, 0.2, 0.3)
    assert (found["starpo_s"].method, found["starpo_s"].grpo.keep) == ("grpo", 0.25)
    assert (found["starpo_s"].clip.high, found["grpo"].clip.high) == (0.28, 0.2)
    assert found["grpo"].grpo.keep == 1.0
    assert found["spag"].spag.model_dump() == {"decay": 0.8, "beta": 0.2, "sft": 0.5}
    for variant, rate, batch in (("trajectory_dpo", 1e-6, 32), ("step_dpo", 3e-6, 48)):
        policy = found[variant]
        assert (policy.dpo.beta, policy.learning_rate, policy.batch_size) == (0.1, rate, batch)
        assert policy.epochs == 3
    (category,) = params.categories
    assert params.online.course_of(category).repeats == 8


def test_the_methods_learn_the_whole_household_on_a_gpu():
    params = params_of("methods_household", "gpu")
    assert params.logs["household"].grid == "train"
    assert params.evaluate.games["household"].grid == "unseen"


@pytest.mark.parametrize("name", METHODS)
def test_the_methods_learn_from_as_many_games_on_two_cores(name):
    params = params_of(name)
    assert set(params.base_model.games) >= set(params.logs)
    (category,) = params.categories
    course = params.online.course_of(category)
    assert course.iterations * course.games == sum(log.episodes for log in params.logs.values())
    assert {log.repeats for log in params.logs.values()} == {course.repeats}
    offline = set(params.variants) - {"vanilla", *params.online.variants}
    assert offline == OFFLINE
    assert {params.variant(name).max_episodes for name in offline} == {None}
    spa, archer = params.variant("spa"), params.variant("archer")
    assert (spa.method, spa.credit, spa.ppo.grounding) == ("ppo", "progress", 0.5)
    assert (archer.credit, archer.advantage) == ("critic", "value")


def _any_step(variant):
    """Plain REINFORCE has an online step size of its own in the household."""
    return {key: value for key, value in variant.items() if key != "online_learning_rate"}


def test_both_studies_of_the_methods_compare_the_same():
    games, household = (params_of(name) for name in METHODS)
    assert games.variants == {name: _any_step(one) for name, one in household.variants.items()}
    assert games.online.variants == household.online.variants
    assert games.aggregate.further == household.aggregate.further


def test_a_size_names_its_experiments_and_one_that_is_not_there_is_told():
    study = load_study(Path("configs/study/methods.yaml"))
    large = study.sized("gpu")
    assert next(iter(large.experiments())) == "methods-gpu-seed-0"
    assert large.command.endswith("methods.yaml --size gpu")
    assert next(place.experiment for place in study.places()) == "methods-seed-0"
    with pytest.raises(AriaError, match="the study methods has no size tpu: it has gpu"):
        study.sized("tpu")


PLAY = """
import pandas as pd
from pathlib import Path
from ruamel.yaml import YAML
from aria_dvc.games.registry import get_game
from aria_dvc.records.schemas import EVALUATION, write_table
import orjson

seed = YAML().load(Path("params.yaml"))["seed"]
config = orjson.dumps(get_game("bargaining").grid("default")[0]).decode()
for variant, won in (("vanilla", [False, False]), ("aria", [seed > 0, True])):
    folder = Path("data/eval/adversarial")
    folder.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame({
        "game": "bargaining", "variant": variant, "role": "alice", "episode": ["e0", "e1"],
        "config": config, "seed": 0, "opponent": "scripted:fair", "won": won, "reward": 0.5,
        "utility": 0.5, "opponent_utility": 0.5, "no_deal": False, "reason": "deal",
        "failure_role": "", "failure_kind": "", "turns": 2, "executed": None, "refused": 0,
        "completion_tokens": 7,
    }).astype(EVALUATION.dtypes)
    write_table(folder / f"{variant}.parquet", rows, EVALUATION)
online = Path("data/policy/adversarial/aria/online")
online.mkdir(parents=True, exist_ok=True)
pd.DataFrame({
    "log": "bargaining", "role": "alice", "iteration": [0, 1], "episodes": 4,
    "win_rate": [0.25, 0.5], "play_seconds": 60.0, "train_seconds": [120.0, 180.0], "tokens": 9,
    "clip_share": [1 / 7, None],
}).to_csv(online / "online.csv")
"""
STAGE = """
stages:
  play:
    cmd: python play.py
    params: [seed]
    outs: [data/eval/adversarial/vanilla.parquet, data/eval/adversarial/aria.parquet,
      data/policy/adversarial/aria/online]
"""
CONFIG = """
{seeds: [0, 1], reference: aria, categories: [adversarial], variants: [vanilla, aria], settings: []}
"""


def study_of(text: str, name: str = "two") -> Study:
    Path(f"{name}.yaml").write_text(text)
    return load_study(Path(f"{name}.yaml"))


@pytest.fixture
def experiments(tmp_path, monkeypatch):
    """Name -> params of the experiments that DVC seems to have; what it is asked to run raises."""
    shutil.copy("params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    found: dict[str, dict] = {}
    monkeypatch.setattr(script, "_experiments_here", lambda: list(found))
    monkeypatch.setattr(script, "_params_of", found.__getitem__)
    monkeypatch.setattr(script, "_head", lambda: "beef" * 10)
    monkeypatch.setattr(script, "_dvc", ran)
    monkeypatch.setattr(script, "_git", lambda *_: Path("params.yaml").read_text("utf-8"))
    return found


def ran(*command: str) -> str:
    raise RuntimeError(f"ran {command[4]}")


def shipped(*settings: str) -> dict:
    return script.params_under(settings, Path("params.yaml").read_text("utf-8"))


def test_an_experiment_of_other_settings_is_not_taken_for_the_seed(experiments, capsys):
    study = study_of(CONFIG.replace("settings: []", "settings: [online.games=96]"))
    experiments["two-seed-0"] = shipped("seed=0", "online.games=96")
    with pytest.raises(RuntimeError, match="ran two-seed-1"):
        run(study, study.seeds)
    experiments["two-seed-1"] = shipped("seed=1")
    with pytest.raises(AriaError, match=r"two-seed-1 .* other settings \(online\).*exp remove two"):
        run(study, study.seeds)
    del experiments["two-seed-0"]
    with pytest.raises(AriaError, match="no seed of the study two has been run as it is"):
        results(study, Path("out"))
    said = capsys.readouterr().err
    assert said.startswith(
        "left out: the experiment two-seed-1 (commit beefbee) was run with other"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("settings: []", "settings: [online.gamez=1]", "settings: .*gamez.*mend the study's file"),
        (
            "settings: []",
            "settings: [online.games=-1]",
            "two-seed-0: params.yaml with.*online.games",
        ),
        ("settings: []", "settings: ['online games']", "settings: .*mend the study's file"),
        ("[adversarial]", "[adversarial, a]", "two-seed-0: categories: no a in params.yaml"),
        ("[vanilla, aria]", "[vanilla, aria, b]", "two-seed-0: variants: no b in params.yaml"),
    ],
)
def test_settings_that_do_not_load_are_told_before_anything_is_run(experiments, old, new, said):
    study = study_of(CONFIG.replace(old, new))
    with pytest.raises(AriaError, match=said):
        run(study, [0])


def test_an_experiment_that_cannot_be_read_is_one_line(experiments, monkeypatch):
    study = study_of(CONFIG)
    experiments["two-seed-0"] = shipped("seed=0")

    def read(path: str, rev: str, mode: str) -> bytes:
        raise PathMissingError(path, "here")

    monkeypatch.setattr(script.dvc.api, "read", read)
    with pytest.raises(
        AriaError, match=r"vanilla.parquet of the experiment two-seed-0 .*exp remove"
    ):
        results(study, Path("out"))


def written(seeds: list[int], variants: list[str]) -> pd.DataFrame:
    tables = [outcomes(name, seed, [seed > 0, True]) for name in variants for seed in seeds]
    return pd.concat(tables).assign(completion_tokens=7, config="", broken_off=False)


def record(out: Path, rows: list[tuple[int, str, str]]) -> None:
    """Write experiments.csv of the study `two`: seed, digit of the commit, hash of the settings."""
    frame = pd.DataFrame(rows, columns=["seed", "commit", "settings"])
    frame["commit"] *= 40
    frame["experiment"] = [f"two-seed-{seed}" for seed in frame["seed"]]
    frame.to_csv(out / "experiments.csv", index=False)


def test_seeds_of_other_settings_are_left_out_and_named(experiments, capsys):
    study = study_of(CONFIG)
    out = Path("out")
    out.mkdir()
    games = [written([0, 1, 2, 3], ["vanilla", "aria", "former"]), written([4], ["vanilla"])]
    pd.concat(games).to_parquet(out / "games.parquet", index=False)
    before = pd.read_parquet(out / "games.parquet")
    (same,) = study.of([0]).hashes().values()
    (other,) = study.model_copy(update={"settings": ["k=2"]}).of([0]).hashes().values()
    record(out, [(0, "1", same), (1, "2", other), (3, "3", same), (4, "1", same)])
    shown = results(study, out)
    assert shown.startswith("Seeds: 0 (commit 1111111); 3 (commit 3333333).\n")
    assert "former" not in shown
    found = json.loads((out / "results.json").read_text())
    assert found["seeds"] == [0, 3]
    assert found["commits"] == {"0": "1" * 40, "3": "3" * 40}
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in said] == ["left out"] * 3
    assert "seed 1 (commit 2222222) was run with other settings" in said[0]
    assert "give the study's file back what it said, or run it again" in said[0]
    assert "study.py run configs/study/two.yaml --seeds 1" in said[0]
    assert "seed 2 (no commit recorded) has no line in experiments.csv: run it again" in said[1]
    assert "seed 4 (commit 1111111) has no games of aria" in said[2]
    kept = pd.read_parquet(out / "games.parquet")
    assert sorted(kept["seed"].unique()) == [0, 1, 2, 3, 4]
    assert len(kept) == len(before)


def test_seeds_of_other_games_than_most_are_left_out_and_named(experiments, capsys):
    study = study_of(CONFIG)
    Path("out").mkdir()
    games = written([0, 1, 2, 3], ["vanilla", "aria"])
    games["config"] = games["seed"].map({0: "0ld", 1: "new", 2: "0ld", 3: ""})
    games.to_parquet("out/games.parquet", index=False)
    (settings,) = study.of([0]).hashes().values()
    record(Path("out"), [(seed, "1", settings) for seed in range(4)])
    assert results(study, Path("out")).startswith("Seeds: 0, 2, 3 ")
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("left out: seed 1 (commit 1111111) was judged in none of the config")
    assert sorted(pd.read_parquet("out/games.parquet")["seed"].unique()) == [0, 1, 2, 3]


def test_results_say_what_came_of_each_seed_by_itself_and_how_long_it_took(experiments):
    study = study_of(CONFIG.replace("[adversarial]", "[adversarial, household]"))
    out = Path("out")
    out.mkdir()
    games = written([0, 1], ["vanilla", "aria"])
    games["config"] = games["episode"].where(games["seed"] == 0, "")
    games.to_parquet(out / "games.parquet", index=False)
    curves = pd.DataFrame({"log": ["bargaining", "negotiation", "household"], "iteration": 0})
    curves["category"] = ["adversarial", "adversarial", "household"]
    curves = curves.assign(episodes=4, win_rate=0.5, play_seconds=60.0, train_seconds=120.0)
    curves["tokens"] = 9
    curves.assign(seed=0, variant="aria").to_csv(out / "curves.csv", index=False)
    (settings,) = study.of([0]).hashes().values()
    record(out, [(0, "1", settings), (1, "1", settings)])
    results(study, out)
    found = json.loads((out / "results.json").read_text())
    assert found["minutes"] == {"aria": 6.0}
    assert found["within"].keys() == {"0"}
    assert set(found["within"]["0"]["all"]) == {"aria_minus_vanilla"}


def test_what_the_file_says_of_an_experiment_is_its_hash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = study_of(CONFIG)
    assert len(set(first.hashes().values())) == 1
    fewer = study_of(CONFIG.replace("[vanilla, aria]", "[aria, vanilla]"))
    assert fewer.hashes() == first.hashes()
    further = study_of(CONFIG.replace("settings: []", "settings: [a=1]"))
    assert not set(further.hashes().values()) & set(first.hashes().values())
    arms = CONFIG.replace("settings: []", "settings: [], arms: {aria: [], b: [a=1]}")
    full, less, *_ = study_of(arms).hashes().values()
    assert full != less
    of_another = study_of(arms.replace("[vanilla, aria]", "[vanilla, gae]"))
    assert not {full, less} & set(of_another.hashes().values())


def test_seeds_that_were_run_elsewhere_stay_in_the_results(tmp_path, monkeypatch):
    params = (ROOT / "params.yaml").read_text("utf-8")
    files = {"play.py": PLAY, "dvc.yaml": STAGE, "params.yaml": params, "two.yaml": CONFIG}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    workspace = Workspace(tmp_path)
    workspace.env["PYTHONPATH"] = f"{ROOT}/src{os.pathsep}{ROOT}"
    workspace.run("git", "init", "-q")
    workspace.run("dvc", "init", "-q")
    workspace.commit("start")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        AriaError, match=r"no seed of the study two .*: python scripts/study.py run"
    ):
        results(load_study(Path("two.yaml")), Path("metrics/study/two"))
    with pytest.raises(AriaError, match="--seeds: the study two has no seed 7: its seeds are 0, 1"):
        run(load_study(Path("two.yaml")), [0, 7])
    study = [sys.executable, str(ROOT / "scripts/study.py")]
    refused = workspace.run(*study, "results", "two.yaml", "--seeds", "0", check=False)
    assert "error: --seeds: results are of all seeds" in refused
    with_dvc = workspace.env["PATH"]
    workspace.env["PATH"] = str(Path(shutil.which("git")).parent)  # `dvc` and `python` are not
    workspace.run(*study, "run", "two.yaml", "--seeds", "0")
    commit = workspace.run("git", "rev-parse", "HEAD").strip()
    workspace.env["PATH"] = with_dvc
    assert f"Seeds: 0 (commit {commit[:7]}).\n" in workspace.run(*study, "results", "two.yaml")
    workspace.run("dvc", "exp", "remove", "two-seed-0")
    workspace.run(*study, "run", "two.yaml", "--seeds", "1")
    workspace.set_params({"online.games": 9})  # since then
    shown = workspace.run(*study, "results", "two.yaml")
    assert f"Seeds: 0, 1 (commit {commit[:7]}).\n" in shown
    refused = workspace.run(*study, "run", "two.yaml", "--seeds", "1", check=False)
    assert "error: the experiment two-seed-1" in refused
    assert "other settings (online)" in refused
    assert (
        "| all | aria | 0.75 (0.01 to 1.00) | +0.75 (-2.43 to +3.93) |  | 0.38 |  |  | 7 |" in shown
    )
    assert "| bargaining | vanilla | 0.00 (0.00 to 0.99) |" in shown
    games = pd.read_parquet("metrics/study/two/games.parquet")
    assert sorted(games["seed"].value_counts().items()) == [(0, 4), (1, 4)]
    assert games["config"].nunique() == 1  # both episodes, with both seeds, are of the first
    assert games["config"].str.fullmatch("[0-9a-f]{8}").all()
    curves = pd.read_csv("metrics/study/two/curves.csv", dtype=str)
    assert set(curves["category"]) == {"adversarial"}
    assert curves["clip_share"].dropna().tolist() == ["0.142857"] * 2  # whichever evening's


def test_what_dvc_complains_of_is_seen(tmp_path):
    (tmp_path / "two.yaml").write_text(CONFIG)
    workspace = Workspace(tmp_path)
    workspace.env["PYTHONPATH"] = f"{ROOT}/src{os.pathsep}{ROOT}"
    study = [sys.executable, str(ROOT / "scripts/study.py"), "results", "two.yaml"]
    assert "not inside of a DVC repository" in workspace.run(*study, check=False)
