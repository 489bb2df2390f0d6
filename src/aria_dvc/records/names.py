"""Names of games, their categories and strategies, known without importing any game."""

from __future__ import annotations

ADVERSARIAL = "adversarial"
PLAYABLE = {
    "bargaining": ADVERSARIAL,
    "negotiation": ADVERSARIAL,
    "twenty_questions": "single_agent",
    "guess_my_city": "single_agent",
}
# How the end of an adversarial game is paid (games/rewards.py).
REWARD_RULES = ("win", "utility", "margin")
# Games whose environment answers in yes, no or neither: only their questions are clustered.
FIXED_ANSWERS = frozenset({"twenty_questions"})
# Strategies of scripted players (players/scripted.py).
STRATEGY_NAMES = (
    "conceding",
    "hard",
    "fair",
    "best_response",
    "mixed",
    "narrowing",
    "steady",
    "casual",
    "own",
)
