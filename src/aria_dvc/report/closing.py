"""The last lines of a run: what was trained, what it brought, what to doubt, where to look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aria_dvc.report.health import Finding, signed
from aria_dvc.report.intervals import doubt_words

MOST_LINES, MOST_DIFFERENCES, MOST_REMEDIES = 10, 4, 2
CAVEAT = (
    "figures differ between machines and seeds: compare runs of one machine, over several seeds"
)


def closing_lines(
    learning: Mapping[str, Any],
    evaluation: Mapping[str, Any],
    findings: Sequence[Finding],
    seed: int,
) -> list[str]:
    """At most MOST_LINES lines of plain text, one thing each.

    Args:
        learning, evaluation: what metrics/details/ has under these names. findings: of `health`.
    """
    trained = f"trained (seed {seed}): {'; '.join(_trained(learning)) or 'nothing'}"
    before, after = [trained, *_differences(evaluation)], [*_remedies(findings), CAVEAT]
    warnings, left = _warnings(findings, MOST_LINES - len(before) - 1 - len(after))
    return [*before, *warnings, _where(left), *after]


def _trained(learning: Mapping[str, Any]) -> Iterator[str]:
    for category, of in learning.items():
        for variant, policy in of["policy"].items():
            steps = policy.get("steps", 0)
            online = of.get("online", {}).get(variant, {})
            done = [f"{steps} offline steps"] if steps else []
            if online.get("updates"):
                done.append(f"{online['updates']} online updates over {online['games']} games")
            if done:
                yield f"{variant} on {category} ({', '.join(done)})"


def _differences(evaluation: Mapping[str, Any]) -> Iterator[str]:
    """The differences to vanilla, the surest first; rates where nothing is compared."""
    rows = [
        (gain, f"{game}: {_rate(of, name)}, {_difference(gain)}")
        for game, of in evaluation.items()
        for name, gain in of["minus_vanilla"].items()
    ]
    rows.sort(key=lambda row: 1.0 if row[0]["p"] is None else row[0]["p"])
    shown = rows[: MOST_DIFFERENCES - (len(rows) > MOST_DIFFERENCES)]
    yield from (line for _, line in shown)
    if len(shown) < len(rows):
        yield f"{len(rows) - len(shown)} more differences: metrics/details/leaderboard.csv"
    if not rows:
        for game, of in list(evaluation.items())[:MOST_DIFFERENCES]:
            yield f"{game}: " + ", ".join(_rate(of, name) for name in of["all"])


def _rate(of: Mapping[str, Any], name: str) -> str:
    numbers = of["all"][name]
    if numbers["rate"] is None:
        return f"{name} played no game"
    return f"{name} {numbers['rate']:.2f} ({numbers['low']:.2f} to {numbers['high']:.2f})"


def _difference(gain: Mapping[str, Any]) -> str:
    """Such as: +0.38 (+0.24 to +0.51) to vanilla, p < 0.001 as one of 4 (Holm)."""
    if gain["mean"] is None:
        return "no games in common with vanilla"
    known = gain["low"] is not None
    interval = f" ({signed(gain['low'])} to {signed(gain['high'])})" if known else ""
    doubt = f"; {doubt_words(gain)}" if gain.get("undecided") else ""
    return f"{signed(gain['mean'])}{interval} to vanilla, {_p(gain)}{doubt}"


def _p(gain: Mapping[str, Any]) -> str:
    p = gain.get("p_holm", gain["p"])
    if p is None:
        return "no p"
    value = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    several = gain.get("comparisons", 1) > 1
    return f"{value} as one of {gain['comparisons']} (Holm)" if several else value


def _warnings(findings: Sequence[Finding], most: int) -> tuple[list[str], int]:
    """At most so many lines, one of each check, and how many warnings that leaves out."""
    warnings = [one for one in findings if one.level == "warning"]
    shown = _of_each_check(warnings)[:most]
    lines = [f"warning: {one.line}" for one in shown] or ["no warnings"]
    return lines, len(warnings) - len(shown)


def _where(left: int) -> str:
    rest = f" ({left} more warnings)" if left else ""
    return (
        f"look at metrics/details/health.json{rest}, data/report/report.html and "
        "metrics/intentions/; `dvc metrics diff`, `dvc plots show`"
    )


def _remedies(findings: Sequence[Finding]) -> Iterator[str]:
    named = _of_each_check([one for one in findings if one.remedy])
    told = list(dict.fromkeys(f"{one.remedy} ({one.about})" for one in named))
    if told:
        yield "try next: " + "; ".join(told[:MOST_REMEDIES])


def _of_each_check(findings: Sequence[Finding]) -> list[Finding]:
    """The first of each check, so that one check on many logs does not hide the others."""
    return list({one.check: one for one in reversed(findings)}.values())[::-1]
