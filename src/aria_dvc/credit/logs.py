"""The credit of logs without DVC, for the command line and for `aria_dvc.credit`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.methods.base import Values, fit_values
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import EMBED_BATCH, EMBEDDER, CreditSettings
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log
from aria_dvc.records.readers import iter_log, read_entries
from aria_dvc.records.reading import Reading
from aria_dvc.records.sources import prefixes_of
from aria_dvc.records.tables import in_parts, moves_left_out, turns_table

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.records.episodes import Episode

NO_GAME = "dialogue"
UNLIKE_VECTORS = (
    "the logs' embeddings differ in length: embed them with one model, or anew with another"
)


def credit_of(
    fitted: Log, settings: CreditSettings, scored: Log | None = None, embed: str | None = None
) -> tuple[pd.DataFrame, Log]:
    """Credit of the log's actions, or of the actions in `scored`, whose outcomes are not read.

    embed: embedding model where the method looks at meaning and not every log has vectors.

    Returns:
        One row an action (see credit/table.py), and the fitted log as the method saw it.

    Raises:
        AriaError: nothing to fit or to score, logs of two games, unlike vectors.
    """
    from aria_dvc.credit.chain import labelled
    from aria_dvc.credit.labelling import unseen_labels
    from aria_dvc.credit.table import credit_rows

    if not fitted.is_action.any():
        raise AriaError(
            "the log has no action: all that a role with a reward says is left out of credit "
            "(is_action is false, or its moves are no actions)"
        )
    method = make_method(settings.aggregate.method, settings.aggregate, settings.seed)
    logs = [fitted] if scored is None else [fitted, with_actions(scored, fitted)]
    if method.uses_vectors or method.uses_labels:
        logs = embedded(logs, embed or EMBEDDER)
    if method.uses_labels:
        known = labelled(logs[0], settings)
        logs = [known, *(log.with_labels(unseen_labels(known, log)) for log in logs[1:])]
    fitted, asked = logs[0], logs[-1]
    if scored is None:
        values = fit_values(method, asked, settings.aggregate.folds, settings.seed)
    else:
        method.fit(fitted)
        values = Values(method.q(asked), method.v(asked))
    return credit_rows(fitted, asked, values, method), fitted


def read_logs(
    paths: Sequence[str | Path],
    gamma: float,
    need_rewards: bool = True,
    game: str | None = None,
    own_vectors: bool = True,
    reading: Reading | None = None,
) -> Log:
    """One or more log files of one game; with several files ids become `file:id`.

    game: what the logs are of; None for what they say.
    own_vectors: take the vectors that the logs carry, scaled to unit length.
    reading: who is credited, how episodes are grouped, and what becomes of bad entries.

    Raises:
        AriaError: see `iter_log`; a log given twice, several games, vectors of different lengths.
    """
    how = replace(reading or Reading(), game=game, need_rewards=need_rewards)
    found = (
        iter_log(path, replace(how, prefix=prefix))
        for path, prefix in zip(paths, prefixes_of(paths), strict=True)
    )
    return log_of(chain.from_iterable(found), gamma, own_vectors)


def log_of_entries(
    entries: Iterable[Mapping[str, Any]],
    gamma: float,
    need_rewards: bool = True,
    game: str | None = None,
    own_vectors: bool = True,
    reading: Reading | None = None,
) -> Log:
    """Entries in memory, of any layout that a log file may have; else as `read_logs`."""
    how = replace(reading or Reading(), game=game, need_rewards=need_rewards)
    return log_of(read_entries(entries, how), gamma, own_vectors)


def log_of(episodes: Iterable[Episode], gamma: float, own_vectors: bool) -> Log:
    """The log of episodes as they come in: only their tables and vectors are kept.

    Raises AriaError for several games, or vectors of different lengths.
    """
    import pandas as pd

    from aria_dvc.intentions.embedding import unit

    tables, vectors, left_out = [], [], list[np.ndarray]()
    for part in in_parts(episodes):
        tables.append(_without_copies(part))
        left_out += map(moves_left_out, part)
        vectors.append(_carried(part) if own_vectors else None)
    turns = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    del tables
    games = sorted(turns["game"].unique())
    if len(games) > 1:
        raise AriaError(f"logs of several games ({', '.join(games)}): credit one game at a time")
    kept = [found for found in vectors if found is not None]
    whole = len(kept) == len(vectors)
    if whole and len({found.shape[1] for found in kept}) > 1:
        raise AriaError(UNLIKE_VECTORS)
    log = Log.of(turns, unit(np.concatenate(kept)) if whole else None, gamma)
    return replace(log, left_out=np.concatenate(left_out))


def _without_copies(episodes: list[Episode]) -> pd.DataFrame:
    """Their table with the texts as the strings that the episodes have, and without others.

    Texts are most of a log; a table's own kind of text would hold each of them twice more.
    """
    import pandas as pd

    table = turns_table(episodes).drop(columns=["embedded", "grounded"])
    said = [utterance.text for episode in episodes for utterance in episode.utterances]
    return table.assign(text=pd.Series(said, dtype=object))


def _carried(episodes: list[Episode]) -> np.ndarray | None:
    """(n, d) float32 vectors of all utterances; None where some have none."""
    carried = [u.embedding for episode in episodes for u in episode.utterances]
    vectors = [vector for vector in carried if vector is not None]
    if len(vectors) < len(carried):
        return None
    if len({len(vector) for vector in vectors}) > 1:
        raise AriaError(UNLIKE_VECTORS)
    return np.stack(vectors)


def with_actions(scored: Log, fitted: Log) -> Log:
    """`scored` with what the fitted roles say as its actions, but for moves that are left out.

    These are what `credit_of` credits.

    Raises:
        AriaError: the logs are of two games, or none of those roles says anything.
    """
    if fitted.game != scored.game and NO_GAME not in (fitted.game, scored.game):
        raise AriaError(
            f"fitted on {fitted.game}, to score {scored.game}: credit one game at a time"
        )
    acting = np.unique(fitted.role[fitted.actions])
    is_action = np.isin(scored.role, acting)
    if scored.left_out is not None:
        is_action &= ~scored.left_out
    if not is_action.any():
        raise AriaError(
            f"score: no action of {', '.join(acting)}, the fitted roles; the log has "
            f"{', '.join(scored.role_names)}: name the roles alike"
        )
    return replace(scored, is_action=is_action, game=fitted.game)


def embedded(logs: list[Log], source: str) -> list[Log]:
    """The logs with vectors of one model: their own if every log has some.

    Raises AriaError for vectors of different lengths.
    """
    from aria_dvc.intentions.embedding import embed_texts

    widths = {log.vectors.shape[1] for log in logs}
    if 0 in widths:
        texts = [log.text.tolist() for log in logs]
        found = [embed_texts(said, source, EMBED_BATCH, True, {}) for said in texts]
        return [replace(log, vectors=vectors) for log, vectors in zip(logs, found, strict=True)]
    if len(widths) > 1:
        raise AriaError(UNLIKE_VECTORS)
    return logs
