"""ARIA as a data-versioned pipeline: intentions, aggregated rewards and policies with DVC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

# Importing anything below `aria_dvc.credit` binds that package to the name `credit`, once. It
# happens here, before the function takes the name for good; the package is reached by imports.
from aria_dvc.credit.settings import METHOD, Aggregate, CreditSettings

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.api import AnyLog

__all__ = ["__version__", "credit", "intention_table"]
__version__ = "0.1.0"


def credit(
    log: AnyLog,
    *,
    method: str = METHOD,
    k: int | None = None,
    gamma: float = Aggregate.gamma,
    folds: int = Aggregate.folds,
    seed: int = CreditSettings.seed,
    score: AnyLog | None = None,
    embed: str | None = None,
    game: str | None = None,
    agent: str | Sequence[str] = (),
    group_by: str | None = None,
    outcome: Literal["win_test", "recorded"] = "win_test",
    moves: bool = True,
) -> pd.DataFrame:
    """What every action of a log of finished dialogues was worth (paper sec. 3.3).

        credit = aria_dvc.credit("games.json")

    Args:
        log: a path or several, a list of episodes (`[{"messages": [{"role": .., "content": ..}],
            "rewards": {role: R}}, ...]` or any other layout of a log file), or a frame of one row
            an utterance: episode_id, role, text, reward (its role's final reward, in all of the
            role's rows; null for a role that does not act) and, if known, position, group_id,
            embedding.
        method: any of `aria credit --help`, whose default is the same.
        k: number of intentions for aria and shrinkage; None for that of the best silhouette.
        gamma: discount per own turn. folds, seed: how episodes are held out.
        score: credit the actions of this log instead, without looking at its outcomes.
        embed: embedding model; None for the log's own embeddings, else the packaged model.
        game: what the log is of; None for what it says.
        agent: who is credited, by role or name (`"assistant"`); by default every role with a
            reward. group_by: the field or column whose value is an episode's group; by default
            what the log has. Whole groups are held out.
        outcome: of Guess My City dialogues, by the game's own test for a win or as recorded.
        moves: False leaves buttons (CaSiNo's) out of credit.

    Returns:
        One row an action: episode_id, group_id, position (the message's place in its episode from
        0, system messages included, or what the frame says), role, turn, turns, text_sha,
        intention, cell, anchor, return (discounted), credit (q), baseline (v, without the action),
        advantage, n_cell, standard_error; see credit/table.py. Credit and baseline are out of fold
        where the method is not in sample.

    Raises AriaError: one line with what, where and the remedy.
    """
    from aria_dvc.api import check_takes_k, credited_log, reading_by

    settings = CreditSettings(
        "auto" if k is None else k, seed, aggregate=Aggregate(method, gamma, folds)
    )
    if k is not None:
        check_takes_k(settings.aggregate)
    reading = reading_by(agent, group_by, outcome, moves)
    return credited_log(log, settings, score, embed, game, reading)


def intention_table(
    log: AnyLog,
    *,
    method: str = METHOD,
    k: int | None = None,
    gamma: float = Aggregate.gamma,
    folds: int = Aggregate.folds,
    seed: int = CreditSettings.seed,
    embed: str | None = None,
    game: str | None = None,
    agent: str | Sequence[str] = (),
    group_by: str | None = None,
    outcome: Literal["win_test", "recorded"] = "win_test",
    moves: bool = True,
) -> pd.DataFrame:
    """What the intentions of a log of finished dialogues are, and what each was worth.

        table = aria_dvc.intention_table("games.json", k=20)
        named = aria_dvc.credit("games.json", method="aria", k=20).merge(
            table[["intention", "name"]], on="intention"
        )

    Args: as of `aria_dvc.credit`; k: None for that of the best silhouette.

    Returns:
        One row an intention, the most frequent first: intention, name (up to five distinctive
        terms), examples (the most central utterances), size, actions, role, role_share, turn,
        position, credit, above_turn with its 95 % interval, spread; see report/intentions.py.

    Raises AriaError: one line with what, where and the remedy.
    """
    from aria_dvc.api import reading_by, table_of_intentions

    settings = CreditSettings(
        "auto" if k is None else k, seed, aggregate=Aggregate(method, gamma, folds)
    )
    reading = reading_by(agent, group_by, outcome, moves)
    return table_of_intentions(log, settings, embed, game, reading)
