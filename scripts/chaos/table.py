"""The results as one table, in Markdown and JSON."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

HEAD = ("what", "times", "then ended equal", "left over", "seconds each")
ALL = "all stages"
Row = dict[str, Any]


def rows_of(results: Mapping[str, Sequence[Row]]) -> list[Row]:
    """A row a stage that was killed, one for all of them, and one for each other harm."""
    kills = [row for row in results.get("kill", ()) if row["killed"]]
    names = list(dict.fromkeys(row["stage"] for row in kills))
    rows = [
        _row(f"SIGKILL in `{name}`", [row for row in kills if row["stage"] == name])
        for name in sorted(names)
    ]
    if kills:
        rows.append(_row(f"SIGKILL, {ALL}", kills))
    for row in results.get("faulty", ()):
        what = f"{row['games']:,} games, {row['faults']:,} of {row['requests']:,} requests failed, "
        equal = int(row["equal"] and row["once"])
        rows.append(
            {
                "what": f"{what}{row['kills']} SIGKILLs",
                "times": 1,
                "equal": equal,
                "left": 0,
                "seconds": row["seconds"],
            }
        )
    full = [row for row in results.get("full", ()) if row.get("failed")]
    if full:
        rows.append({**_row("disk full", full), "what": _full(full)})
    return rows


def _full(rows: Sequence[Row]) -> str:
    stages = len({row["stage"] for row in rows})
    clear = sum(row["clear"] for row in rows)
    inputs = sum(row["inputs"] for row in rows)
    return f"disk full in {stages} stages; one clear line {clear}, inputs whole {inputs}"


def _row(what: str, rows: Sequence[Row]) -> Row:
    return {
        "what": what,
        "times": len(rows),
        "equal": sum(row["equal"] for row in rows),
        "left": sum(len(row["left"]) for row in rows),
        "seconds": round(statistics.median(row["seconds"] for row in rows), 1),
    }


def markdown(rows: Sequence[Row]) -> str:
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    keys = ("what", "times", "equal", "left", "seconds")
    lines += [f"| {' | '.join(str(row[key]) for key in keys)} |" for row in rows]
    return "\n".join(lines) + "\n"


def notes(results: Mapping[str, Sequence[Row]]) -> str:
    """How the kills came, and how near the weights were."""
    kills = [row for row in results.get("kill", ()) if row["killed"]]
    if not kills:
        return ""
    ways = {
        way: sum(row["way"] == way for row in kills)
        for way in sorted({row["way"] for row in kills})
    }
    told = ", ".join(f"{count} of {way}" for way, count in ways.items())
    largest = max(row["largest"] for row in kills)
    same = sum(row["same_bytes"] for row in kills)
    return (
        f"Kills: {told}. The largest difference of a weight: {largest:g}; {same} of {len(kills)} "
        "ended with the same bytes throughout (files that hold times never do).\n"
    )


def problems(results: Mapping[str, Sequence[Row]]) -> list[str]:
    """What did not end as it should, a line each."""
    found = []
    for part, rows in results.items():
        for row in rows:
            bad = [key for key in ("equal", "once", "clear", "inputs") if row.get(key) is False]
            if row.get("left"):
                bad.append(f"left {', '.join(row['left'])}")
            if bad and row.get("killed", True) and row.get("failed", True):
                found.append(
                    f"{part} {row['number']} ({row.get('stage', '')} {row.get('way', '')}): not "
                    f"{', '.join(bad)}: {' '.join(str(row.get('problem')).split())[:400]}"
                )
    return found
