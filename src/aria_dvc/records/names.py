"""Names of games, categories, strategies and players, known without importing any of them."""

from __future__ import annotations

from collections.abc import Collection

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
# Strategies of scripted players (players/scripted.py).
STRATEGY_NAMES = (
    "conceding",
    "hard",
    "fair",
    "best_response",
    "mixed",
    "varied",
    "narrowing",
    "steady",
    "casual",
    "expert",
    "noisy_expert",
    "own",
)
# Strategies that play every turn by one of others.
MIXTURES = {"mixed": ("conceding", "hard", "fair", "best_response")}
# Kinds of player who may have a rewarded role: what stands before the colon of a spec.
PLAYER_KINDS = ("policy", "base", "scripted", "endpoint")


def kind_of(recorded: str) -> str | None:
    """What `prepare.players` calls the player of that recorded name; None for a stranger."""
    kind = recorded.partition(":")[0]
    return kind if kind in PLAYER_KINDS else None


def is_trained(recorded: str, kinds: Collection[str]) -> bool:
    """Whether training is on what the player of that recorded name says: on a stranger's too."""
    return kind_of(recorded) in (*kinds, None)
