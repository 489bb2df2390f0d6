"""The reward rules of the adversarial games: what an end is worth, and what players are told.

`win` compares utilities (the paper's), `strict_win` pays only what evaluation counts as won,
`soft_win` that and, for what is not won, up to a quarter by how narrowly, `utility` pays the own
utility, `margin` pays how far ahead a deal puts a player, so that a clear win is worth more than a
narrow one, and only a clear loss less than no deal. A forfeit is worth nothing to its speaker under
every rule.

Under `win` no deal is half a win, and a policy may settle for leaving every game at once. Under
`strict_win` one that hardly ever wins sees no difference between its games. Where an even deal is
half a win, it may settle for those, which are taken more often than better offers; where a clear
win is worth more than a narrow one, it is paid for holding out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from aria_dvc.errors import AriaError
from aria_dvc.records.names import REWARD_RULES
from aria_dvc.suggestions import did_you_mean

NO_DEAL = {"win": 0.5, "strict_win": 0.0, "soft_win": 0.0, "utility": 0.0, "margin": 0.25}
"""What an end without a deal is worth to each player."""
FORFEITED = 0.0
SLOPE = 0.1
"""Of `soft_win`: an even deal is worth 0.25, one that is behind by so large a part of both
utilities together 0.13."""
_AIMS = {
    "win": "Gain more than {rival}.",
    "strict_win": "Gain more than {rival}.",
    "soft_win": "Gain more than {rival}.",
    "utility": "Gain as much as you can.",
    "margin": "Gain as much more than {rival} as you can.",
}


def check_rule(game: str, rule: str) -> None:
    """Raises AriaError for an unknown reward rule, with the nearest one."""
    if rule not in REWARD_RULES:
        known = ", ".join(REWARD_RULES)
        raise AriaError(
            f"{game}: unknown reward rule {rule}{did_you_mean(rule, REWARD_RULES)}: use one of "
            f"{known}"
        )


def aim(rule: str, rival: str) -> str:
    """The sentence of a prompt that says what to try for; `rival` is the other's name."""
    return _AIMS[rule].format(rival=rival)


def compares(rule: str) -> bool:
    """Whether a rule pays for gaining more than the rival, and not for the own gain alone."""
    return rule != "utility"


def final_rewards(rule: str, utilities: Mapping[str, Fraction], deal: bool) -> dict[str, float]:
    """Final R of both roles by their utilities; in [0, 1] but under `utility`."""
    if not deal:
        return dict.fromkeys(utilities, NO_DEAL[rule])
    (one, first), (two, second) = utilities.items()
    return {one: _of_deal(rule, first, second), two: _of_deal(rule, second, first)}


def after_forfeit(rule: str, roles: Sequence[str], loser: str) -> dict[str, float]:
    """Final R where `loser` could not go on; to the other side it is an end without a deal."""
    return {role: FORFEITED if role == loser else NO_DEAL[rule] for role in roles}


def lead(own: Fraction, rival: Fraction) -> Fraction:
    """How far ahead a player is, as part of both utilities: from -1 to 1, and 0 if both are 0."""
    both = abs(own) + abs(rival)
    return (own - rival) / both if both else Fraction(0)


def _of_deal(rule: str, own: Fraction, rival: Fraction) -> float:
    if rule == "utility":
        return float(own)
    if rule == "strict_win":
        return float(own > rival)
    if rule == "soft_win":
        return 1.0 if own > rival else 0.5 / (1 + math.exp(-float(lead(own, rival)) / SLOPE))
    if rule == "margin":
        return min(1.0, max(0.0, float(Fraction(1, 2) + (own - rival) / 2)))
    return 0.5 + 0.5 * ((own > rival) - (own < rival))
