"""What people and models say in the bargaining games: a corpus by hand, and what it must not mean.

`tests/data/utterances_*.csv`: `standing` is the offer on the table and `amount` what is offered (in
bargaining both as Alice's gain); `whole` the sum or the scale of prices; `kind` is plain, unclear
(to be refused), or near_acceptance (sounds like an acceptance and is none). `held_out` rows were
put aside while the parser was written: a tenth of the unseen plain ones is refused, none misread.
"""

from __future__ import annotations

import csv
import re
from fractions import Fraction
from pathlib import Path

import pytest

from aria_dvc.games import parsing
from aria_dvc.games.alternating import ROLES, Move
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.registry import get_game

DATA = Path(__file__).parent / "data"
GAMES = ("bargaining", "negotiation")
BEFORE = [", not", ", minus 10%", ", plus 5 more", " if you give me more", " unless you object"]
BEFORE += [", but I want more", " once you agree", ", except the price", " or not", ", maybe"]
AHEAD = ["I doubt it, ", "If you add more, ", "I do not think that ", "Never say ", "Suppose that "]


def utterances(game):
    return list(csv.DictReader((DATA / f"utterances_{game}.csv").read_text("utf-8").splitlines()))


def match_of(game, whole, offers):
    config = {
        "bargaining": {"money": whole, "delta_a": 0.9, "delta_b": 0.95},
        "negotiation": {"seller_value": 0.8, "buyer_value": 1.5, "scale": whole},
    }[game]
    match = get_game(game).start(config)
    match.offers = [Fraction(offer) for offer in offers]
    return match


def meaning(game, row, text=None):
    """(kind, amount) as in the corpus; `unclear` for a refusal."""
    standing = Fraction(row["standing"])
    earlier = [standing / 2] if row["role"] == "alice" else []
    match = match_of(game, int(row["whole"]), [*earlier, standing])
    try:
        move = match.read(parsing.utterance(text or row["text"], row["role"]), row["role"])
    except IllegalMove:
        return "unclear", None
    return move.kind, move.value


def meant(row):
    return row["meaning"], Fraction(row["amount"]) if row["amount"] else None


@pytest.mark.parametrize("game", GAMES)
def test_plain_utterances_are_read_and_none_is_misread(game):
    rows = utterances(game)
    wrong = [(row, found) for row in rows if (found := meaning(game, row)) != meant(row)]
    assert not [(row["text"], found) for row, found in wrong if found[0] != "unclear"]
    unread = {held: [r for r, _ in wrong if r["held_out"] == held] for held in ("yes", "no")}
    plain = {
        held: [row for row in rows if (row["kind"], row["held_out"]) == ("plain", held)]
        for held in ("yes", "no")
    }
    for held, least in (("no", 0.98), ("yes", 0.87)):
        share = 1 - len(unread[held]) / len(plain[held])
        print(f"{game}, held out {held}: {share:.3f} of {len(plain[held])} plain ones are read")
        assert share >= least, [row["text"] for row in unread[held]]
    assert len(unread["yes"]) + len(unread["no"]) <= 0.03 * sum(map(len, plain.values()))


@pytest.mark.parametrize("game", GAMES)
def test_the_corpus_is_large_and_has_near_acceptances(game):
    rows = utterances(game)
    keys = {(row["text"], row["role"], row["whole"], row["standing"]) for row in rows}
    assert len(keys) == len(rows) > 300
    assert sum(row["kind"] == "near_acceptance" for row in rows) > 60
    plain = [row for row in rows if row["kind"] == "plain"]
    assert sum(row["held_out"] == "yes" for row in plain) > 0.15 * len(plain)
    for row in rows:
        assert (row["kind"] == "plain") == (row["meaning"] != "unclear")


@pytest.mark.parametrize("game", GAMES)
def test_an_acceptance_that_is_taken_back_is_none(game):
    for row in utterances(game):
        if row["meaning"] == "accept" and not re.search(r"[.!] \S", row["text"]):
            said = row["text"].rstrip(".!")
            taken = [f"{said}{tail}." for tail in BEFORE]
            taken += [f"{head}{said[0].lower()}{said[1:]}." for head in AHEAD]
            for text in taken:
                assert meaning(game, row, text)[0] != "accept", text


@pytest.mark.parametrize("game", GAMES)
def test_an_acceptance_that_names_another_amount_is_none(game):
    for row in utterances(game):
        if row["meaning"] == "accept" and re.search(r"\d", row["text"]):
            row["standing"] = str(Fraction(row["standing"]) * Fraction(3, 4))
            assert meaning(game, row)[0] != "accept", row["text"]


@pytest.mark.parametrize(
    ("offers", "text", "accepted"),
    [
        ([40], "I accept your first offer.", True),
        ([60, 40], "I accept your first offer.", True),
        ([60, 40, 55, 45], "I accept your first offer.", False),
        ([60, 40], "I accept the first offer.", False),
        ([60, 40, 55, 45], "I accept your previous offer.", False),
        ([60, 40, 55, 45], "I accept the original proposal.", False),
        ([60, 40, 55, 45], "I accept your 1st offer.", False),
        ([60, 40, 55, 45], "I accept your last offer.", True),
        ([60, 40, 55, 45], "I accept your new offer.", True),
    ],
)
@pytest.mark.parametrize("game", GAMES)
def test_only_the_offer_on_the_table_can_be_accepted(game, offers, text, accepted):
    match = match_of(game, 100, offers)
    if accepted:
        assert match.read(text, "alice").kind == "accept"
    else:
        with pytest.raises(IllegalMove) as refusal:
            match.read(text, "alice")
        assert refusal.value.kind == "earlier_offer"


@pytest.mark.parametrize("whole", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_pair_is_in_percent_and_alices_share_comes_first(whole, role):
    match = match_of("bargaining", whole, [whole // 2])
    for text in ("60/40", "60 / 40", "60-40", "I propose a 60/40 split.", "Let's do 60:40."):
        assert match.read(text, role).value == Fraction(60, 100) * whole
    assert "60/40 is 60 for Alice." in match.system_prompt(role)
    mine = match.read("I propose 60/40 in my favor.", role).value
    assert mine == Fraction(60 if role == "alice" else 40, 100) * whole


@pytest.mark.parametrize(
    ("game", "whole", "text", "value"),
    [
        ("bargaining", 1_000_000, "I keep 600.000.", 600_000),
        ("bargaining", 1_000_000, "I keep 1.000.000.", 1_000_000),
        ("bargaining", 10_000, "I keep 6.000.", 6_000),
        ("bargaining", 10_000, "I keep 33.333%.", Fraction("3333.3")),
        ("bargaining", 10_000, "I keep 6000.50.", Fraction("6000.5")),
        ("bargaining", 100, "I keep 33.333.", "unclear_number"),
        ("bargaining", 1_000_000, "I keep 0.600.", "unclear_number"),
        ("bargaining", 1_000_000, "I keep 0.6 million.", 600_000),
        ("bargaining", 1_000_000, "I keep 1.250k.", "unclear_number"),
        ("bargaining", 100, "I keep 1.000.000.", "absurd_number"),
        ("negotiation", 10_000, "I offer $12.000.", 12_000),
        ("negotiation", 100, "I offer $12.000.", "unclear_number"),
        ("negotiation", 1_000_000, "I offer 1.100.000.", 1_100_000),
    ],
)
def test_a_dot_before_three_digits(game, whole, text, value):
    match = match_of(game, whole, [whole // 2])
    if isinstance(value, str):
        with pytest.raises(IllegalMove) as refusal:
            match.read(text, "alice")
        assert refusal.value.kind == value
    else:
        assert match.read(text, "alice").value == value


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("whole", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("role", ROLES)
def test_what_is_said_for_a_move_is_read_as_that_move(game, whole, role):
    match = match_of(game, whole, [whole // 2])
    for share in ("0.33125", "0.5", "0.123", "0.6"):
        offer = Move("offer", whole * Fraction(share))
        assert match.read(match.say(offer, role), role) == offer


def test_of_what_was_written_without_a_look_at_the_parser_most_is_read_and_nothing_misread():
    """`utterances_blind.csv`, in sets by several writers, in the manner of large and small models,
    of people in a chat and in a laboratory; on the table are $4,000 for Alice of $10,000, and a
    price of $140.

    All were looked at when the parser was mended, the last three also to find what must not be
    read: what reads more of them in general, misreads others.
    """
    table = {
        "bargaining": {"role": "alice", "whole": "10000", "standing": "4000"},
        "negotiation": {"role": "bob", "whole": "100", "standing": "140"},
    }
    least = {
        "bargaining": [0.80, 0.89, 0.85, 0.54, 0.77, 0.53],
        "negotiation": [0.85, 0.80, 0.76, 0.58, 0.65, 0.54],
    }
    rows = list(csv.DictReader((DATA / "utterances_blind.csv").read_text("utf-8").splitlines()))
    sets = range(len(least["bargaining"]))
    read: dict[tuple[str, int], list[bool]] = {(game, n): [] for game in least for n in sets}
    for row in rows:
        on = table[row["game"]]
        found = meaning(row["game"], {**row, **on})
        repeated = row["meaning"] == "accept" and found == ("offer", Fraction(on["standing"]))
        if row["meaning"] != "unclear":
            read[row["game"], int(row["set"]) - 1].append(found == meant(row))
        assert found in (meant(row), ("unclear", None)) or repeated, row["text"]
    shares = {of: sum(found) / len(found) for of, found in read.items()}
    assert all(share >= least[game][number] for (game, number), share in shares.items()), shares
