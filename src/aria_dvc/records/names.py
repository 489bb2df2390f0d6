"""Names of games, players, strategies and settings, known without importing any of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

ADVERSARIAL = "adversarial"
PLAYABLE = {
    "bargaining": ADVERSARIAL,
    "negotiation": ADVERSARIAL,
    "twenty_questions": "single_agent",
    "guess_my_city": "single_agent",
    "household": "household",
    "alfworld": "household",
}
# How the end of an adversarial game is paid (games/rewards.py).
REWARD_RULES = ("win", "strict_win", "soft_win", "utility", "margin")
# Games whose environment answers in yes, no or neither: only their questions are clustered.
FIXED_ANSWERS = frozenset({"twenty_questions"})
# Packaged tables of the targets of a game, by their package under `oracles`.
KNOWLEDGE = {"guess_my_city": "city", "twenty_questions": "objects"}
PARTNERS = ("alice", "bob")
# Roles of a game that act and are rewarded, and that of the environment which answers them.
GAME_ROLES: dict[str, tuple[str, ...]] = {
    game: PARTNERS if category == ADVERSARIAL else ("agent",) for game, category in PLAYABLE.items()
}
ENVIRONMENTS = {"twenty_questions": "oracle", "guess_my_city": "oracle"}
_GLEE_GRIDS = ("glee48", "glee_full", "glee48_unrated", "glee_full_unrated")
_GUESSING_GRIDS = ("default", "small16", "small32")
# Named grids of configurations; those of alfworld are folders.
GRIDS = {
    "bargaining": ("default", *_GLEE_GRIDS),
    "negotiation": ("default", *_GLEE_GRIDS, "surplus", "surplus_unrated"),
    "twenty_questions": _GUESSING_GRIDS,
    "guess_my_city": _GUESSING_GRIDS,
    "household": ("default", "train", "unseen", "small", "small_train"),
}
_BARGAINERS = ("conceding", "hard", "fair", "best_response", "mixed", "varied")
_QUESTIONERS = ("narrowing", "steady", "casual")
# Strategies of scripted players (players/scripted.py) by game.
GAME_STRATEGIES = {
    "bargaining": _BARGAINERS,
    "negotiation": _BARGAINERS,
    "twenty_questions": _QUESTIONERS,
    "guess_my_city": _QUESTIONERS,
    "household": ("expert", "noisy_expert"),
    "alfworld": ("own",),
}
STRATEGY_NAMES = tuple(dict.fromkeys(name for names in GAME_STRATEGIES.values() for name in names))
# Strategies that play every turn by one of others.
MIXTURES = {"mixed": ("conceding", "hard", "fair", "best_response")}
# Who plays the dialogues of adversarial games from which a warm start learns, as often as here.
WARM_START_CAST = ("varied", "varied", "varied", "best_response")
# Kinds of player who may have a rewarded role: what stands before the colon of a spec.
PlayerKind = Literal["policy", "base", "scripted", "endpoint"]
# What the contributions of an episode are fitted to (credit/methods/progress.py).
ProgressObjective = Literal["sum", "spread", "prefix"]
# What makes two steps comparable (credit/methods/gigpo.py).
Anchor = Literal["observation", "state", "intentions"]


def kind_of(recorded: str) -> str | None:
    """What `prepare.players` calls the player of that recorded name; None for a stranger."""
    kind = recorded.partition(":")[0]
    return kind if kind in get_args(PlayerKind) else None


def is_trained(recorded: str, kinds: Collection[str]) -> bool:
    """Whether training is on what the player of that recorded name says: on a stranger's too."""
    return kind_of(recorded) in (*kinds, None)
