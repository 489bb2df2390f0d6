"""Bargaining and negotiation as state machines: order, money, horizon, formulas, forfeits."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aria_dvc.errors import AriaError
from aria_dvc.games.alternating import Move
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.registry import get_game
from aria_dvc.games.rewards import NO_DEAL, aim
from aria_dvc.records.names import GRIDS, REWARD_RULES

BARGAINING = get_game("bargaining")
NEGOTIATION = get_game("negotiation")
CONFIG_B = {"money": 100, "delta_a": 0.9, "delta_b": 0.8}
CONFIG_N = {"seller_value": 0.8, "buyer_value": 1.2, "scale": 10_000}


def play(match, *texts):
    for text in texts:
        match.play(text)
    return match


ILLEGAL = ["", "hm", "Bob: I accept", "Alice: I accept. Bob: Deal", "60/60", "\x00", "9" * 5000]
MOVES_B = st.one_of(
    st.integers(0, 100).map(lambda percent: f"I propose {percent}%/{100 - percent}%."),
    st.sampled_from(["I accept.", "I reject.", *ILLEGAL]),
)
MOVES_N = st.one_of(
    st.integers(0, 20_000).map(lambda price: f"I offer ${price}."),
    st.sampled_from(["I accept.", "I reject.", "I deal with John.", *ILLEGAL]),
)
DISCOUNT = st.sampled_from([0.8, 0.9, 0.95, 1.0])
FACTOR = st.sampled_from([0.8, 1.0, 1.2, 1.5])
SETTINGS = st.fixed_dictionaries(
    {
        "rounds": st.integers(1, 5),
        "complete_information": st.booleans(),
        "messages": st.booleans(),
        "rated_offers": st.booleans(),
    }
)


def drive(match, texts):
    """Play texts until the match ends; illegal ones must leave no trace."""
    legal = []
    for text in texts:
        if match.to_move is None:
            break
        before = (list(match.lines), match.to_move, list(match.offers))
        try:
            match.play(text)
            legal.append(text)
        except IllegalMove:
            assert before == (match.lines, match.to_move, match.offers)
    return legal


def check_common(match, legal):
    assert [role for role, _ in match.lines] == ["alice", "bob"] * (len(legal) // 2) + ["alice"] * (
        len(legal) % 2
    )
    assert len(match.offers) <= match.rounds
    assert len(match.lines) <= match.rounds + 1
    answerable = range(len(match.offers))  # an offer is a line, and the first lines are offers
    rated = match.config["complete_information"] and match.config["rated_offers"]
    assert list(match.told) == (list(answerable) if rated else [])
    outcome = match.outcome
    assert (outcome is None) == (match.to_move is not None)
    if outcome is None:
        return
    assert sum(outcome.rewards.values()) == pytest.approx(1)
    assert set(outcome.rewards.values()) <= {0.0, 0.5, 1.0}
    assert outcome.details["deal"] == (outcome.reason == "agreement")
    if outcome.reason != "agreement":
        assert outcome.utilities == {"alice": 0.0, "bob": 0.0}
        assert outcome.rewards == {"alice": 0.5, "bob": 0.5}
    if outcome.reason == "no_deal":
        assert outcome.details["round"] == match.rounds
    with pytest.raises(ValueError, match="over"):
        match.play("I accept.")
    json.dumps([match.config, outcome.details, outcome.utilities])


@settings(max_examples=150, deadline=None)
@given(st.lists(MOVES_B, max_size=12), DISCOUNT, DISCOUNT, st.sampled_from([100, 10**6]), SETTINGS)
def test_random_bargaining(texts, delta_a, delta_b, money, common):
    match = BARGAINING.start({"money": money, "delta_a": delta_a, "delta_b": delta_b, **common})
    check_common(match, drive(match, texts))
    if match.outcome and match.outcome.reason == "agreement":
        details = match.outcome.details
        t, p = details["round"], details["alice_share"]
        utilities = {"alice": p * delta_a ** (t - 1), "bob": (1 - p) * delta_b ** (t - 1)}
        assert details["alice_gain"] + details["bob_gain"] == money
        assert match.outcome.utilities == pytest.approx(utilities)
        assert details["efficiency"] == pytest.approx(sum(utilities.values()))
        assert details["fairness"] == pytest.approx(1 - 4 * (p - 0.5) ** 2)


@settings(max_examples=150, deadline=None)
@given(st.lists(MOVES_N, max_size=12), FACTOR, FACTOR, SETTINGS)
def test_random_negotiation(texts, seller, buyer, common):
    match = NEGOTIATION.start(
        {"seller_value": seller, "buyer_value": buyer, "scale": 10_000, **common}
    )
    check_common(match, drive(match, texts))
    if match.outcome is None:
        return
    details, trade = match.outcome.details, match.outcome.reason == "agreement"
    assert details["efficiency"] == float(buyer == seller or trade == (buyer > seller))
    if trade:
        q = details["price"] / 10_000
        utilities = {"alice": q - seller, "bob": buyer - q}
        assert match.outcome.utilities == pytest.approx(utilities)
        assert details["fairness"] == pytest.approx(1 - 4 * (q - (seller + buyer) / 2) ** 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(MOVES_B, max_size=8), st.lists(MOVES_N, max_size=8))
def test_without_messages_only_the_move_is_told(bargaining, negotiation):
    for game, config, texts in (
        (BARGAINING, CONFIG_B, bargaining),
        (NEGOTIATION, CONFIG_N, negotiation),
    ):
        silent = game.start({**config, "messages": False})
        talking = game.start(config)
        drive(silent, [f"{text} I am your king." if text[-1:] == "." else text for text in texts])
        assert "king" not in str(silent.lines)
        drive(talking, [text for _, text in silent.lines])
        assert talking.lines == silent.lines, "what is told is read as the same move"
        assert talking.offers == silent.offers


def test_every_grid_configuration_starts_and_is_distinct():
    for name, full in (("bargaining", 768), ("negotiation", 768)):
        grids = get_game(name).grids()
        assert [len(grids[key]) for key in ("default", "glee48", "glee_full")] == [48, 48, full]
        assert set(GRIDS[name]) == set(grids)
        for grid in grids.values():
            assert len({json.dumps(config, sort_keys=True) for config in grid}) == len(grid)
            for config in grid:
                match = get_game(name).start(config)
                assert match.config == config
                assert match.to_move == "alice"


def test_the_evaluation_grids_are_those_of_the_paper():
    for config in BARGAINING.grids()["glee48"] + NEGOTIATION.grids()["glee48"]:
        assert (config["rounds"], config["complete_information"], config["messages"]) == (
            20,
            True,
            True,
        )
    assert {c["rounds"] for c in BARGAINING.grids()["glee_full"]} == {12, 20, 25, 99}
    assert {c["rounds"] for c in NEGOTIATION.grids()["glee_full"]} == {1, 10, 20, 30}


def test_discounts_count_rounds_from_the_first():
    match = play(BARGAINING.start(CONFIG_B), "60/40", "I accept.")
    assert match.outcome.utilities == {"alice": 0.6, "bob": 0.4}
    match = play(BARGAINING.start(CONFIG_B), "60/40", "50/50", "55/45", "I accept.")
    assert match.outcome.details["round"] == 3
    assert match.outcome.utilities == pytest.approx({"alice": 0.55 * 0.81, "bob": 0.45 * 0.64})
    assert match.outcome.rewards == {"alice": 1.0, "bob": 0.0}


def test_equal_utilities_are_a_tie_exactly():
    match = NEGOTIATION.start({"seller_value": 0.8, "buyer_value": 1.2, "scale": 100})
    play(match, "I offer $100.", "Deal.")
    assert match.outcome.rewards == {"alice": 0.5, "bob": 0.5}
    match = play(BARGAINING.start({**CONFIG_B, "delta_b": 0.9}), "60/40", "50/50", "I accept")
    assert match.outcome.rewards == {"alice": 0.5, "bob": 0.5}


def test_the_utility_rule_rewards_the_own_utility():
    match = play(BARGAINING.start(CONFIG_B, "utility"), "60/40", "I accept.")
    assert match.outcome.rewards == {"alice": 0.6, "bob": 0.4}
    match = play(NEGOTIATION.start(CONFIG_N, "utility"), "I offer $13,000", "Deal.")
    assert match.outcome.rewards == pytest.approx({"alice": 0.5, "bob": -0.1})


def test_the_strict_rule_rewards_only_what_is_won():
    match = play(BARGAINING.start(CONFIG_B, "strict_win"), "60/40", "I accept.")
    assert match.outcome.rewards == {"alice": 1.0, "bob": 0.0}
    match = play(
        BARGAINING.start({**CONFIG_B, "delta_a": 0.9, "delta_b": 0.9}, "strict_win"),
        "50/50",
        "I accept.",
    )
    assert match.outcome.rewards == {"alice": 0.0, "bob": 0.0}


def test_the_soft_rule_is_the_strict_one_with_a_slope_for_what_is_not_won():
    match = play(BARGAINING.start(CONFIG_B, "soft_win"), "60/40", "I accept.")
    assert match.outcome.rewards == pytest.approx({"alice": 1.0, "bob": 0.05960}, abs=1e-5)
    equal = {"seller_value": 0.8, "buyer_value": 1.2, "scale": 100}
    match = play(NEGOTIATION.start(equal, "soft_win"), "I offer $100.", "Deal.")
    assert match.outcome.rewards == {"alice": 0.25, "bob": 0.25}
    match = play(NEGOTIATION.start(CONFIG_N, "soft_win"), "I offer $90,000", "Deal.")
    assert match.outcome.rewards == pytest.approx({"alice": 1.0, "bob": 0.0}, abs=1e-4)


def test_the_margin_rule_rewards_the_lead_within_bounds():
    match = play(BARGAINING.start(CONFIG_B, "margin"), "60/40", "50/50", "I accept.")
    assert match.outcome.rewards == pytest.approx({"alice": 0.525, "bob": 0.475})
    match = play(NEGOTIATION.start(CONFIG_N, "margin"), "I offer $11,000", "Deal.")
    assert match.outcome.rewards == pytest.approx({"alice": 0.6, "bob": 0.4})
    match = play(NEGOTIATION.start(CONFIG_N, "margin"), "I offer $90,000", "Deal.")
    assert match.outcome.rewards == {"alice": 1.0, "bob": 0.0}


@pytest.mark.parametrize("rule", REWARD_RULES)
def test_no_deal_is_worth_the_same_however_it_comes_about(rule):
    worth = dict.fromkeys(("alice", "bob"), NO_DEAL[rule])
    rejected = play(BARGAINING.start({**CONFIG_B, "rounds": 1}, rule), "60/40", "I reject.")
    left = play(NEGOTIATION.start(CONFIG_N, rule), "I offer $9,000", "I deal with John.")
    assert rejected.outcome.rewards == left.outcome.rewards == worth


def test_the_last_round_ends_the_game_even_with_another_offer():
    config = {**CONFIG_B, "rounds": 2}
    for answer in ("I reject.", "50/50", "No."):
        match = play(BARGAINING.start(config), "60/40", "40/60", answer)
        assert match.outcome.reason == "no_deal"
        assert match.lines[-1] == ("alice", answer)
    match = play(NEGOTIATION.start({**CONFIG_N, "rounds": 1}), "I offer $9,000", "I offer $8,500")
    assert match.outcome.reason == "no_deal"


LAST_B = (BARGAINING, {**CONFIG_B, "rounds": 1}, "I keep 60.")
LAST_N = (NEGOTIATION, {**CONFIG_N, "scale": 100, "rounds": 1}, "I offer $140.")


@pytest.mark.parametrize("messages", [True, False])
@pytest.mark.parametrize(
    ("last", "text", "reason"),
    [
        *((LAST_B, text, "agreement") for text in ("I'll take 40.", "You keep 60, I get 40.")),
        *((LAST_B, text, "agreement") for text in ("I take 40 and you keep 60.", "60/40")),
        (LAST_B, '{"alice_gain": 60, "bob_gain": 40}', "agreement"),
        *((LAST_N, text, "agreement") for text in ("I'll pay 140.", "I will buy it for $140.")),
        *((LAST_N, text, "agreement") for text in ("I'll take 140.", "I'm happy to pay $140.")),
        *((LAST_N, text, "agreement") for text in ("I'll pay your $140.", '{"price": 140}')),
        *((LAST_B, text, "no_deal") for text in ("I reject your offer. 60/40.", "60/40?")),
        (LAST_B, '{"decision": "reject", "alice_gain": 60, "bob_gain": 40}', "no_deal"),
        (LAST_B, "I get 40 only.", "no_deal"),
        *((LAST_N, text, "no_deal") for text in ("No. I offer $140.", "$140?", "I'll pay 120.")),
        *((LAST_N, text, "no_deal") for text in ("You are greedy. I offer $140.", "No deal.")),
        (LAST_N, '{"decision": "reject", "price": 140}', "no_deal"),
    ],
)
def test_the_standing_offer_named_again_in_the_last_round_is_taken(last, text, reason, messages):
    game, config, first = last
    match = play(game.start({**config, "messages": messages}), first, text)
    assert match.outcome.reason == reason
    again = play(game.start(match.config), *(line for _, line in match.lines))
    assert (again.lines, again.outcome) == (match.lines, match.outcome)


@pytest.mark.parametrize("rounds", [1, 2, 20])
@pytest.mark.parametrize(("game", "config", "first"), [LAST_B, LAST_N])
@pytest.mark.parametrize("text", ["No, I accept.", "No, deal.", "Nope, that works for me."])
def test_a_no_beside_an_acceptance_is_a_contradiction_in_every_round(
    game, config, first, text, rounds
):
    match = play(game.start({**config, "rounds": rounds}), first)
    with pytest.raises(IllegalMove) as refusal:
        match.play(text)
    assert refusal.value.kind == "contradiction"


@pytest.mark.parametrize(("game", "config", "first"), [LAST_B, LAST_N])
@pytest.mark.parametrize(
    "text",
    [
        *("I accept this, in part.", "We have a deal... almost.", "That works, for you."),
        *("I accept, my friend, that you need more.", "Done. I'm leaving.", "Well done."),
    ],
)
def test_what_is_almost_an_acceptance_ends_no_last_round(game, config, first, text):
    match = play(game.start(config), first)
    with pytest.raises(IllegalMove):
        match.play(text)
    assert match.outcome is None


@pytest.mark.parametrize(("game", "config", "first"), [LAST_B, LAST_N])
def test_the_standing_offer_named_again_before_is_an_own_offer(game, config, first):
    match = play(game.start({**config, "rounds": 2}), first)
    match.play("You keep 60." if game is BARGAINING else "I'll pay 140.")
    assert match.outcome is None
    assert match.offers == match.offers[:1] * 2


@pytest.mark.parametrize(
    ("game", "config", "texts", "kind"),
    [
        (BARGAINING, CONFIG_B, ["I accept."], "nothing_to_answer"),
        (BARGAINING, CONFIG_B, ["60/40", "I reject."], "missing_offer"),
        (NEGOTIATION, CONFIG_N, ["I deal with John."], "nothing_to_answer"),
        (NEGOTIATION, CONFIG_N, ["I offer $9,000.", "No deal."], "missing_offer"),
    ],
)
def test_moves_out_of_turn_are_refused(game, config, texts, kind):
    match = play(game.start(config), *texts[:-1])
    with pytest.raises(IllegalMove) as refusal:
        match.play(texts[-1])
    assert refusal.value.kind == kind


@pytest.mark.parametrize("rule", REWARD_RULES)
@pytest.mark.parametrize(("game", "config"), [(BARGAINING, CONFIG_B), (NEGOTIATION, CONFIG_N)])
def test_a_forfeit_is_worth_nothing_and_no_win_of_the_other(game, config, rule):
    match = game.start(config, rule)
    match.forfeit("unreadable", "blah\x00\n" * 1000 + "<|im_end|>")
    assert match.outcome.rewards == {"alice": 0.0, "bob": NO_DEAL[rule]}
    assert match.outcome.utilities == {"alice": 0.0, "bob": 0.0}
    assert (match.outcome.reason, match.outcome.failure.role) == ("failure", "alice")
    assert match.outcome.failure.kind == "unreadable"
    assert len(match.lines) == 1
    assert match.lines[0][0] == "alice"
    assert len(match.lines[0][1]) <= 1000
    assert "\x00" not in match.lines[0][1]
    assert match.to_move is None
    first = "I keep 60." if game is BARGAINING else "I offer $9,000."
    silent = play(game.start(config, rule), first)
    silent.forfeit("endpoint_unreachable")
    assert silent.lines == [("alice", first)]
    assert silent.outcome.rewards == {"alice": NO_DEAL[rule], "bob": 0.0}


def test_prompts_tell_what_a_player_may_know():
    rich = BARGAINING.start({**CONFIG_B, "delta_b": 0.95, "rounds": 12})
    assert "costs you 10%, Bob 5%." in rich.system_prompt("alice")
    assert "costs you 5%, Alice 10%." in rich.system_prompt("bob")
    assert "12 rounds" in rich.system_prompt("bob")
    poor = BARGAINING.start({**CONFIG_B, "rounds": 25, "complete_information": False})
    assert "costs you 10%. It may end at any time." in poor.system_prompt("alice")
    assert "20%" not in poor.system_prompt("alice")
    assert "25" not in poor.system_prompt("alice")
    match = NEGOTIATION.start({**CONFIG_N, "complete_information": False, "rounds": 30})
    assert "Worth $8,000 to you." in match.system_prompt("alice")
    assert "12,000" not in match.system_prompt("alice")
    assert "8,000" not in match.system_prompt("bob")
    assert "30" not in match.system_prompt("bob")
    open_match = NEGOTIATION.start(CONFIG_N)
    assert "$8,000 to Alice: you gain more below $10,000." in open_match.system_prompt("bob")
    assert "$12,000 to Bob: you gain more above $10,000." in open_match.system_prompt("alice")
    useless = NEGOTIATION.start({**CONFIG_N, "buyer_value": 0.8})
    assert "$8,000 to Bob: no price suits both." in useless.system_prompt("alice")


@pytest.mark.parametrize("rule", REWARD_RULES)
@pytest.mark.parametrize("role", ["alice", "bob"])
@pytest.mark.parametrize("game", [BARGAINING, NEGOTIATION])
def test_games_share_a_prefix_that_holds_all_rules(game, role, rule):
    prompts = [game.start(c, rule).system_prompt(role) for c in game.grids()["glee_full"]]
    aimed = aim(rule, {"alice": "Bob", "bob": "Alice"}[role])
    heads = {prompt.partition(aimed)[0] for prompt in prompts}
    (head,) = heads
    for told in (f"You are {role.capitalize()}", '"I accept."', "I offer", "No deal, no gain."):
        assert told in head
    assert max(len(prompt) for prompt in prompts) < 2 * len(head + aimed)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 100), DISCOUNT, DISCOUNT, st.integers(1, 4))
def test_who_is_told_to_gain_more_by_an_offer_does_if_it_accepts(share, own, rival, rounds):
    match = BARGAINING.start({"money": 100, "delta_a": own, "delta_b": rival})
    for _ in range(rounds):
        match.play(f"I propose {share}%/{100 - share}%.")
    hearer, speaker = match.to_move, match.lines[-1][0]
    (_, said), told = match.lines[-1], match.told[rounds - 1]
    assert match.messages(hearer)[-1]["content"] == f"{said}\n({told})"
    assert match.messages(speaker)[-1]["content"] == said
    gained = play(match, "I accept.").outcome.utilities
    verdict = "gain" if gained[hearer] > gained[speaker] else "not gain"
    assert told == f"You would {verdict} more than {speaker.capitalize()}."


def test_an_answer_in_negotiation_is_told_from_which_price_on_it_gains_more():
    prices = ("I offer $11,000.", "I offer $9,000.", "I offer $10,000.", "I offer $12,000.")
    match = play(NEGOTIATION.start(CONFIG_N), *prices)
    assert match.told == {
        0: "You would not gain more than Alice; you gain more below $10,000.",
        1: "You would not gain more than Bob; you gain more above $10,000.",
        2: "You would not gain more than Alice; you gain more below $10,000.",
        3: "You would gain more than Bob; you gain more above $10,000.",
    }


@pytest.mark.parametrize("hidden", [{"rated_offers": False}, {"complete_information": False}])
@pytest.mark.parametrize("game", [BARGAINING, NEGOTIATION])
def test_nobody_is_told_what_an_offer_is_worth_who_may_not_know(game, hidden):
    match = game.start({**game.grid("glee48")[0], **hidden})
    play(match, "I offer you $90.", "I offer you $80.")
    assert match.told == {}
    assert match.messages("bob")[1]["content"] == "I offer you $90."


@pytest.mark.parametrize("game", [BARGAINING, NEGOTIATION])
def test_offers_are_compared_for_those_who_are_to_gain_more_than_the_other(game):
    told = {rule: bool(play(game.start(game.grid("glee48")[0], rule), "I offer you $90.").told)
            for rule in REWARD_RULES}  # fmt: skip
    assert told == {rule: "more than" in aim(rule, "Bob") for rule in REWARD_RULES}
    assert not told["utility"]


def test_unrated_grids_differ_in_nothing_else():
    for game in (BARGAINING, NEGOTIATION):
        grids = game.grids()
        rated = [name for name in grids if f"{name}_unrated" in grids]
        assert {*rated, *(f"{name}_unrated" for name in rated)} == grids.keys() - {"default"}
        for name in rated:
            plain, unrated = game.grid(name), game.grid(f"{name}_unrated")
            assert [{**config, "rated_offers": True} for config in unrated] == list(plain)


def test_hints_do_not_tell_the_rivals_value():
    hints = []
    for buyer in (1.0, 1.5):
        match = NEGOTIATION.start({**CONFIG_N, "buyer_value": buyer, "complete_information": False})
        for text in ("I offer 99999999999", "hm", "I accept", "1 or 2"):
            with pytest.raises(IllegalMove) as refusal:
                match.play(text)
            hints.append(refusal.value.hint)
    assert hints[:4] == hints[4:]


def test_each_side_sees_the_same_lines_from_its_own_side():
    match = play(BARGAINING.start(CONFIG_B), "60/40", "40/60")
    assert [m["role"] for m in match.messages("alice")] == ["system", "user", "assistant", "user"]
    assert [m["role"] for m in match.messages("bob")] == ["system", "user", "assistant"]


@pytest.mark.parametrize(
    ("game", "config", "message"),
    [
        ("bargaining", {"delta_a": 0.9, "delta_b": 0.9}, "no money"),
        ("bargaining", {**CONFIG_B, "mony": 3}, "did you mean money"),
        ("bargaining", {**CONFIG_B, "delta_a": 1.2}, "delta_a is 1.2"),
        ("bargaining", {**CONFIG_B, "delta_a": float("nan")}, "delta_a is nan"),
        ("bargaining", {**CONFIG_B, "money": "100"}, "money is '100'"),
        ("bargaining", {**CONFIG_B, "rounds": 0}, "rounds is 0"),
        ("bargaining", {**CONFIG_B, "rounds": True}, "rounds is True"),
        ("bargaining", {**CONFIG_B, "messages": 1}, "messages is 1"),
        ("negotiation", {**CONFIG_N, "scale": 0}, "scale is 0"),
        ("negotiation", CONFIG_B, "unknown key money"),
    ],
)
def test_wrong_configurations_are_one_clear_line(game, config, message):
    with pytest.raises(AriaError, match=message):
        get_game(game).start(config)


def test_wrong_names_are_met_with_the_nearest():
    with pytest.raises(AriaError, match="did you mean bargaining"):
        get_game("bargainning")
    with pytest.raises(AriaError, match=r"unknown reward rule margn \(did you mean margin\?\)"):
        BARGAINING.start(CONFIG_B, "margn")


def test_money_is_exact_even_with_decimals():
    match = play(BARGAINING.start({**CONFIG_B, "messages": False}), "I take 33.3333.")
    assert match.lines == [("alice", "I keep 33.3333.")]
    assert match.offers == [Fraction("33.3333")]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([1, 7.123456, 99.99, 100, 100.1234, 12_345, 10**6, 10**11]),
    st.sampled_from(["alice", "bob"]),
    st.data(),
)
def test_what_is_told_of_a_move_is_read_as_that_move(whole, role, data):
    bargain = BARGAINING.start({**CONFIG_B, "money": whole})
    negotiate = NEGOTIATION.start({**CONFIG_N, "scale": whole})
    for match, most in ((bargain, bargain.money), (negotiate, negotiate.highest_price)):
        steps = int(most * 10**4)
        near_zero = st.integers(0, min(steps, 10**4))
        near_all = st.integers(max(0, steps - 10**4), steps)
        value = Fraction(data.draw(st.integers(0, steps) | near_zero | near_all), 10**4)
        match.offers = [most / 3]
        for move in (Move("offer", value), Move("accept"), Move("reject")):
            assert match.read(match.say(move, role), role) == move
    exit_ = Move("outside")
    assert negotiate.read(negotiate.say(exit_, role), role) == exit_


def test_a_share_below_one_can_be_replayed():
    match = play(BARGAINING.start({**CONFIG_B, "messages": False}), "I offer you 99.5.")
    assert match.lines == [("alice", "I offer you 99.5.")]
    assert play(BARGAINING.start(match.config), match.lines[0][1]).offers == match.offers
