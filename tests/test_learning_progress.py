"""The progress estimator: its loss by hand, sums that are right, and nobody judges himself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from learning_tiny import LORA, PACE, made_up_game, progress_params, save_tiny_base, tiny_tokenizer

from aria_dvc.chat import Renderer
from aria_dvc.credit.contributions import area_under_curve, contribution_quality
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.intentions.log import Log
from aria_dvc.learning.objectives.ppo import turn_rewards
from aria_dvc.learning.progress import (
    WholeDialogues,
    in_float32,
    objective_loss,
    train_progress,
)
from aria_dvc.learning.progress_data import Outcomes, whole_dialogues
from aria_dvc.records.stored import read_contributions

RENDERER = Renderer(tiny_tokenizer())


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_tiny_base(tmp_path_factory.mktemp("base") / "base")


def decided(episodes=32, seed=0):
    """Games of three turns each, which Alice wins if she says `deal` at her second one. Bob has
    no part in it."""
    game = made_up_game(episodes=episodes, turns=1, seed=seed)
    rng, win = np.random.default_rng(seed), np.arange(episodes) % 2 == 1
    rows = pd.DataFrame({"episode": np.repeat(np.arange(episodes), 6), "turns": 3})
    rows["position"] = rows.groupby("episode").cumcount()
    alice = rows["position"] % 2 == 0
    words = np.where(rows["position"] == 2, np.where(win[rows["episode"]], "deal", "half"), "no")
    other = rng.choice(["no", "ten", "I"], len(rows))
    turns = rows.assign(
        game=game.name,
        episode_id="bargaining-" + rows.pop("episode").astype(str),
        role=np.where(alice, "alice", "bob"),
        is_action=alice,
        turn=rows["position"] // 2 + 1,
        text=np.where(rows["position"] == 2, words, other),
        reward=(np.repeat(win, 6) == alice).astype(float),
    )
    return replace(game, turns=turns)


@pytest.mark.parametrize(
    ("objective", "loss", "gradient"),
    [
        # contributions 0.5, 0.1 of a dialogue that should come to 1, and 0.3 of one to -0.5
        ("sum", 0.4**2 + 0.8**2, [-0.8, -0.8, 1.6]),
        ("spread", 0.4**2 + 0.8**2 + 2 * 0.2**2, [-0.8 + 0.4, -0.8 - 0.4, 1.6]),
        (
            "prefix",
            0.4**2 + 0.8**2 + (0.5**2 + 0.4**2) / 2 + 0.8**2,
            [-0.8 - 0.5 - 0.4, -0.8 - 0.4, 1.6 + 1.6],
        ),
    ],
)
def test_the_loss_of_each_objective_by_hand(objective, loss, gradient):
    scores = torch.tensor([0.5, 0.1, 0.3], requires_grad=True)
    targets, dialogue = torch.tensor([1.0, 1.0, -0.5]), torch.tensor([0, 0, 1])
    found = objective_loss(objective, scores, targets, dialogue)
    found.backward()
    assert found.item() == pytest.approx(loss, abs=1e-6)
    torch.testing.assert_close(scores.grad, torch.tensor(gradient))


def test_a_batch_counts_dialogues_and_an_idle_one_has_no_loss():
    game = made_up_game(episodes=3)
    examples = whole_dialogues([game], RENDERER, 2048)
    values = [np.full(len(e.keys), np.nan, np.float32) for e in examples]
    for number, value in enumerate(values):
        value[-1] = number
    members = list(zip(examples, values, strict=True))
    inputs = WholeDialogues(0)(members, len(members))
    for number, example in enumerate(examples):
        assert (inputs["targets"][inputs["dialogue"] == number] == number).all()
        assert (inputs["dialogue"] == number).sum() == len(example.keys)
    idle = WholeDialogues(0)([(examples[0].silent(), values[0][:0])], 3)
    assert len(idle["rows"]) == len(idle["dialogue"]) == 0
    scores = torch.zeros(0, requires_grad=True)
    objective_loss("prefix", scores, idle["targets"], idle["dialogue"]).backward()


def test_the_head_is_not_rounded_by_autocast():
    torch.manual_seed(0)
    head, hidden = torch.nn.Linear(64, 1, bias=False), torch.randn(5, 64)
    exact = head(hidden)
    head.register_forward_hook(in_float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = head(hidden)
    torch.testing.assert_close(found, exact)


def trained(base, folder, game, **changes):
    params = progress_params(**changes)
    metrics = train_progress(
        params, LORA, PACE, [game], base, folder / "out", seed=0, cache=folder / "cache"
    )
    return metrics, read_contributions(folder / "out" / f"{game.name}.parquet", game.turns)


@pytest.fixture(scope="module")
def planted(base, tmp_path_factory):
    return trained(base, tmp_path_factory.mktemp("planted"), decided(), epochs=20)


def test_a_word_that_decides_is_found_in_games_that_were_not_seen(planted):
    metrics, table = planted
    quality = metrics["logs"]["bargaining"]
    assert quality["sum_error"] < 0.7 * quality["constant_error"]
    size = table["contribution"].abs().groupby(table["position"]).mean()
    assert size[2] > 2 * size[[0, 4]].mean()
    assert quality["quarters"][3]["auc"] > 0.9


def test_contributions_add_up_to_q_less_what_was_expected(planted):
    _, table = planted
    np.testing.assert_allclose(table["reward"] - table["value"], table["contribution"])
    sums = table.groupby("episode_id", sort=False)["contribution"].sum()
    last = table["position"] == 4
    surplus = table["reward"] - Outcomes.of(decided(), 2, 0).expected()
    np.testing.assert_allclose(surplus[last], sums)


def test_an_episodes_own_outcome_does_not_move_its_contributions(base, tmp_path):
    game = decided(episodes=12)
    own = game.turns["episode_id"] == "bargaining-0"
    other = game.turns.assign(reward=game.turns["reward"].where(~own, 0.25))
    tables = [trained(base, tmp_path, g)[1] for g in (game, replace(game, turns=other))]
    before, after = (table["contribution"] for table in tables)
    own = tables[0]["episode_id"] == "bargaining-0"
    assert before[own].any()
    assert (before[own] == after[own]).all()
    assert (before != after).any(), "it taught the other fold"


def test_episodes_of_one_group_are_never_split(base):
    game = decided(episodes=24)
    ids = game.turns["episode_id"].unique()
    group = dict(zip(ids, np.arange(len(ids)) // 3, strict=True))
    turns = game.turns.assign(group_id=game.turns["episode_id"].map(group).astype(str))
    outcomes = Outcomes.of(replace(game, turns=turns), 2, 0)
    assert len(np.unique(outcomes.fold)) == 2
    for _, rows in turns.groupby("group_id"):
        assert len(np.unique(outcomes.fold[rows.index])) == 1


def test_actions_without_credit_or_a_message_of_their_own_have_no_part(base, tmp_path):
    """A button in the middle, and two utterances of one speaker in a row."""
    game = decided(episodes=8)
    turns = game.turns.assign(is_action=game.turns["position"] != 2)
    turns.loc[turns["position"] == 5, "role"] = "alice"
    turns["turn"] = turns.groupby(["episode_id", "role"]).cumcount() + 1
    turns["turns"] = turns.groupby(["episode_id", "role"])["turn"].transform("max")
    reward = turns.groupby(["episode_id", "role"])["reward"].transform("first")
    game = replace(game, turns=turns.assign(reward=reward))
    examples = whole_dialogues([game], RENDERER, 2048)
    assert {e.role: {key[2] for key in e.keys} for e in examples} == {
        "alice": {0, 5},
        "bob": {1, 3},
    }
    _, table = trained(base, tmp_path, game, epochs=1)
    assert (table["contribution"][table["position"] == 4] == 0).all()
    assert (table["contribution"][table["position"] == 5] != 0).all()


def test_a_dialogue_that_does_not_fit_is_refused_and_not_cut():
    with pytest.raises(AriaError, match=r"of 12 dialogues are longer than 60 tokens.*set it to "):
        whole_dialogues([made_up_game()], RENDERER, 60)


def test_a_single_episode_cannot_judge_itself(base):
    with pytest.raises(AriaError, match=r"bargaining has a single episode"):
        Outcomes.of(made_up_game(episodes=1), 2, 0)


def test_a_finished_fold_is_not_trained_again(base, tmp_path, monkeypatch):
    game = decided(episodes=8)
    metrics, table = trained(base, tmp_path, game, epochs=1)
    assert read_json(tmp_path / "out/metrics.json") == metrics
    assert len(metrics["folds"]) == 2
    monkeypatch.setattr("aria_dvc.learning.progress.fit", None)
    again, same = trained(base, tmp_path, game, epochs=1)
    assert again == metrics
    assert same.equals(table)


def test_a_turn_is_paid_its_contribution_and_half_a_point_if_it_was_carried_out(planted):
    _, table = planted
    game = decided()
    turns = game.turns.assign(
        grounded=(game.turns["position"] == 4).astype(float), group_id=game.turns["episode_id"]
    )
    spoken = game.turns.loc[game.turns["is_action"], ["episode_id", "position", "role", "turn"]]
    rewards = spoken.reset_index(drop=True).assign(
        reward=table["reward"], value=table["value"], **{"return": 0.0}
    )
    paid = turn_rewards(replace(game, turns=turns, rewards=rewards), "estimator", 0.5)
    expected = table["contribution"] + 0.5 * (table["position"] == 4)
    keys = zip(table["episode_id"], table["position"], strict=True)
    found = [paid["bargaining", episode, position] for episode, position in keys]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_quality_of_contributions_by_hand():
    """Two dialogues of one role, two turns each: expected 0.5, outcomes 1 and 0."""
    game = made_up_game(episodes=2, turns=1)
    turns = game.turns.assign(role="alice", turn=[1, 2, 1, 2], turns=2, reward=[1.0, 1.0, 0.0, 0.0])
    found = contribution_quality(np.array([0.1, 0.3, 0.2, -0.6]), np.full(4, 0.5), Log.of(turns))
    assert found["sum_error"] == pytest.approx(0.1**2)
    assert found["constant_error"] == 0.25
    assert found["sum_r2"] == pytest.approx(0.96)
    assert found["last_share"] == pytest.approx(0.75)
    assert [quarter["actions"] for quarter in found["quarters"]] == [0, 2, 0, 2]
    assert [quarter["auc"] for quarter in found["quarters"]] == [None, 0.0, None, 1.0]
    assert found["quarters"][3]["r2"] == pytest.approx(0.96)
    assert area_under_curve(np.zeros(4), np.array([True, False, True, False])) == 0.5
