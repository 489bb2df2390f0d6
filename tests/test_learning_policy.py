"""The policy really learns: tensors, log-probabilities, batch cuts, credits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from learning_tiny import (
    LORA,
    PACE,
    made_up_game,
    policy_params,
    save_tiny_base,
    tiny_model,
    tiny_tokenizer,
)
from peft import PeftModel
from settings import pace

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.learning.advantages import advantages, policy_weights
from aria_dvc.learning.batches import global_batches
from aria_dvc.learning.examples import frames_examples, with_values
from aria_dvc.learning.gradients import gradient_variances
from aria_dvc.learning.objective import policy_collate, selected_logits, token_logprobs
from aria_dvc.learning.policy import PolicyTrainer, train_policy
from aria_dvc.learning.trainer import FitSettings, fit, losses, make_deterministic
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import add_lora
from aria_dvc.models.source import ModelSource

TOKENIZER = tiny_tokenizer()
COLLATE = policy_collate(TOKENIZER.pad_token_id)
SETTINGS = FitSettings(learning_rate=1e-2, seed=0, pace=pace(tokens_per_batch=4096))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_tiny_base(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def game():
    return made_up_game(episodes=8, turns=4)


@pytest.fixture(scope="module")
def data(game):
    examples = frames_examples([game], Renderer(TOKENIZER), 2048).items
    rng = np.random.default_rng(3)
    return [(e, rng.normal(size=len(e.keys)).astype(np.float32)) for e in examples]


def logp(model, example):
    inputs = COLLATE([(example, np.ones(len(example.keys), np.float32))], 1)
    with torch.no_grad():
        return float(token_logprobs(selected_logits(model, inputs), inputs).sum())


def test_two_steps_move_every_lora_tensor_and_nothing_else(tmp_path, data):
    make_deterministic(0)
    model = add_lora(tiny_model(), LORA, "policy")
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    fit(PolicyTrainer, model, data[:4], [[0, 1, 2, 3]] * 2, COLLATE, tmp_path, SETTINGS)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            assert not torch.equal(parameter, before[name]), f"{name} did not move"
        else:
            assert torch.equal(parameter, before[name]), f"{name} moved"
    assert sum("lora_" in name for name in before) == 2 * 3 * 2  # A and B, q k v, two layers


@pytest.mark.parametrize(("advantage", "sign"), [(1.0, 1), (-1.0, -1)])
def test_log_probability_follows_the_sign_of_the_advantage(tmp_path, data, advantage, sign):
    make_deterministic(0)
    model = add_lora(tiny_model(), LORA, "policy")
    example = data[0][0]
    pair = (example, np.full(len(example.keys), advantage, dtype=np.float32))
    before = logp(model, example)
    fit(PolicyTrainer, model, [pair], [[0]] * 2, COLLATE, tmp_path, SETTINGS)
    assert sign * (logp(model, example) - before) > 0.01


def test_batch_8x1_and_2x4_take_the_same_steps(tmp_path, data):
    batches = global_batches(len(data), 8, 3, seed=0)
    weights, curves, accumulations = [], [], []
    for budget in (1 << 20, 500):
        make_deterministic(0)
        model = add_lora(tiny_model(), LORA, "policy")
        settings = replace(SETTINGS, pace=pace(tokens_per_batch=budget), learning_rate=1e-3)
        trainer = fit(PolicyTrainer, model, data, batches, COLLATE, tmp_path, settings)
        accumulations.append(trainer.args.gradient_accumulation_steps)
        curves.append([loss for _, loss in losses(trainer.state)])
        weights.append(torch.cat([p.flatten() for p in model.parameters() if p.requires_grad]))
    assert accumulations[0] == 1
    assert accumulations[1] >= 3
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-3, atol=1e-5)


def test_adapter_loads_portably_and_lists_its_metrics(tmp_path, base, game):
    metrics = train_policy(
        policy_params(), PACE, [game], base, tmp_path / "policy", seed=0, cache=tmp_path / "cache"
    )
    folder = tmp_path / "policy"
    assert {p.name for p in folder.iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "history.csv", "metrics.json",
    }  # fmt: skip
    config = read_json(folder / "adapter_config.json")
    assert config["base_model_name_or_path"] == "base"
    assert config["target_modules"] == ["k_proj", "q_proj", "v_proj"]
    history = pd.read_csv(folder / "history.csv")
    assert history["step"].tolist() == list(range(1, metrics["steps"] + 1))
    model = PeftModel.from_pretrained(load_model(base), str(folder))
    moved = [float(p.norm()) for n, p in model.named_parameters() if "lora_B" in n]
    assert min(moved) > 0


def test_full_fine_tuning_writes_a_whole_model(tmp_path, base, game):
    train_policy(
        policy_params(lora=None, epochs=1, kl=0.1),
        PACE, [game], base, tmp_path / "policy", seed=0, cache=tmp_path / "cache",
    )  # fmt: skip
    trained, start = load_model(ModelSource(tmp_path / "policy")), load_model(base)
    for (name, new), old in zip(trained.named_parameters(), start.parameters(), strict=True):
        assert not torch.equal(new, old), name


@pytest.mark.parametrize("worth", [0.0, 1.0])
def test_whole_model_is_played_from_its_own_folder(tmp_path, base, game, worth):
    valued = replace(game, rewards=game.rewards.assign(reward=worth))
    train_policy(
        policy_params(lora=None, epochs=1), PACE, [valued], base, tmp_path / "p", seed=0,
        cache=tmp_path / "cache",
    )  # fmt: skip
    Renderer(load_tokenizer(ModelSource(tmp_path / "p")))


def test_kl_keeps_the_policy_nearer_to_its_base(tmp_path, base, game):
    distances = []
    for kl in (0.0, 50.0):
        folder = tmp_path / f"kl{kl}"
        params = policy_params(kl=kl, epochs=6, learning_rate=5e-3)
        train_policy(params, PACE, [game], base, folder, seed=0, cache=tmp_path / "cache")
        model = PeftModel.from_pretrained(load_model(base), str(folder))
        example = frames_examples([game], Renderer(TOKENIZER), 512).items[0]
        inputs = COLLATE([(example, np.ones(len(example.keys), np.float32))], 1)
        with torch.no_grad():
            new = selected_logits(model, inputs).log_softmax(-1)
            with model.disable_adapter():
                old = selected_logits(model, inputs).log_softmax(-1)
        distances.append(float((new.exp() * (new - old)).sum()))
    assert distances[1] < 0.5 * distances[0]


def test_without_any_advantage_the_policy_is_the_base(tmp_path, base, game):
    worthless = replace(game, rewards=game.rewards.assign(reward=0.0))
    params = policy_params(gradient_batches=4)
    metrics = train_policy(
        params, PACE, [worthless], base, tmp_path / "p", seed=0, cache=tmp_path / "cache"
    )
    assert metrics["steps"] == 0
    assert metrics["gradient_variance_ratio"] == 0 < metrics["gradient_variance_discounted"]
    model = PeftModel.from_pretrained(load_model(base), str(tmp_path / "p"))
    assert all(float(p.norm()) == 0 for n, p in model.named_parameters() if "lora_B" in n)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (["query"], "no module named query: choose from .*q_proj"),
        (["mlp"], "no module named mlp: choose from .*down_proj"),
        ([], "none named: choose from .*q_proj"),
    ],
)
def test_unknown_target_module_is_named(base, game, tmp_path, modules, message):
    params = policy_params(lora=LORA.model_copy(update={"target_modules": modules}))
    with pytest.raises(AriaError, match=message):
        train_policy(params, PACE, [game], base, tmp_path / "p", seed=0, cache=tmp_path / "cache")


def test_credits_of_the_ablations(game):
    table = game.rewards.merge(
        game.turns[["episode_id", "position", "reward"]].rename(columns={"reward": "final"}),
        on=["episode_id", "position"],
    )
    for credit, column in (
        ("aria", "reward"),
        ("discounted", "return"),
        ("terminal", "final"),
    ):
        got = advantages(game, credit, "return")
        expected = {
            (game.name, r["episode_id"], r["position"]): r[column] for _, r in table.iterrows()
        }
        assert got == pytest.approx(expected)


def test_centred_subtracts_the_other_episodes_mean_at_the_turn(game):
    raw, centred = (advantages(game, "discounted", a) for a in ("return", "centred"))
    row = game.rewards.iloc[0]
    same = game.rewards[(game.rewards.role == row.role) & (game.rewards.turn == row.turn)]
    others = same[same.episode_id != row.episode_id]["return"].mean()
    key = (game.name, row.episode_id, row.position)
    assert centred[key] == pytest.approx(raw[key] - others)


def in_groups(game, size):
    """The game's episodes, so many neighbours to a group."""
    ids = game.episodes["episode_id"].unique().tolist()
    group = {episode: f"group {number // size}" for number, episode in enumerate(ids)}
    return replace(
        game, episodes=game.episodes.assign(group_id=game.episodes["episode_id"].map(group))
    )


def one_shot(rewards, groups):
    """Episodes of one action each, whose credit is the reward."""
    game = made_up_game(episodes=len(rewards), turns=1)
    for name in ("turns", "episodes", "rewards"):
        table = getattr(game, name)
        game = replace(game, **{name: table[table["role"] == "alice"].reset_index(drop=True)})
    credit = np.array(rewards, dtype=float)
    return replace(
        game,
        turns=game.turns.assign(reward=credit),
        rewards=game.rewards.assign(reward=credit),
        episodes=game.episodes.assign(group_id=groups),
    )


def test_group_compares_with_the_other_games_of_the_configuration():
    """Of one action each and in two groups: the reward less the others' mean."""
    rewards = [1.0, 0.0, 0.0, 0.5, 0.7, 0.9]
    game = one_shot(rewards, ["a", "a", "a", "b", "b", "b"])
    found = list(advantages(game, "aria", "group").values())
    others = [0.0, 0.5, 0.5, 0.8, 0.7, 0.6]
    expected = [own - other for own, other in zip(rewards, others, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_group_of_one_and_missing_groups_are_centred(game):
    centred = advantages(game, "discounted", "centred")
    assert "group_id" not in game.episodes
    empty = replace(game, episodes=game.episodes.assign(group_id=""))
    for alone in (game, in_groups(game, 1), empty):
        assert advantages(alone, "discounted", "group") == pytest.approx(centred)
    assert advantages(in_groups(game, 4), "discounted", "group") != pytest.approx(centred)


def test_a_single_group_is_centred(game):
    alone = in_groups(game, len(game.episodes))
    centred = advantages(game, "discounted", "centred")
    assert advantages(alone, "discounted", "group") == pytest.approx(centred)


def test_group_baseline_does_not_know_the_action(game):
    """Another reward of one episode changes only its own advantage's sign of the difference."""
    grouped = in_groups(game, 4)
    changed = grouped.rewards.copy()
    mine = changed["episode_id"] == changed["episode_id"].iloc[0]
    changed.loc[mine, "reward"] += 1.0
    before = advantages(grouped, "aria", "group")
    after = advantages(replace(grouped, rewards=changed), "aria", "group")
    for key, value in before.items():
        if key[1] == changed["episode_id"].iloc[0]:
            assert after[key] - value == pytest.approx(1.0)  # its own baseline is what it was
        elif key[1] in grouped.episodes["episode_id"].unique()[1:4]:
            assert after[key] < value


def test_placebo_gives_every_advantage_to_another_action_of_the_role(game):
    plain = policy_weights([game], policy_params(credit="discounted", advantage="centred"), 0)
    placebo = policy_params(credit="discounted", advantage="centred", placebo=True)
    shuffled = policy_weights([game], placebo, 0)
    assert shuffled == policy_weights([game], placebo, 0)
    assert shuffled != policy_weights([game], placebo, 1)
    role = {(game.name, r.episode_id, r.position): r.role for r in game.rewards.itertuples()}
    assert set(shuffled) == set(plain)
    for name in ("alice", "bob"):
        mine, given = (
            sorted(value for key, value in weights.items() if role[key] == name)
            for weights in (plain, shuffled)
        )
        assert given == mine
    moved = np.mean([shuffled[key] != plain[key] for key in plain])
    assert moved > 0.5


def test_normalised_has_mean_0_and_deviation_1_per_role(game):
    values = advantages(game, "aria", "normalised")
    role = {(game.name, r.episode_id, r.position): r.role for r in game.rewards.itertuples()}
    for name in ("alice", "bob"):
        own = np.array([v for key, v in values.items() if role[key] == name])
        assert own.mean() == pytest.approx(0, abs=1e-9)
        assert own.std() == pytest.approx(1)


def test_normalised_takes_rounding_for_no_spread(game):
    credit = [0.3 + np.spacing(0.3) * (i % 3 == 0) for i in range(len(game.rewards))]
    values = advantages(
        replace(game, rewards=game.rewards.assign(reward=credit)), "aria", "normalised"
    )
    assert set(values.values()) == {0.0}


def test_behaviour_cloning_imitates_winners_only(game, caplog):
    weights = policy_weights([game], policy_params(method="behaviour_cloning"), 0)
    won = game.turns[game.turns.reward > 0.5]
    assert set(weights) == {(r.game, r.episode_id, r.position) for r in won.itertuples()}
    assert set(weights.values()) == {1.0}
    lost = replace(game, turns=game.turns.assign(reward=0.0))
    assert policy_weights([lost], policy_params(method="behaviour_cloning"), 0) == {}
    (warning,) = caplog.messages
    assert "no success to imitate in bargaining" in warning
    assert "\n" not in warning


@pytest.mark.parametrize("trained", ["alice", "bob"])
def test_cloned_success_is_the_larger_share_of_money(game, trained):
    shares = game.turns["role"].map({"alice": 0.45, "bob": 0.3})
    only = game.rewards[game.rewards["role"] == trained]
    paid = replace(game, turns=game.turns.assign(reward=shares), rewards=only)
    weights = policy_weights([paid], policy_params(method="behaviour_cloning"), 0)
    assert len(weights) == (len(only) if trained == "alice" else 0)


def test_cloning_compares_with_an_opponent_that_is_not_trained(game):
    mine = game.turns["role"] == "alice"
    shares = game.turns["role"].map({"alice": 0.6, "bob": 0.7})
    turns = game.turns.assign(reward=shares, is_action=mine)
    lost = replace(game, turns=turns, rewards=game.rewards[game.rewards["role"] == "alice"])
    assert policy_weights([lost], policy_params(method="behaviour_cloning"), 0) == {}


@pytest.mark.parametrize("lora", [LORA, None])
def test_gradient_checkpointing_changes_no_step(tmp_path, data, lora):
    curves, computed = [], []
    for checkpointing in (False, True):
        make_deterministic(0)
        model = add_lora(tiny_model(), lora, "policy") if lora else tiny_model()
        layer, passes = model.get_decoder().layers[0].mlp, []
        layer.register_forward_pre_hook(lambda *_, passes=passes: passes.append(1))
        fit(
            PolicyTrainer, model, data[:4], [[0, 1, 2, 3]] * 3,
            policy_collate(TOKENIZER.pad_token_id, model=model), tmp_path,
            replace(SETTINGS, pace=pace(gradient_checkpointing=checkpointing)),
        )  # fmt: skip
        curves.append(torch.cat([p.flatten() for p in model.parameters() if p.requires_grad]))
        computed.append(len(passes))
    torch.testing.assert_close(curves[0], curves[1], rtol=1e-4, atol=1e-5)
    assert computed[1] == 2 * computed[0]


@pytest.mark.parametrize("budget", [1 << 20, 500])
def test_worthless_dialogues_change_no_step_and_cost_no_token(tmp_path, data, budget):
    """Actions of value 0 count in the mean of their batch, computed or not."""
    values = {
        key: 0.0 if index % 3 else float(value)
        for index, (example, list_) in enumerate(data)
        for key, value in zip(example.keys, list_, strict=True)
    }
    curves, weights, tokens = [], [], []
    for keep_zero in (False, True):
        paired = with_values([example for example, _ in data], values, keep_zero)
        make_deterministic(0)
        model = add_lora(tiny_model(), LORA, "policy")
        trainer = fit(
            PolicyTrainer,
            model,
            paired,
            global_batches(len(paired), 4, 2, seed=0),
            policy_collate(TOKENIZER.pad_token_id, keep_zero=keep_zero),
            tmp_path,
            replace(SETTINGS, pace=pace(tokens_per_batch=budget), learning_rate=1e-3),
        )
        tokens.append(sum(len(example) for example, _ in paired))
        curves.append([loss for _, loss in losses(trainer.state)])
        weights.append(torch.cat([p.flatten() for p in model.parameters() if p.requires_grad]))
    assert tokens[0] < tokens[1] / 2
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-3, atol=1e-5)


def test_gradient_variance_scales_as_the_square_of_the_credit(data):
    model = add_lora(tiny_model(), LORA, "policy")
    examples = [example for example, _ in data]
    credit = {key: float(v) for e, values in data for key, v in zip(e.keys, values, strict=True)}
    third = {key: value / 3 for key, value in credit.items()}
    before = {name: p.requires_grad for name, p in model.named_parameters()}
    reduced, plain = gradient_variances(
        model, examples, (third, credit), policy_collate(0, keep_zero=True),
        batches=6, seed=0, bfloat16=False,
    )  # fmt: skip
    assert reduced / plain == pytest.approx(1 / 9, rel=1e-4)
    assert before == {name: p.requires_grad for name, p in model.named_parameters()}
    assert all(p.grad is None for p in model.parameters())


def test_gradient_variances_pass_over_dialogues_without_credit(data):
    model = add_lora(tiny_model(), LORA, "policy")
    examples = [example for example, _ in data]
    credit = {key: 1.0 for example in examples[:4] for key in example.keys}
    for seed in range(3):
        pair = gradient_variances(
            model, examples, (credit, {}), policy_collate(0, keep_zero=True),
            batches=2, seed=seed, bfloat16=False,
        )  # fmt: skip
        assert pair[0] > 0 == pair[1]


def test_above_its_own_value_a_credit_is_compared_with_returns_above_the_same(tmp_path, base, game):
    params = policy_params(credit="gae", advantage="value", gradient_batches=4, epochs=1)
    found = {}
    for credit in ("reward", "return"):
        rewards = game.rewards.assign(reward=game.rewards[credit])
        found[credit] = train_policy(
            params, PACE, [replace(game, rewards=rewards)], base, tmp_path / credit,
            seed=0, cache=tmp_path / "cache",
        )  # fmt: skip
    assert found["return"]["gradient_variance_ratio"] == 1
    discounted = [metrics["gradient_variance_discounted"] for metrics in found.values()]
    assert discounted[0] == discounted[1] > found["reward"]["gradient_variance"]


@pytest.mark.parametrize(
    ("credit", "method"), [("discounted", "reinforce"), ("aria", "behaviour_cloning")]
)
def test_no_gradients_are_compared_where_the_credit_is_no_other(
    tmp_path, base, game, credit, method
):
    params = policy_params(credit=credit, method=method, gradient_batches=4, epochs=1)
    metrics = train_policy(
        params, PACE, [game], base, tmp_path / "p", seed=0, cache=tmp_path / "cache"
    )
    assert not [name for name in metrics if name.startswith("gradient_variance")]
