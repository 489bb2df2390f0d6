"""Names of games, their categories and strategies, known without importing any game."""

from __future__ import annotations

from aria_dvc.errors import AriaError

PLAYABLE = {
    "bargaining": "adversarial",
    "negotiation": "adversarial",
    "twenty_questions": "single_agent",
    "guess_my_city": "single_agent",
}
# Dialogues of any kind that come as a log and belong to no game.
LOG_ONLY = {"two_party_log": "adversarial", "single_agent_log": "single_agent"}
# Strategies of scripted players (players/scripted.py).
STRATEGY_NAMES = (
    "conceding",
    "hard",
    "fair",
    "best_response",
    "mixed",
    "narrowing",
    "casual",
    "own",
)


def game_names() -> list[str]:
    return [*PLAYABLE, *LOG_ONLY]


def category_of(game: str) -> str:
    """ "adversarial" or "single_agent".

    Raises AriaError for an unknown name.
    """
    known = {**PLAYABLE, **LOG_ONLY}
    if game not in known:
        raise AriaError(f"unknown game {game}: use one of {', '.join(known)}")
    return known[game]
