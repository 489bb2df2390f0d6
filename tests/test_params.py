"""params.yaml: every mistake at once, with did-you-mean; numbers survive what DVC writes."""

import copy
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from aria_dvc.errors import AriaError
from aria_dvc.params import check_params, load_params

ROOT = Path(__file__).parent.parent
OPPONENT = "evaluate.games.bargaining.opponents.bob"
CITY = "logs.guess_my_city.players"
BOB = "logs.bargaining.players.bob"


@pytest.fixture
def raw():
    return copy.deepcopy(YAML(typ="safe", pure=True).load((ROOT / "params.yaml").read_text()))


def test_the_shipped_file_is_valid(raw):
    params = check_params(raw)
    assert params.k == "auto"
    assert params.games_of("adversarial") == ["bargaining", "negotiation"]
    assert params.variant("vanilla").method == "none"
    assert params.variant("aria") == params.policy


def test_all_mistakes_come_in_one_line(raw):
    raw["polcy"] = 1
    raw["policy"]["learning_rte"] = 3
    raw["online"]["iteratons"] = 3
    raw["logs"]["bargaining"]["sorce"] = "x"
    raw["collect"]["top"] = 1
    raw["policy"]["epochs"] = "many"
    del raw["embed"]["normalize"]
    with pytest.raises(AriaError) as caught:
        check_params(raw)
    message = str(caught.value)
    for part in (
        "polcy: unknown key (did you mean policy?)",
        "policy.learning_rte: unknown key (did you mean learning_rate?)",
        "online.iteratons: unknown key (did you mean iterations?)",
        "logs.bargaining.sorce: unknown key (did you mean source?)",
        "collect.top: unknown key (did you mean top_p?)",
        "policy.epochs: input should be a valid number",
        "embed.normalize: field required",
    ):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"k": 1}, "k: 1 is outside 2..100"),
        ({"k": 101}, "k: 101 is outside 2..100"),
        ({"k": 2.5}, "k"),
        ({"k": "many"}, "k"),
        ({"logs": {}}, "logs: dictionary should have at least 1"),
        ({"variants": {"aria": {}}}, "variants.vanilla: the base model is always evaluated"),
        ({"categories": ["adversarial", "none"]}, "categories: none has no log: take it off"),
        ({"seed": -1}, "seed"),
    ],
)
def test_refusals(raw, change, expected):
    with pytest.raises(AriaError, match=r"params\.yaml") as caught:
        check_params({**raw, **change})
    assert expected in str(caught.value)


def set_at(raw, path, value):
    *parents, last = path.split(".")
    for part in parents:
        raw = raw[part]
    raw[last] = value


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("policy.lora", None, "online.variants: aria has no lora: online training reloads"),
        ("online.variants", ["arai"], "online.variants: no variant arai to train (did you mean"),
        ("online.variants", ["vanilla"], "online.variants: no variant vanilla to train"),
        ("report.baselines", ["ari"], "report.baselines: no variant ari to compare with (did you"),
        ("online.rollouts", "vllm", "online.rollouts: vllm is neither"),
        ("online.rollouts", "endpoint:x", "online.rollouts: no endpoint x"),
        ("online.rollouts", ["endpoint:x", "vllm"], "online.rollouts: vllm is neither"),
        ("online.rollouts", [], "online.rollouts: an empty list plays nothing"),
        ("evaluate.rollouts", ["endpoint:x"], "evaluate.rollouts: no endpoint x"),
        ("evaluate.rollouts", [], "evaluate.rollouts: an empty list plays nothing"),
        ("online.rollouts", ["in_process", "endpoint:x"], "in_process plays nothing beside endp"),
        ("policy.lora.target_modules", [], "policy.lora.target_modules: list should have at least"),
        ("policy.learning_rate", float("inf"), "policy.learning_rate: input should be a finite"),
        ("prepare.players", ["bases"], "prepare.players.0: input should be 'policy'"),
        ("prepare.players", ["base"], "logs.bargaining.players: nobody is of the kinds in prep"),
        (BOB, {"policy": 0.0}, "logs.bargaining.players.bob: weights must be 0 or more, and one"),
        (BOB, {"policy": 1, "base": -1}, "players.bob: weights must be 0 or more, and one above"),
        (BOB, {}, "logs.bargaining.players.bob: weights must be 0 or more, and one above 0"),
        (BOB, {"polcy": 1.0}, "players.bob: unknown player polcy (did you mean policy?)"),
        (
            "logs.bargaining.players",
            {"alice": "endpoint:x", "bob": "scripted:hard"},
            "logs.bargaining.players: online training needs `policy` among them",
        ),
        ("logs.bargaining.repeats", 0, "logs.bargaining.repeats: input should be greater than"),
        ("online.repeats", 0, "online.repeats: input should be greater than"),
        ("variants.aria", {"epoch": 1}, "variants.aria.epoch: unknown key (did you mean epochs?)"),
        ("variants.aria", {"lora": {"rank": 0}}, "variants.aria.lora.rank: input should be"),
        ("variants.aria", {"method": "none"}, "method none is vanilla's alone"),
        (
            "variants.other",
            {"method": "behaviour_cloning", "placebo": True},
            "variants.other.placebo: behaviour_cloning has no advantages to give",
        ),
        (
            "variants.other",
            {"method": "ppo"},
            "variants.other.credit: ppo adds up what every turn was paid, but aria is a return",
        ),
        (
            "variants.other",
            {"method": "ppo", "credit": "belief"},
            "variants.other.credit: ppo adds up what every turn was paid, but belief is a return",
        ),
        (
            "variants.other",
            {"credit": "estimator"},
            "variants.other.credit: estimator is trained only with progress.train: true: set it",
        ),
        ("variants.estimator", {}, "variants.estimator: it trains on aria: give it another name"),
        ("progress.folds", 1, "progress.folds: input should be greater"),
        (
            "variants.other",
            {"method": "gigpo"},
            "variants.other.credit: gigpo trains on credit gigpo, not on aria",
        ),
        (
            "variants.other",
            {"method": "step_dpo", "kl": 0.1},
            "variants.other.kl: step_dpo is held to the base model by dpo.beta: use 0",
        ),
        ("variants.ppo", {"credit": "terminal"}, "variants.ppo: it trains on terminal: give it"),
        ("variants.other", {"clip": {"low": 1.0}}, "variants.other.clip.low: input should be less"),
        ("variants.my-arm", {}, "variants: 'my-arm' is no name"),
        ("variants.aria", {"credit": "terminal"}, "variants.aria: it trains on terminal: give it"),
        (
            "policy.credit",
            "kernel",
            "variants.other.credit: kernel is neither aggregate.meth",
        ),
        ("aggregate.method", "kernel", "variants.aria.credit: aria is neither aggregate.method"),
        ("aggregate.method", "advantage", "aggregate.method: input should be 'aria'"),
        (
            "variants.other",
            {"credit": "discounted", "advantage": "value"},
            "variants.other.advantage: value is a credit method's, and discounted is none",
        ),
        ("aggregate.history", -1, "aggregate.history: input should be greater"),
        ("logs.bargaining.episodes", 0, "logs.bargaining.episodes: no game is played"),
        (BOB, "endpoint:x", "bob: no endpoint x under endpoints"),
        ("rewards.bargaining", "margn", "rewards.bargaining: unknown rule margn (did you mean ma"),
        ("rewards.bargainin", "win", "rewards: unknown game bargainin (did you mean bargaining?)"),
        (
            "online.weights.negotation",
            2.0,
            "online.weights: no log negotation (did you mean negotiation?)",
        ),
        (
            "online.by_category.single_agnt",
            {"games": 8},
            "online.by_category: unknown category single_agnt (did you mean single_agent?)",
        ),
        ("rewards.guess_my_city", "win", "rewards.guess_my_city: success is 1 and failure 0"),
        ("rewards", {"bargaining": "win"}, "rewards.negotiation: say how the end of this game"),
        ("logs.bargaining.category", "single_agent", "bargaining is a game of adversarial"),
        (
            "logs.bargainin",
            {"source": "data/base_model", "category": "adversarial"},
            "logs.bargainin.source: there is no game bargainin to play (did you mean bargaining?)",
        ),
        ("base_model.games", ["chess"], "base_model.games: unknown game chess"),
        ("collect.sampling", {"polcy": {}}, "unknown player polcy (did you mean policy?)"),
        ("evaluate.sampling", {"endpoint:x": {}}, "evaluate.sampling: no endpoi"),
        (OPPONENT, "scriptd:fair", "opponents.bob: unknown player"),
        (OPPONENT, ["scripted:fiar"], "unknown strategy fiar (did"),
        ("embed.source", "endpoint:x", "embed.source: no endpoint x under endpoints (known: none)"),
        (OPPONENT, [], "evaluate.games.bargaining.opponents: nobody plays bob: name a player"),
        (f"{OPPONENT}b", "base", "opponents: bargaining has no role bobb (did you mean bob?)"),
        (OPPONENT, ["base", "policy"], "opponents.bob: policy is what is judged: name who stays"),
        (OPPONENT, ["base", "scripted:fair", "base"], "bob: base is named 2 times: once will do"),
        (OPPONENT, "embedded", "bob: embedded cannot play bob in bargaining: name another"),
        (OPPONENT, "scripted:steady", "bob: scripted:steady cannot play bob in bargaining"),
        ("evaluate.games.guess_my_city.opponents", {}, "opponents: nobody plays oracle: name"),
        (f"{CITY}.oracle", "scripted:steady", "scripted:steady cannot play oracle in guess_my_ci"),
        (f"{CITY}.agent", "scripted:fair", "players.agent: scripted:fair cannot play agent in gu"),
        (CITY, {"agent": "policy"}, "logs.guess_my_city.players: nobody plays oracle: name a"),
        ("logs.bargaining.grid", "glee4", "bargaining has no grid glee4 (did you mean glee48?)"),
        ("evaluate.games.guess_my_city.grid", "glee48", "guess_my_city has no grid glee48"),
        (
            "base_model.warm_start_settings.by_game.negotiation.grid",
            "surplu",
            "by_game.negotiation.grid: negotiation has no grid surplu (did you mean surplus?)",
        ),
        ("seed", 2**32, "seed: input should be less than 4294967296"),
    ],
)
def test_what_would_fail_hours_later_is_refused_at_once(raw, path, value, expected):
    raw["online"]["variants"] = ["aria"]
    raw["variants"]["other"] = {}
    check_params(raw)
    set_at(raw, path, value)
    with pytest.raises(AriaError) as caught:
        check_params(raw)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("base_url", "ftp://h/v1"),
        ("base_url", "nowhere"),
        ("base_url", "http://user:sekret@h/v1"),
        ("base_url", "http://h/v1?key=sekret"),
        ("base_url", "http://h/v1#sekret"),
        ("base_url", "http://user:sekret/x@h/v1"),
        ("base_url", "http://user:sekret@h:99999"),
        ("base_url", "http://user:sekret@[bad"),
        ("options", "http://user:sekret@h"),
        ("api_key_env", "sk-sekret-123"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused_without_showing_secrets(raw, key, value):
    raw["endpoints"] = {"x": {"base_url": "http://h/v1", "model": "m", key: value}}
    with pytest.raises(AriaError, match=rf"endpoints\.x\.{key}") as caught:
        check_params(raw)
    assert "sekret" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("endpoints.x", "http://u:sekret@h"),
        ("online.scorer", "ftp://u:sekret@h"),
        ("online.scorer", "sekret"),
    ],
)
def test_an_address_in_the_wrong_place_is_not_shown(raw, path, value):
    set_at(raw, path, value)
    with pytest.raises(AriaError, match=path) as caught:
        check_params(raw)
    assert "sekret" not in str(caught.value)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"method": "grpo"}, "other is trained by grpo, which takes no scores of a rew"),
        ({"method": "behaviour_cloning"}, "other is trained by behaviour_cloning, which takes no"),
        ({"credit": "gae", "advantage": "value"}, r"variants\.other\.advantage: a reward model's"),
    ],
)
def test_scores_of_a_reward_model_go_with_reinforce_alone(raw, other, message):
    raw["variants"]["other"] = other
    raw["aggregate"]["further"] = ["gae"]
    raw["online"] |= {"variants": ["other"], "credit": "reward_model"}
    with pytest.raises(AriaError, match=message):
        check_params(raw)
    raw["online"]["credit"] = "games"
    assert check_params(raw).variants["other"]


def test_the_estimator_judges_no_fresh_games(raw):
    raw["progress"]["train"] = True
    raw["variants"]["spa"] = {"method": "ppo", "credit": "estimator", "ppo": {"grounding": 0.5}}
    assert check_params(raw).variant("spa").credit == "estimator"
    raw["online"]["variants"] = ["spa"]
    with pytest.raises(AriaError, match=r"spa trains on credit estimator.* or use credit: progr"):
        check_params(raw)


@pytest.mark.parametrize(
    ("bob", "judge", "shared"),
    [
        ({"policy": 1, "scripted:fair": 1}, "scripted:fair", "fair"),
        ("scripted:mixed", ["scripted:varied", "scripted:fair"], "fair"),
        ("scripted:hard", "scripted:mixed", "hard"),
        ("scripted:varied", "scripted:varied", "varied"),
        ("scripted:mixed", "scripted:varied", "varied"),  # it taught in the warm start
        ("scripted:hard", "scripted:best_response", "best_response"),
        ({"policy": 1, "base": 1}, "base", "base"),
        ({"policy": 1, "endpoint:x": 1}, ["scripted:fair", "endpoint:x"], "endpoint:x"),
        ("scripted:hard", ["scripted:fair", "scripted:conceding"], None),
        ("policy", "base", None),
    ],
)
def test_who_judges_has_not_trained_unless_that_is_allowed(raw, bob, judge, shared):
    raw["endpoints"] = {"x": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}
    set_at(raw, BOB, bob)
    raw["logs"]["bargaining"]["players"]["alice"] = "policy"
    raw["evaluate"]["games"]["bargaining"]["opponents"] = {"alice": judge, "bob": judge}
    if shared:
        expected = rf"evaluate\.games\.bargaining\.opponents: {shared} would judge"
        with pytest.raises(AriaError, match=expected):
            check_params(raw)
        set_at(raw, "evaluate.allow_training_opponents", True)
    check_params(raw)


def test_a_model_with_two_names_does_not_judge_either(raw):
    server = {"base_url": "http://127.0.0.1:1/v1", "model": "m"}
    slash = {**server, "base_url": "http://127.0.0.1:1/v1/"}
    raw["endpoints"] = {"x": server, "y": slash, "z": {**server, "model": "other"}}
    set_at(raw, BOB, {"policy": 1, "endpoint:x": 1})
    judges = {"alice": "endpoint:z", "bob": "endpoint:y"}
    raw["evaluate"]["games"]["bargaining"]["opponents"] = judges
    with pytest.raises(AriaError, match=r"endpoint:y would judge"):
        check_params(raw)
    raw["evaluate"]["games"]["bargaining"]["opponents"] = dict.fromkeys(judges, "endpoint:z")
    check_params(raw)


@pytest.mark.parametrize("changes", [{"categories": ["single_agent"]}, {"variants": {}}])
def test_who_trains_nobody_may_judge(raw, changes):
    set_at(raw, BOB, {"policy": 1, "scripted:fair": 1})
    with pytest.raises(AriaError, match=r"fair would judge"):
        check_params(raw)
    vanilla = {"vanilla": raw["variants"]["vanilla"]}
    raw.update({key: value or vanilla for key, value in changes.items()})
    set_at(raw, "online.variants", [name for name in raw["variants"] if name != "vanilla"])
    check_params(raw)


def test_online_training_does_not_play_greedily(raw):
    set_at(raw, "collect.temperature", 0)
    with pytest.raises(AriaError, match=r"collect\.temperature: 0 plays .* online\.variants: \[\]"):
        check_params(raw)
    set_at(raw, "collect.sampling", {"policy": {"temperature": 0.7}})
    check_params(raw)
    set_at(raw, "collect.sampling", {})
    set_at(raw, "online.variants", [])
    check_params(raw)


def test_online_training_plays_every_game_of_a_category(raw):
    raw["online"] |= {"games": 4, "repeats": 4, "weights": {}}
    with pytest.raises(AriaError, match=r"online\.games: 4 in groups of 4 .* none for \w+: take"):
        check_params(raw)
    set_at(raw, "online.games", 8)
    check_params(raw)
    set_at(raw, "online.weights", {"negotiation": 20})
    with pytest.raises(AriaError, match=r"leave none for bargaining"):
        check_params(raw)


def test_who_taught_in_no_warm_start_may_judge(raw):
    judges = {"alice": "scripted:best_response", "bob": "scripted:best_response"}
    raw["evaluate"]["games"]["bargaining"]["opponents"] = judges
    with pytest.raises(
        AriaError, match=r"best_response would judge.* the dialogues of the warm st"
    ):
        check_params(raw)
    set_at(raw, "base_model.warm_start", False)
    check_params(raw)


def test_who_plays_in_another_game_of_the_category_does_not_judge(raw):
    raw["logs"]["negotiation"]["players"]["bob"] = {"policy": 1, "scripted:fair": 1}
    with pytest.raises(
        AriaError,
        match=r"evaluate\.games\.bargaining\.opponents: fair would .* logs\.negotiation\.players",
    ):
        check_params(raw)


def test_whoever_answers_in_a_guessing_game_is_its_world(raw):
    raw["endpoints"] = {"x": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}
    set_at(raw, "logs.guess_my_city.players.oracle", "endpoint:x")
    set_at(raw, "evaluate.games.guess_my_city.opponents.oracle", "endpoint:x")
    check_params(raw)


def test_a_whole_model_is_judged_in_process(raw):
    raw["endpoints"] = {"x": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}
    set_at(raw, "evaluate.rollouts", "endpoint:x")
    assert check_params(raw).evaluate.servers == ("x",)
    raw["variants"]["whole"] = {"lora": None}
    with pytest.raises(AriaError, match=r"evaluate\.rollouts: whole has no lora"):
        check_params(raw)


def test_a_variant_that_does_not_load_hides_no_other_problem(raw):
    raw["endpoints"] = {"x": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}
    set_at(raw, "evaluate.rollouts", "endpoint:x")
    set_at(raw, "variants.aria.kl", "much")
    set_at(raw, "k", 1)
    with pytest.raises(AriaError, match=r"k: 1 is outside.*variants\.aria\.kl: input should be"):
        check_params(raw)


@pytest.mark.parametrize("where", ["policy.kl", "variants.aria.kl", "variants.aria.ppo.lam"])
def test_true_is_no_number(raw, where):
    raw["variants"]["aria"]["ppo"] = {}
    set_at(raw, where, True)
    with pytest.raises(AriaError, match=rf"{where}: input should be a number \(got True\)"):
        check_params(raw)


def test_what_is_not_used_is_not_refused(raw):
    set_at(raw, "online.variants", [])
    set_at(raw, "policy.lora", None)
    set_at(raw, "online.rollouts", "endpoint:x")
    own = {"source": "log.json", "category": "adversarial", "players": {"alice": "endpoint:x"}}
    set_at(raw, "logs.bargaining", own)
    check_params(raw)


def test_own_logs_have_any_name_and_train_nothing_unless_their_category_is_listed(raw):
    set_at(raw, "logs.support_chat", {"source": "chat.jsonl", "category": "support"})
    params = check_params(raw)
    assert params.logs_of("support") == ["support_chat"]
    assert params.games_of("support") == []
    assert "support_chat" not in [log for c in params.categories for log in params.logs_of(c)]
    assert not params.logs["support_chat"].is_played


def test_weights_where_dvc_would_not_see_them_change_are_refused(raw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("elsewhere", "models/language/real"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "models/language/linked").symlink_to(tmp_path / "elsewhere")
    for source in ("elsewhere", str(tmp_path / "elsewhere"), "models/language/linked"):
        set_at(raw, "base_model.source", source)
        with pytest.raises(AriaError, match=r"base_model\.source: .* would not see its weights"):
            check_params(raw)
    set_at(raw, "base_model.source", "models/language/real")
    check_params(raw)


def test_split_score_needs_an_eps_above_zero(raw):
    raw["select_k"]["eps"] = 0
    with pytest.raises(AriaError, match=r"select_k\.eps: input should be greater than 0"):
        check_params(raw)


def test_k_above_k_max_names_both(raw):
    raw["cluster"]["k_max"] = 30
    raw["k"] = 40
    with pytest.raises(AriaError, match=r"k: 40 is outside 2\.\.30 \(cluster\.k_max\)"):
        check_params(raw)


@pytest.mark.parametrize("text", ["1e-06", "1e-6", "0.000001", "1.0e-6"])
def test_small_numbers_as_dvc_writes_them(tmp_path, text):
    above, policy = (ROOT / "params.yaml").read_text().split("\npolicy:\n")
    path = tmp_path / "params.yaml"
    line = next(x for x in policy.splitlines() if x.startswith("  learning_rate: 0.0001 "))
    policy = policy.replace(line, f"  learning_rate: {text}", 1)
    path.write_text(f"{above}\npolicy:\n{policy}")
    assert load_params(path).policy.learning_rate == 1e-6


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(AriaError, match="is missing: run from the repository's root"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_text("k: [1")
    with pytest.raises(AriaError, match="is not valid YAML"):
        load_params(tmp_path / "params.yaml")
