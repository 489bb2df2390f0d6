from fractions import Fraction

import pytest
from benchmarks.demands import PERCENT, Asking, rate, table

from aria_dvc.games.registry import get_game
from aria_dvc.params import load_params
from aria_dvc.players.dialogues import play_out
from aria_dvc.players.scripted import ScriptedPlayer


@pytest.mark.parametrize(
    ("game", "role", "config", "said"),
    [
        ("bargaining", "alice", {"money": 100}, "I keep 54."),
        ("bargaining", "bob", {"money": 100}, "I keep 54."),
        ("negotiation", "alice", {"seller_value": 1, "buyer_value": 1.5, "scale": 100}, "$127"),
        ("negotiation", "bob", {"seller_value": 1, "buyer_value": 1.5, "scale": 100}, "$123"),
    ],
)
def test_the_same_share_is_asked_for_at_every_turn(game, role, config, said):
    kind = get_game(game)
    match = kind.start({**kind.grid("default")[0], **config})
    (rival,) = set(kind.roles) - {role}
    players = {role: Asking(Fraction(54, 100)), rival: ScriptedPlayer("hard")}
    play_out(match, players, seed=0)
    own = [text for who, text in match.lines if who == role]
    assert len(own) > 1
    assert all(said in text for text in own[:-1])


def test_who_takes_46_percent_decides_between_54_and_55():
    bargaining = [
        rate("bargaining", "glee48_unrated", Fraction(share, 100), "fair", 1)
        for share in (50, 54, 55)
    ]
    assert bargaining[1] > 0.8
    assert max(bargaining[0], bargaining[2]) < 0.5
    assert rate("negotiation", "surplus", Fraction(54, 100), "fair", 1) == 1


def test_a_table_has_a_row_for_every_share():
    judged = load_params().evaluate.games["negotiation"]
    first, head, *rows = table("negotiation", judged, 1)
    assert first == f"negotiation, {judged.grid}"
    assert head.split()[2:] == ["fair", "conceding", "mean", "varied"]
    assert [row.split()[0] for row in rows] == [str(percent) for percent in PERCENT]
    for row in rows:
        fair, conceding, mean, _ = map(float, row.split()[2:])
        assert mean == pytest.approx((fair + conceding) / 2, abs=0.01)
