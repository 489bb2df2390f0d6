"""The course of online training: one row an iteration, log and trained role.

The rows make `online.csv`, from which the learning curve is drawn: what the games were worth that
the policy of the moment played, by the games that it had learned from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd

from aria_dvc.player_specs import TRAINED_ONLINE
from aria_dvc.records.episodes import Episode
from aria_dvc.records.names import is_trained
from aria_dvc.records.outcomes import won

Rows = list[dict[str, Any]]
OUTCOMES = ("win_rate", "mean_reward", "refused_rate")
OF_A_ROLE = ("iteration", "log", "role", "episodes", "tokens", "groups", *OUTCOMES)
COLUMNS = ("iteration", "games", "log", "role", "episodes", *OUTCOMES)  # the first of online.csv


def role_rows(episodes: Sequence[Episode]) -> Rows:
    """How the policy fared in finished games, by log and role, in that order.

    Only its games against others count, where there are any: who plays with itself wins half of
    the games at the most, however well it plays.

    Returns:
        log, role, episodes, win_rate (see `won`), mean_reward, refused_rate (share of the episodes
        that ended by the role's own refused move), tokens (generated, in all games), groups
        (won/played games of each group, which share a configuration and players: `3/4 0/4`).
    """
    played: dict[tuple[str, str], list[Episode]] = defaultdict(list)
    by_itself: dict[tuple[str, str], list[Episode]] = defaultdict(list)
    for episode in episodes:
        roles = _trained(episode)
        for role in roles:
            (played if len(roles) == 1 else by_itself)[episode.game, role].append(episode)
    return [
        _row(*of, played[of] or by_itself[of], [*played[of], *by_itself[of]])
        for of in sorted({*played, *by_itself})
    ]


def _trained(episode: Episode) -> list[str]:
    """The roles of the policy; where no player is recorded, every role with a reward."""
    names = {role: player.name or "" for role, player in episode.record.players.items()}
    return [r for r in episode.rewards if is_trained(names.get(r, ""), TRAINED_ONLINE)]


def _row(
    log: str, role: str, episodes: Sequence[Episode], spoken_in: Sequence[Episode]
) -> dict[str, Any]:
    records, count = [episode.record for episode in episodes], len(episodes)
    said = (episode.record.tokens.get(role) for episode in spoken_in)
    refused = sum(bool(r.failure and r.failure.role == role) for r in records)
    groups: dict[str, list[bool]] = defaultdict(list)
    for episode in episodes:
        groups[episode.group_id].append(won(episode, role))
    return {
        "log": log,
        "role": role,
        "episodes": count,
        "win_rate": sum(won(episode, role) for episode in episodes) / count,
        "mean_reward": sum(episode.rewards[role] for episode in episodes) / count,
        "refused_rate": refused / count,
        "tokens": sum(tokens.completion for tokens in said if tokens),
        "groups": " ".join(f"{sum(wins)}/{len(wins)}" for wins in groups.values()),
    }


def figures_of(rows: Rows) -> dict[str, Any]:
    """The rows of one iteration as one: outcomes as `log/role/name`, then what all roles share."""
    outcomes = {f"{r['log']}/{r['role']}/{name}": r[name] for r in rows for name in OUTCOMES}
    shared = {name: value for name, value in rows[-1].items() if name not in OF_A_ROLE}
    return outcomes | shared


def compact(history: pd.DataFrame) -> dict[str, dict[str, dict[str, list[float]]]]:
    """log -> role -> name of an outcome -> its first and last value."""
    result: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(dict)
    for (log, role), rows in history.groupby(["log", "role"]):
        ends = rows.sort_values("iteration").iloc[[0, -1]]
        result[str(log)][str(role)] = {name: ends[name].tolist() for name in OUTCOMES}
    return dict(result)
