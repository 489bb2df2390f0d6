"""Scripted players: legal and varied words, an order of strength, the same for the same seed."""

from __future__ import annotations

import asyncio
import copy
import itertools
import random
import statistics
from collections import Counter
from fractions import Fraction

import pytest

from aria_dvc.errors import AriaError
from aria_dvc.games.alternating import ROLES
from aria_dvc.games.registry import get_game
from aria_dvc.players import phrases
from aria_dvc.players.base import PlayerFailure, Request
from aria_dvc.players.dialogues import play_out, scripted_dialogues
from aria_dvc.players.housekeeping import HOUSEKEEPERS
from aria_dvc.players.questioners import QUESTIONERS, guessed_by
from aria_dvc.players.scripted import OWN, ScriptedPlayer, embedded_oracle, scripted_player
from aria_dvc.players.strategies import (
    STRATEGIES,
    VARIED,
    Observation,
    Varied,
    equilibrium_share,
    strategy_of,
    winning_share,
)
from aria_dvc.records.names import MIXTURES, PLAYABLE, STRATEGY_NAMES

BARGAINING = get_game("bargaining")
NEGOTIATION = get_game("negotiation")


def test_every_strategy_can_be_named_in_params():
    assert set(STRATEGY_NAMES) == {*STRATEGIES, VARIED, *QUESTIONERS, *HOUSEKEEPERS, OWN}
    assert MIXTURES.keys() <= STRATEGIES.keys()


def table(game, rule="win"):
    """Mean reward of every strategy as the row against every other, both roles, half the grid."""
    grid = game.grids()["glee48"][::2]
    means = {}
    for one in STRATEGIES:
        for two in STRATEGIES:
            rewards = []
            for index, config in enumerate(grid):
                for pair in ((one, two), (two, one)):
                    match = game.start(config, rule)
                    play_out(match, dict(zip(ROLES, map(ScriptedPlayer, pair), strict=True)), index)
                    rewards.append(match.outcome.rewards[ROLES[pair.index(one)]])
            means[one, two] = statistics.mean(rewards)
    return means


@pytest.mark.parametrize("game", [BARGAINING, NEGOTIATION], ids=lambda game: game.name)
def test_the_best_response_is_the_strongest_at_winning(game):
    means = table(game)
    average = {one: statistics.mean(means[one, two] for two in STRATEGIES) for one in STRATEGIES}
    assert average["best_response"] == max(average.values())
    assert average["hard"] > average["conceding"]
    for rival in STRATEGIES:
        assert means["best_response", rival] >= means["conceding", rival]


@pytest.mark.parametrize("game", [BARGAINING, NEGOTIATION], ids=lambda game: game.name)
def test_the_best_response_earns_more_than_conceding(game):
    means = table(game, "utility")
    earned = {
        one: statistics.mean(means[one, two] for two in STRATEGIES)
        for one in ("best_response", "conceding")
    }
    assert earned["best_response"] > earned["conceding"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("game", [BARGAINING, NEGOTIATION], ids=lambda game: game.name)
def test_what_the_best_response_demands_wins(game, role):
    """However small the surplus is: nothing that it offers is an even deal after rounding."""
    offered = 0
    for config in game.grids()["glee48"]:
        for seed in range(10 if game.winnable(config, role) else 0):
            match, rival = game.start(config, "strict_win"), ScriptedPlayer("hard")
            while mover := match.to_move:
                player = ScriptedPlayer("best_response") if mover == role else rival
                said, before = player.text(match, mover, seed), len(match.offers)
                match.play(said)
                if mover != role or len(match.offers) == before:
                    continue
                accepted = copy.deepcopy(match)
                if accepted.outcome is None:
                    accepted.play("I accept.")
                    assert accepted.outcome.rewards[role] == 1, (config, said)
                    offered += 1
    assert offered > 100


def test_nobody_trades_at_a_loss():
    for match in scripted_dialogues("negotiation", 300, seed=3):
        assert min(match.outcome.utilities.values()) >= 0


@pytest.mark.parametrize("role", ROLES)
def test_every_phrase_is_read_as_it_is_meant(role):
    match = BARGAINING.start({"money": 10_000, "delta_a": 0.9, "delta_b": 0.9})
    trade = NEGOTIATION.start({"seller_value": 0.8, "buyer_value": 1.2, "scale": 10_000})
    match.offers, trade.offers = [Fraction(4_000)], [Fraction(11_000)]
    for phrase in phrases.ACCEPT:
        assert match.read(phrase, role).kind == trade.read(phrase, role).kind == "accept"
    for phrase in phrases.REJECT:
        assert match.read(phrase, role).kind == trade.read(phrase, role).kind == "reject"
    for phrase in phrases.OUTSIDE:
        assert trade.read(phrase, role).kind == "outside"
    said = set()
    for seed in range(2_000):
        rng, first = random.Random(seed), seed % 2 == 0
        offer = phrases.say_shares(rng, role, ("6,200", "3,800"), first)
        assert match.read(offer, role).value == 6_200, offer
        price = phrases.say_price(rng, role, "11,500", first)
        assert trade.read(price, role).value == 11_500, price
        assert max(len(offer.split()), len(price.split())) <= 20
        said |= {offer, price}
    assert len(said) > 150


def test_the_equilibrium_is_the_textbooks():
    patient = Observation(horizon=None, discount=0.9, rival_discount=0.8)
    assert equilibrium_share(patient, 1) == pytest.approx((1 - 0.8) / (1 - 0.9 * 0.8))
    last = Observation(horizon=4, discount=0.9, rival_discount=0.8)
    assert equilibrium_share(last, 4) == 1
    assert equilibrium_share(last, 3) == pytest.approx(1 - 0.8)
    assert equilibrium_share(last, 2) == pytest.approx(1 - 0.8 * (1 - 0.9))
    long = Observation(horizon=400, discount=0.9, rival_discount=0.8)
    assert equilibrium_share(long, 1) == pytest.approx(equilibrium_share(patient, 1))


def test_the_winning_share_makes_both_equal():
    seen = Observation(discount=0.9, rival_discount=0.8)
    share = winning_share(seen, 4)
    assert share * 0.9**3 == pytest.approx((1 - share) * 0.8**3)


@pytest.mark.parametrize("strategy", [*STRATEGIES, VARIED])
@pytest.mark.parametrize("game", [BARGAINING, NEGOTIATION], ids=lambda game: game.name)
def test_all_of_gleesgrid_is_played_legally(game, strategy):
    configs = game.grids()["glee_full"][::13]
    for index, config in enumerate(configs):
        match = game.start(config, ("win", "utility")[index % 2])
        play_out(match, dict.fromkeys(ROLES, ScriptedPlayer(strategy)), index)
        assert match.outcome.failure is None
        assert match.outcome.reason in ("agreement", "no_deal", "outside_option")


def test_without_information_the_rivals_value_changes_nothing():
    for strategy in (*STRATEGIES, VARIED):
        player = ScriptedPlayer(strategy)
        hidden = {"complete_information": False}
        said = {
            player.text(
                BARGAINING.start({"money": 100, "delta_a": 0.9, "delta_b": b, **hidden}), "alice", 5
            )
            for b in (0.8, 1.0)
        }
        offers = {
            player.text(
                NEGOTIATION.start({"seller_value": 1.0, "buyer_value": b, "scale": 100, **hidden}),
                "alice",
                5,
            )
            for b in (0.8, 1.5)
        }
        assert (len(said), len(offers)) == (1, 1)


def test_the_varied_are_others_in_every_episode_and_the_same_throughout_one():
    config = {"money": 100, "delta_a": 0.9, "delta_b": 0.9}

    def demands(episode_seed: int) -> list[float]:
        match, player = BARGAINING.start(config), ScriptedPlayer(VARIED)
        for turn in range(8):
            match.play(player.text(match, "alice", turn, episode_seed))
            match.play("I keep 99 and you get 1.")
        return [float(offer) for offer in match.offers[::2]]

    rows = [demands(seed) for seed in range(60)]
    assert demands(3) == rows[3]
    starts, ends = [row[0] for row in rows], [row[-1] for row in rows]
    assert min(starts) < 60 < 85 < max(starts)
    assert min(ends) < 40 < 80 < max(ends)
    for row in rows:  # every demand is of one line, give or take the noise
        assert all(after <= before + 5 for before, after in itertools.pairwise(row))
        steps = [before - after for before, after in itertools.pairwise(row)]
        assert max(steps) <= 12.5 + 5


def test_the_varied_run_from_soft_to_tough():
    players = [strategy_of(VARIED, seed, "bob") for seed in range(500)]
    assert strategy_of(VARIED, 7, "bob") == players[7] != strategy_of(VARIED, 7, "alice")
    for seen, low, high in ((0.3, 0.05, 0.4), (0.45, 0.4, 0.8), (0.55, 0.8, 1.0)):
        offer = Observation(round=1, horizon=20, received=[seen])
        accepted = [player(offer, random.Random(0)) is None for player in players]
        assert low < statistics.mean(accepted) < high
    for player in players:
        assert isinstance(player, Varied)
        assert player.floor <= player.start
        assert player.last <= player.threshold


@pytest.mark.parametrize("name", [name for name in PLAYABLE if get_game(name).grids()])
def test_dialogues_are_the_same_for_the_same_seed(name):
    texts = [[match.lines for match in scripted_dialogues(name, 12, seed)] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert all(match.outcome for match in scripted_dialogues(name, 12, 1))


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_deal_is_named_by_either_share_equally_often_and_means_the_same(role):
    match = BARGAINING.start({"money": 10_000, "delta_a": 0.9, "delta_b": 0.9})
    said = [phrases.share_text(one, role, ("60%", "40%")) for one in phrases.OFFERS]
    assert {match.read(text, role).value for text in said} == {6_000}
    own, other = ("60%", "40%") if role == "alice" else ("40%", "60%")
    assert [sum(share in text for text in said) for share in (own, other)] == [len(said) / 2] * 2


def test_replies_come_through_the_player_interface():
    match = BARGAINING.start({"money": 100, "delta_a": 0.9, "delta_b": 0.9})
    player = scripted_player("fair")
    request = Request("episode-1", "alice", match.messages("alice"), match, seed=7)
    first, again = (asyncio.run(player.reply(request)).text for _ in range(2))
    assert first == again
    match.play(first)
    player.finished("episode-1")
    asyncio.run(player.close())
    assert (player.name, player.model) == ("scripted:fair", "scripted")


def test_wrong_strategies_are_named():
    with pytest.raises(AriaError, match=r"did you mean best_response"):
        scripted_player("best_respond")
    match = BARGAINING.start({"money": 100, "delta_a": 0.9, "delta_b": 0.9})
    with pytest.raises(PlayerFailure, match="narrowing cannot play alice in bargaining"):
        ScriptedPlayer("narrowing").text(match, "alice", 0)
    quiz = get_game("twenty_questions").start({"target": "Cat"})
    with pytest.raises(PlayerFailure):
        ScriptedPlayer("fair").text(quiz, "agent", 0)
    with pytest.raises(PlayerFailure):
        asyncio.run(embedded_oracle().reply(Request("e", "agent", [], quiz, 0)))


@pytest.mark.parametrize(("name", "most"), [("twenty_questions", 11), ("guess_my_city", 6)])
def test_guessing_dialogues_are_short_and_won(name, most):
    for match in scripted_dialogues(name, 150, seed=5):
        asked = [text for role, text in match.lines if role == "agent"]
        assert match.outcome.reason == "solved"
        assert len(set(asked)) == len(asked) <= most, "no question is asked twice"
        assert max(len(text.split()) for text in asked) <= 15


@pytest.mark.parametrize(("name", "share"), [("twenty_questions", 0.25), ("guess_my_city", 0.5)])
def test_casual_questioners_win_some_early_and_lose_some(name, share):
    configs = get_game(name).grids()["default"]
    cast = {"agent": ScriptedPlayer("casual"), "oracle": ScriptedPlayer("oracle")}
    matches = [get_game(name).start(config) for config in configs]
    for number, match in enumerate(matches):
        play_out(match, cast, seed=number)
    solved = [m.outcome.details["questions"] for m in matches if m.outcome.reason == "solved"]
    assert share < len(solved) / len(matches) < 1
    assert len({text for m in matches for role, text in m.lines if role == "agent"}) > 100


@pytest.mark.parametrize("grid", ["small16", "small32"])
@pytest.mark.parametrize("name", ["twenty_questions", "guess_my_city"])
def test_warm_start_dialogues_run_evenly_over_a_small_grid(name, grid):
    configs = get_game(name).grids()[grid]
    for match in (matches := scripted_dialogues(name, 2 * len(configs), 1, grid)):
        asked = [text for role, text in match.lines if role == "agent"]
        guesses = {target for text in asked for target in guessed_by(type(match), text)}
        assert guesses <= set(match.targets), "nothing outside the grid is guessed"
    targets = Counter(match.config["target"] for match in matches)
    assert targets == {config["target"]: 2 for config in configs}


def test_unknown_grid_of_the_warm_start_is_one_line():
    with pytest.raises(AriaError, match=r"has no grid smal16 \(did you mean small16"):
        scripted_dialogues("twenty_questions", 1, 0, "smal16")


@pytest.mark.parametrize("grid", ["small16", "small32", "default"])
@pytest.mark.parametrize("name", ["twenty_questions", "guess_my_city"])
def test_steady_always_wins_by_the_same_tree(name, grid):
    game = get_game(name)
    next_move: dict[tuple, str] = {}
    cast = {"agent": ScriptedPlayer("steady"), "oracle": ScriptedPlayer("oracle")}
    for number, config in enumerate(game.grids()[grid]):
        match = game.start(config)
        play_out(match, cast, seed=number)
        assert match.outcome.reason == "solved"
        asked = [text for role, text in match.lines if role == "agent"]
        assert len(asked) == len(set(asked)), "no question twice"
        for place in range(0, len(match.lines), 2):
            said, seen = match.lines[place][1], tuple(match.lines[:place])
            assert next_move.setdefault(seen, said) == said
