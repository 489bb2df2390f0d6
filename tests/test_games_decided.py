"""What is embedded of adversarial games: the parsed moves, in words that grow with the amount."""

import logging
from functools import partial
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from tests.fake_game import collect_episodes

from aria_dvc.arena.assignments import assign
from aria_dvc.credit.settings import EMBEDDER
from aria_dvc.files import write_parquet
from aria_dvc.games.decided import ILLEGAL, decided_texts, tell_decisions
from aria_dvc.games.registry import get_game
from aria_dvc.intentions.cuts import cut_all
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.linkage import linkage
from aria_dvc.params import load_params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.players.scripted import scripted_player
from aria_dvc.records.episodes import BrokenOff, Episode, Record, Utterance
from aria_dvc.records.log_vectors import log_vectors_table
from aria_dvc.records.published import write_log
from aria_dvc.records.readers import read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import TURNS, read_table
from aria_dvc.records.tables import turns_table

ROOT = Path(__file__).parent.parent
BARGAINING = {"money": 10_000, "delta_a": 0.8, "delta_b": 1.0}
NEGOTIATION = {"seller_value": 0.8, "buyer_value": 1.2, "scale": 100}


def episode(game, config, *said, **record):
    roles = ("alice", "bob") * len(said)
    utterances = [Utterance(role, text) for role, text in zip(roles, said, strict=False)]
    info = Record(config=config, **record).to_json()
    return Episode("0", game, utterances, {"alice": 0.0, "bob": 1.0}, info=info)


def split(mine, steps=10):
    return "offer: " + " ".join(["mine"] * mine + ["yours"] * (steps - mine))


def price(tenths):
    return "price: " + " ".join(["high"] * tenths + ["low"] * (20 - tenths))


def test_offers_are_told_from_the_speakers_side_whatever_the_words():
    said = ("I keep 80%.", "Never, I want $7,500 of it!", "You get 5,000.", "I accept.")
    game = episode("bargaining", BARGAINING, *said)
    told = [split(8), split(8), split(5), "accept the offer"]
    assert decided_texts(game, "share") == told


def test_worth_counts_what_the_rounds_have_cost():
    game = episode("bargaining", BARGAINING, "I keep 80%.", "I want 50%.", "I keep 50%.")
    # In round 2 a half is worth 0.5 * 0.8 to Alice and 0.5 to Bob: 0.44 and 0.56 of both.
    # In round 3, 0.32 and 0.5: 0.39 for Alice.
    assert decided_texts(game, "worth") == [split(16, 20), split(11, 20), split(8, 20)]


def test_prices_are_told_in_tenths_of_the_scale_or_by_who_gains_more():
    said = ("I offer $110.", "I offer $84.", "I offer $900.", "I deal with John.")
    game = episode("negotiation", NEGOTIATION, *said)
    leave = "leave for the outside option"
    assert decided_texts(game, "share") == [price(11), price(8), price(20), leave]
    # Of the $40 that a trade is worth, $110 leaves Alice 30, and $84 leaves Bob 36.
    assert decided_texts(game, "worth") == [split(15, 20), split(18, 20), split(20, 20), leave]


@pytest.mark.parametrize(
    ("asked", "mine"),
    [("100.01", 11), ("100", 10), ("99.99", 9), ("102.99", 11), ("103", 12), ("80", 0), ("70", 0)],
)
def test_who_gains_more_is_never_rounded_away(asked, mine):
    """The trade is worth $40, a twentieth is $2, rounded half up."""
    offer = episode("negotiation", NEGOTIATION, f"I offer ${asked}.")
    assert decided_texts(offer, "worth")[0] == split(mine, 20)


def test_a_deal_that_suits_nobody_is_told_by_who_loses_less():
    """Worth 120 to the seller and 80 to the buyer: at $90, $30 are lost and $10."""
    config = {"seller_value": 1.2, "buyer_value": 0.8, "scale": 100}
    game = episode("negotiation", config, "I offer $100.", "I offer $90.")
    assert decided_texts(game, "worth") == [split(10, 20), split(15, 20)]


def test_a_rejection_of_the_last_offer():
    config = {**BARGAINING, "rounds": 1}
    told = decided_texts(episode("bargaining", config, "I keep 60%.", "I reject."), "share")
    assert told == [split(6), "reject the offer"]


def test_a_refused_last_text_is_no_move_and_a_refused_one_before_ends_what_is_known():
    forfeit = BrokenOff("bob", "no_move")
    known = episode("bargaining", BARGAINING, "I keep 60%.", "Hm.", failure=forfeit)
    assert decided_texts(known, "share") == [split(6), ILLEGAL]
    # What today's rules would read was a forfeit all the same.
    cut = episode("bargaining", BARGAINING, "I keep 60%.", "I accept.", failure=forfeit)
    assert decided_texts(cut, "share") == [split(6), ILLEGAL]
    odd = episode("bargaining", BARGAINING, "I keep 60%.", "Hm.", "I accept.")
    assert decided_texts(odd, "share") == [split(6), None, None]


@pytest.mark.parametrize(
    ("game", "config"),
    [("bargaining", {}), ("bargaining", {"money": -1}), ("support", BARGAINING)],
)
def test_unknown_rules_leave_the_text(game, config, caplog):
    log = [episode(game, config, "I keep 60%.", "I accept.")]
    with caplog.at_level(logging.WARNING):
        tell_decisions(log, "share")
    assert turns_table(log)["embedded"].tolist() == ["I keep 60%.", "I accept."]
    expected = game == "bargaining"
    assert ("the moves of 2 utterances are not known" in caplog.text) == expected


@pytest.mark.parametrize("game", ["bargaining", "negotiation"])
@pytest.mark.parametrize("messages", [True, False])
def test_every_move_of_played_games_is_known(game, messages, tmp_path):
    params, kind = load_params(), get_game(game)
    wanted = [a for a in assign(kind, 400, 0, "glee_full") if a.config["messages"] is messages]
    players = {"alice": scripted_player("mixed"), "bob": scripted_player("conceding")}
    played = collect_episodes(kind, wanted[:20], players, params.collect, params.pace)
    write_log(tmp_path / "log.jsonl", played)
    log = read_log(tmp_path / "log.jsonl", Reading(game=game))
    tell_decisions(log, "share")
    assert None not in [u.embedded for one in log for u in one.utterances]
    turns = turns_table(log)
    assert turns["text"].tolist() == [u.text for one in played for u in one.utterances]
    assert turns["embedded"].nunique() < 25
    tell_decisions(played, "text")
    assert turns_table(played)["embedded"].tolist() == turns["text"].tolist()


@pytest.mark.parametrize(
    ("told", "steps"), [(split, 10), (partial(split, steps=20), 20), (price, 20)]
)
def test_few_intentions_tell_small_demands_from_large_ones(told, steps):
    """What the words are for, with the packaged embedder: five clusters keep the order."""
    ends = ["accept the offer", "leave for the outside option"]
    texts = [told(filled) for filled in range(steps + 1)] + ends
    vectors = embed_texts(texts, EMBEDDER, 64, True, {})
    labels = cut_all(linkage(vectors, "ward"), 10).at(5).astype(int)
    offers = labels[: steps + 1]
    assert not set(offers) & set(labels[steps + 1 :])
    assert offers[round(0.8 * steps)] != offers[round(0.3 * steps)]
    demand = np.arange(steps + 1)
    within = sum(((demand - demand[offers == o].mean()) ** 2)[offers == o].sum() for o in {*offers})
    assert 1 - within / ((demand - demand.mean()) ** 2).sum() > 0.8


def test_the_stages_cluster_the_moves_and_keep_the_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    params = load_params(ROOT / "params.yaml")
    files = files_of(params, "bargaining")
    said = ("I keep 80%.", "Let us do halves, 50/50.", "I accept.")
    write_log(files.raw, [episode("bargaining", BARGAINING, *said)])
    seen: list[str] = []

    def vectors(texts, *_, **__):
        seen.extend(texts)
        return np.ones((len(texts), 2), np.float32)

    run_path(str(ROOT / "stages" / "prepare.py"))["main"](params, "bargaining")
    stage = run_path(str(ROOT / "stages" / "embed.py"))
    monkeypatch.setitem(stage["main"].__globals__, "embed_texts", vectors)
    turns = read_table(files.turns, TURNS)
    write_parquet(files.log_vectors, log_vectors_table([]))
    stage["main"](params, "bargaining")
    assert turns["text"].tolist() == list(said)
    # The half is more to Bob than to Alice, whom the first round has cost a fifth.
    assert seen == turns["embedded"].tolist() == [split(16, 20), split(11, 20), "accept the offer"]
