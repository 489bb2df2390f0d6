"""The results as one table, and what is wrong in them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

HEAD = ("what", "times", "as it should", "left over", "seconds each")
Row = dict[str, Any]


def rows_of(results: Sequence[Row]) -> list[Row]:
    """A row a stage that was killed, one for all of them, and one for each other harm."""
    kills = [found for found in results if found["part"] == "kill"]
    full = [found for found in results if found["part"] == "full"]
    groups = {
        f"SIGKILL in `{name}`": [found for found in kills if found["stage"] == name]
        for name in sorted({found["stage"] for found in kills})
    }
    groups["SIGKILL, all stages"] = kills
    groups |= {found["what"]: [found] for found in results if found["part"] == "faulty"}
    groups[f"disk full, in {len({found['stage'] for found in full})} stages"] = full
    return [_row(what, found) for what, found in groups.items() if found]


def _row(what: str, found: Sequence[Row]) -> Row:
    right = sum(not one["wrong"] for one in found)
    left = sum(len(one["left"]) for one in found)
    seconds = round(statistics.median(one["seconds"] for one in found))
    return dict(zip(HEAD, (what, len(found), right, left, seconds), strict=True))


def markdown(rows: Sequence[Row]) -> str:
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    lines += [f"| {' | '.join(map(str, row.values()))} |" for row in rows]
    return "\n".join(lines) + "\n"


def problems(results: Sequence[Row]) -> list[str]:
    """What did not end as it should, a line each."""
    return [
        f"{found['part']} {found['number']}, {found.get('stage', found.get('what'))}: {line}"
        for found in results
        for line in (*found["wrong"], *(f"left over: {name}" for name in found["left"]))
    ]
