"""The reward model: one pass per dialogue, split by group, learns what is there."""

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from learning_tiny import (
    LORA,
    PACE,
    made_up_game,
    reward_params,
    save_tiny_base,
    tiny_scorer,
    tiny_tokenizer,
)

from aria_dvc.chat import Renderer, view
from aria_dvc.errors import AriaError
from aria_dvc.learning.advantages import groups_of
from aria_dvc.learning.calibration import fit_metrics
from aria_dvc.learning.examples import LogFrames, dialogues, frames_examples
from aria_dvc.learning.fresh_credit import refusal
from aria_dvc.learning.reward_head import action_scores, regression_collate
from aria_dvc.learning.reward_model import (
    dealt_as,
    expected_return,
    held_out_episodes,
    train_reward_model,
    training_credit,
)
from aria_dvc.models.loading import load_model
from aria_dvc.models.source import ModelSource
from aria_dvc.serving.scorer_server import add_scorer_parser

TOKENIZER = tiny_tokenizer()
RENDERER = Renderer(TOKENIZER)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_tiny_base(tmp_path_factory.mktemp("base") / "base")


def planted_game(episodes=40, seed=0):
    """Credit is decided by what is said: 'deal' is worth 1, 'no' is worth 0."""
    game = made_up_game(episodes=episodes, turns=3, seed=seed)
    rng = np.random.default_rng(seed)
    good = rng.random(len(game.turns)) < 0.5
    turns = game.turns.assign(text=np.where(good, "deal", "no"))
    known = {"reward": good.astype(float), "return": good.astype(float), "pool": -1}
    return replace(game, turns=turns, rewards=game.rewards.assign(**known))


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rm")
    params = reward_params(
        epochs=25, learning_rate=1e-2, batch_size=32,
        lora=LORA.model_copy(update={"rank": 8, "alpha": 16}),
    )  # fmt: skip
    metrics = train_reward_model(
        params, PACE, [planted_game()], base, folder / "model", seed=0, cache=folder / "cache"
    )
    return folder / "model", metrics


def test_planted_credit_is_learned_and_held_out_metrics_show_it(trained):
    _, metrics = trained
    assert metrics["mse"] < 0.3 * metrics["mse_of_baseline"]
    assert metrics["spearman"] > 0.7
    table = metrics["calibration"]
    assert table[0]["actual"] < 0.2 < 0.8 < table[-1]["actual"]
    assert sum(row["actions"] for row in table) == metrics["held_out_actions"]


def test_one_pass_scores_equal_the_models_own_turn_by_turn(base):
    model = load_model(base, head="score").eval()
    model.config.pad_token_id = TOKENIZER.pad_token_id
    game = made_up_game(episodes=4, turns=5)
    examples = frames_examples([game], RENDERER, 2048).items
    data = [(e, np.zeros(len(e.keys), np.float32)) for e in examples]
    with torch.no_grad():
        together = action_scores(model, regression_collate(TOKENIZER.pad_token_id, {})(data, 1))
        alone = []
        for example in examples:
            for index in range(len(example.keys)):
                end = int(np.flatnonzero(example.action == index)[-1]) + 1
                ids = torch.from_numpy(example.input_ids[:end][None])
                mask = torch.ones_like(ids)
                alone.append(model(input_ids=ids, attention_mask=mask).logits[0, 0])
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-4, atol=1e-5)


def test_scorer_agrees_chat_by_chat_and_dialogue_by_dialogue(trained, base):
    scorer = tiny_scorer(trained[0], base)
    game = planted_game(episodes=3, seed=5)
    found = list(dialogues(game.turns, game.episodes))
    whole = scorer.score_dialogues(found)
    for dialogue in found:
        rows = game.turns[game.turns.episode_id == dialogue.episode_id]
        lines = list(zip(rows["role"], rows["text"], strict=True))
        for position in dialogue.positions:
            chat = view(lines[: position + 1], dialogue.role, dialogue.messages[0]["content"])
            expected = whole[dialogue.log, dialogue.episode_id, position]
            assert scorer.score_chats([chat])[0][-1] == pytest.approx(expected, abs=1e-4)
            said_deal = lines[position][1] == "deal"
            assert (expected > 0.5) == said_deal
    assert len(whole) == len(game.turns)


def test_scorer_refuses_what_it_cannot_score(trained, base, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    scorer = tiny_scorer(trained[0], base, max_tokens=60)
    long = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x" * 99}]
    assert scorer.score_chats([long]) == [[None]]
    heard = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    whole, cut = scorer.score_chats([heard, [*heard, *long]])
    assert cut == [pytest.approx(whole[0]), None]
    with pytest.raises(AriaError, match="holds no reward model"):
        tiny_scorer(tmp_path, base)
    with pytest.raises(AriaError, match=r"an adapter on base, which .* pass --base FOLDER"):
        tiny_scorer(trained[0])


def test_how_long_it_was_trained_is_noted_and_the_server_keeps_to_it(trained, base, monkeypatch):
    made = []

    class Scorer:
        def __init__(self, *sources, **limits):
            made.append((*sources, limits))

        def score_chats(self, chats):
            return []

    monkeypatch.setattr("aria_dvc.learning.scorer.RewardScorer", Scorer)
    monkeypatch.setattr(
        "aria_dvc.serving.scorer_server.listen", lambda app, host, port: made.append(port)
    )
    parser = argparse.ArgumentParser()
    add_scorer_parser(parser.add_subparsers())
    for options in ([], ["--max-tokens", "99", "--precision", "float32"]):
        arguments = ["serve-reward-model", str(trained[0]), "--base", str(base), *options]
        parsed = parser.parse_args([*arguments, "--port", "8111"])
        parsed.run(parsed)
    sources = ModelSource(str(trained[0])), ModelSource(str(base))
    as_trained = {"max_tokens": 512, "tokens_per_batch": 512, "precision": "auto"}
    asked = {"max_tokens": 99, "tokens_per_batch": 99, "precision": "float32"}
    assert made == [(*sources, as_trained), 8111, (*sources, asked), 8111]


def test_the_split_keeps_groups_whole_and_is_seeded():
    game = made_up_game(episodes=12)
    fours = game.episodes["episode_id"].str.rpartition("-")[2].astype(int) // 4
    grouped = replace(game, episodes=game.episodes.assign(group_id=fours.astype(str)))
    alike = replace(game, episodes=game.episodes.assign(group_id="all"))
    held = held_out_episodes([grouped], 0.3, seed=1)
    assert len(held) == 4
    assert len({dealt_as([grouped])[episode] for episode in held}) == 1
    assert held_out_episodes([grouped], 0.3, seed=1) == held
    for own in (game, alike):
        assert len(held_out_episodes([own], 0.3, seed=1)) == 4
    with pytest.raises(AriaError, match="at least 2 episodes"):
        held_out_episodes([made_up_game(episodes=1)], 0.3, seed=1)


def test_the_training_side_knows_no_outcome_of_the_held_out_one():
    game = coin_flips(seed=3)
    held = held_out_episodes([game], 0.2, 0)
    mine = np.array([("game", one) in held for one in game.rewards["episode_id"]])
    other = game.rewards.assign(**{"return": game.rewards["return"].where(~mine, 7.0)})
    before, after = (training_credit(replace(game, rewards=r), held) for r in (game.rewards, other))
    assert (before[~mine] == after[~mine]).all()
    own = training_credit(game, set())
    np.testing.assert_allclose(own, game.rewards["reward"])
    assert not np.allclose(own[~mine], before[~mine])
    other = replace(game, rewards=game.rewards.assign(pool=-1))
    assert training_credit(other, held).tolist() == game.rewards["reward"].tolist()


def coin_flips(seed, episodes=100, group=1, of_group=False, first=0.0):
    """Six actions of random intentions an episode, and coins for outcomes, of episodes or groups;
    the credit is that of `aria`. first: what the first intention moves the outcome by."""
    rng = np.random.default_rng(seed)
    said = rng.integers(4, size=(episodes, 6))
    coins = rng.integers(2, size=episodes).astype(float)
    coins = coins[np.arange(episodes) // group] if of_group else coins
    names = np.array([f"e{number:03}" for number in range(episodes)])
    table = pd.DataFrame({"episode_id": np.repeat(names, 6), "role": "alice"})
    table["position"], table["turn"] = np.tile(np.arange(6), episodes), 1
    table["return"] = np.repeat(coins + first * (said[:, 0] > 1), 6)
    table["cell"] = [str(row[: place + 1]) for row in said for place in range(6)]
    table["pool"] = table["cell"].factorize()[0]
    table["cell_size"] = table.groupby("cell")["cell"].transform("count")
    table["reward"] = table.groupby("cell")["return"].transform("mean")
    groups = [f"g{number // group}" for number in range(episodes)]
    prompts = pd.DataFrame({"episode_id": names, "group_id": groups})
    return LogFrames("game", pd.DataFrame(), prompts, table)


def believed(game, remembered, seed):
    """Whether a memory is believed that knows the mean training credit by some key."""
    held = held_out_episodes([game], 0.2, seed)
    rows, dealt = game.rewards, dealt_as([game])
    mine = np.array([("game", one) in held for one in rows["episode_id"]])
    known, key = training_credit(game, held)[~mine], remembered(game)
    asked = key[mine].map(known.groupby(key[~mine]).mean()).fillna(known.mean())
    groups = np.array([dealt["game", one] for one in rows["episode_id"][mine]])
    expected = expected_return(game, held)[mine].to_numpy()
    metrics = fit_metrics(rows["return"][mine].to_numpy(), asked.to_numpy(), expected, groups)
    return refusal(metrics) is None


def by_cell(game):
    return game.rewards["cell"]


def by_configuration(game):
    return game.rewards["episode_id"].map(groups_of(game.episodes))


@pytest.mark.parametrize(
    ("remembered", "coins"),
    [
        (by_cell, {}),
        (by_cell, {"group": 4}),
        (by_configuration, {"group": 4}),
        (by_configuration, {"group": 4, "of_group": True}),
    ],
)
def test_what_knows_nothing_but_the_training_side_is_not_believed(remembered, coins):
    trials = [believed(coin_flips(seed, **coins), remembered, seed) for seed in range(100)]
    assert np.mean(trials) <= 0.05


def by_role_and_turn(game):
    return game.rewards["role"] + game.rewards["turn"].astype(str)


def test_who_knows_the_role_and_the_turn_alone_is_not_believed():
    """Of such scores nothing is left once the value of the state is taken off."""

    def clock(seed):
        game = coin_flips(seed, 60)
        turn, bob = game.rewards["position"] // 2 + 1, game.rewards["position"] % 2
        told = {"role": np.where(bob, "bob", "alice"), "turn": turn, "pool": -1}
        worth = game.rewards["return"] + 2.0 * bob + turn
        told |= {"return": worth, "reward": worth}
        return replace(game, rewards=game.rewards.assign(**told))

    trials = [believed(clock(seed), by_role_and_turn, seed) for seed in range(100)]
    assert np.mean(trials) <= 0.05


def test_the_expected_return_is_that_of_role_and_turn_on_the_training_side():
    game = made_up_game(episodes=12)
    held = held_out_episodes([game], 0.3, 0)
    rows = game.rewards.assign(found=expected_return(game, held))
    known = rows[[("bargaining", one) not in held for one in rows["episode_id"]]]
    for (role, turn), found in rows.groupby(["role", "turn"])["found"]:
        of_role = known[known["role"] == role]["return"]
        here = known[(known["role"] == role) & (known["turn"] == turn)]["return"]
        told = here if len(here) >= 5 else of_role
        np.testing.assert_allclose(found, told.mean(), atol=1e-12)
    nobody = expected_return(game, {("bargaining", one) for one in rows["episode_id"]})
    assert nobody.isna().all()


@pytest.mark.parametrize("group", [1, 4])
def test_what_an_intention_moves_is_still_believed(group):
    game = [coin_flips(seed, 200, group, first=2.0) for seed in range(20)]
    first = [believed(one, lambda g: g.rewards["cell"].str[1], 0) for one in game]
    assert np.mean(first) >= 0.9


def test_cell_size_weighting_changes_the_fit(base, tmp_path):
    runs = {
        weighting: train_reward_model(
            reward_params(weighting=weighting), PACE, [made_up_game(episodes=8)], base,
            tmp_path / weighting, seed=0, cache=tmp_path / "cache",
        )["final_loss"]
        for weighting in ("none", "cell_size")
    }  # fmt: skip
    assert runs["none"] != runs["cell_size"]


def test_new_cell_sizes_are_a_new_run(base, tmp_path):
    game = made_up_game(episodes=8)
    other = replace(game, rewards=game.rewards.assign(cell_size=np.arange(len(game.rewards)) + 1))
    first, second = (
        train_reward_model(
            reward_params(weighting="cell_size", epochs=1), PACE, [g], base, tmp_path / "out",
            seed=0, cache=tmp_path / "cache",
        )["final_loss"]
        for g in (game, other)
    )  # fmt: skip
    assert first != second


def test_metrics_by_hand():
    actual = np.array([0.0, 0.0, 1.0, 1.0])
    metrics = fit_metrics(actual, np.array([0.1, 0.2, 0.7, 0.8]), baseline=0.5)
    assert metrics["mse"] == pytest.approx((0.01 + 0.04 + 0.09 + 0.04) / 4)
    assert metrics["mse_of_baseline"] == 0.25
    assert metrics["r2"] == pytest.approx(1 - metrics["mse"] / 0.25)
    assert fit_metrics(actual, np.full(4, 0.5), 0.5)["spearman"] is None


def held_out(skill, episodes=30, actions=6, seed=0):
    """Credits that share their episode's outcome, predicted with so much skill; their episodes."""
    rng = np.random.default_rng(seed)
    episode = np.repeat(np.arange(episodes), actions)
    actual = rng.normal(size=episodes)[episode] + 0.3 * rng.normal(size=episode.size)
    noise = rng.normal(size=episodes)[episode]
    return actual, skill * actual + 0.5 * (1 - skill) * noise, episode


@pytest.mark.parametrize(("skill", "above"), [(0.9, True), (0.0, False)])
def test_the_interval_of_r2_tells_knowledge_from_noise(skill, above):
    actual, predicted, episode = held_out(skill)
    metrics = fit_metrics(actual, predicted, 0.0, episode)
    assert metrics["r2_low"] < metrics["r2"] < metrics["r2_high"]
    assert (metrics["r2_low"] > 0) == above


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_a_few_groups_rarely_make_noise_look_like_knowledge(groups):
    """R2 above 0 is what online training believes a reward model by."""
    rng, believed, group = np.random.default_rng(groups), 0, np.repeat(np.arange(groups), 10)
    for _ in range(1000):
        actual = np.repeat(rng.random(groups) < 0.5, 10).astype(float)
        told = 0.5 + np.repeat(rng.normal(0, 0.15, groups), 10) + rng.normal(0, 0.05, len(group))
        believed += (fit_metrics(actual, told, 0.5, group)["r2_low"] or 0) > 0
    assert believed / 1000 < 0.05


def test_actions_of_one_episode_are_not_independent_evidence():
    actual, predicted, episode = held_out(0.4, episodes=12, actions=20)
    grouped, each = (fit_metrics(actual, predicted, 0.0, e) for e in (episode, None))
    widths = [metrics["r2_high"] - metrics["r2_low"] for metrics in (grouped, each)]
    assert widths[0] > 1.5 * widths[1]


def test_the_interval_covers_the_true_r2_in_most_data_sets():
    """The bootstrap of 30 episodes falls somewhat short of 95 of 100."""
    actual, predicted, _ = held_out(0.6, episodes=200_000, actions=1)
    truth = 1 - np.mean((actual - predicted) ** 2) / np.mean(actual**2)
    found = [
        fit_metrics(*held_out(0.6, seed=seed)[:2], 0.0, held_out(0.6)[2]) for seed in range(60)
    ]
    covered = np.mean([one["r2_low"] <= truth <= one["r2_high"] for one in found])
    assert covered > 0.85


def test_what_cannot_be_told_has_no_interval():
    constant = fit_metrics(np.full(4, 0.2), np.linspace(0, 1, 4), 0.5, np.arange(4))
    single = fit_metrics(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.5, np.zeros(2))
    for metrics in (constant, single):
        assert metrics["r2_low"] is metrics["r2_high"] is None


def test_training_writes_the_interval_over_held_out_episodes(trained):
    _, metrics = trained
    assert 0 < metrics["r2_low"] < metrics["r2"] < metrics["r2_high"] <= 1
