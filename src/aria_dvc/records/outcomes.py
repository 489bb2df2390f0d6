"""How a finished episode ended for a role."""

from __future__ import annotations

from aria_dvc.records.episodes import Episode


def won(episode: Episode, role: str) -> bool:
    """Whether the own utility is strictly above the other side's, or the game solved (sec. 4)."""
    utilities = episode.record.utilities
    others = [value for name, value in utilities.items() if name != role]
    if role not in utilities or not others:
        return episode.rewards.get(role) == 1.0
    return utilities[role] > others[0]
