"""The credit table of a log, beside the utterances that it is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from aria_dvc.credit.table import sha_of
from aria_dvc.credit.written import read_credit
from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode


def with_credit_of(path: Path, column: str, episodes: Iterable[Episode]) -> Iterator[Episode]:
    """The episodes, `given` of whose utterances is what a table of `aria credit` says of them.

    column: credit, advantage or return. What the table lacks stays without.

    Raises:
        AriaError: see `read_credit`; a row of another text; rows of no utterance, at the end.
    """
    table = read_credit(path)
    keys = zip(table["episode_id"].tolist(), table["position"].tolist(), strict=True)
    rows = zip(table[column].tolist(), table["text_sha"].tolist(), strict=True)
    left = dict(zip(keys, rows, strict=True))
    for episode in episodes:
        for position, utterance in episode.numbered():
            value, sha = left.pop((episode.episode_id, position), (None, None))
            if sha is not None and sha != sha_of(utterance.text):
                raise AriaError(
                    f"--credit: episode {episode.episode_id}, position {position} has another text "
                    f"in {path}: give the table of this very log"
                )
            utterance.given = value
        yield episode
    if left:
        raise AriaError(
            f"--credit: {len(left)} of {len(table)} rows of {path} are of no utterance of this log "
            f"(the first: episode {next(iter(left))[0]}): give the log that the table was made of"
        )
