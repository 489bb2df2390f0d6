"""An audit for people: tables of the same rows in the terminal and on one HTML page."""

from __future__ import annotations

import html
from typing import Any

from aria_dvc.shown import printable

Table = tuple[str, list[str], list[list[str]]]  # title, head, rows
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em .8em;text-align:left;"
    "border-bottom:1px solid #ddd}li{margin:.4em 0}.bar{fill:#4878a8}"
)


def tables(report: dict[str, Any]) -> list[Table]:
    """Everything that is shown, as text."""
    there = report["contents"]
    groups = f"{there['episodes']} episodes in {there['groups']} groups"
    what = [[r, *_role(about)] for r, about in there["roles"].items()]
    head = ["who", "utterances", "turns, median", "final reward", "its values"]
    found: list[Table] = [(f"{there['game']}: {groups}, {there['actions']} actions", head, what)]
    skills = [
        [s["method"], s["role"], _interval(s["over_constant"]), _interval(s["over_turn_index"])]
        for s in report["signal"]
    ]
    head = ["estimator", "role", "skill over the role's mean", "over the turn index"]
    held = "episodes of the one group" if there["groups"] == 1 else "groups"
    found.append((f"Signal on held-out {held}", head, skills))
    cells = report["cells"]
    row = [str(cells["intentions"]), str(cells["cells"]), f"{cells['shared']:.1%}"]
    found.append(
        ("Cells of whole histories", ["intentions", "cells", "turns that share theirs"], [row])
    )
    if "credit" in report:
        found.append(_credit(report["credit"]))
    return found


def _role(about: dict[str, Any]) -> list[str]:
    reward = about["reward"]
    middle = f"{about['turns'][2]:g}"
    if reward is None:
        return [str(about["utterances"]), middle, "none", ""]
    values = reward["values"]
    listed = "" if values is None else ", ".join(f"{v}: {n}" for v, n in values.items())
    mean = f"{reward['mean']:.3f} (deviation {reward['deviation']:.3f})"
    return [str(about["utterances"]), middle, mean, listed]


def _interval(value: dict[str, float] | None) -> str:
    if value is None:
        return "-"
    if value["low"] is None:  # of a single group
        return f"{value['value']:+.3f}"
    return f"{value['value']:+.3f} ({value['low']:+.3f} to {value['high']:+.3f})"


def _credit(credit: dict[str, Any]) -> Table:
    leak, signs, sums = (credit[name] for name in ("leakage", "sign_agreement", "sum_to_outcome"))
    share = {name: "-" if v is None else f"{v:.1%}" for name, v in credit["parts"].items()}
    twins = "no twins" if leak["differing"] is None else f"{leak['differing']:.1%}"
    ratio = credit["variance_over_returns"]
    rows = [
        ["variance", f"{credit['variance']:.4g}"],
        ["variance over that of returns", "-" if ratio is None else f"{ratio:.3f}"],
        ["explained by the role alone", share["role"]],
        ["by role and turn index (clock)", share["clock"]],
        ["by role and number of turns (length)", share["length"]],
        ["by role and group (task identity)", share["task"]],
        [f"same task, place and words ({leak['twins']} turns), another credit", twins],
        ["added by outcome and turns to go, at most", _interval(leak["later"])],
        ["turns that carry it (Kish)", f"{credit['effective_turns']:.0f} of {credit['actions']}"],
        ["distance of an episode's sum from its outcome", f"{sums['distance']:.3f}"],
        ["correlation of the two", _number(sums["correlation"])],
        ["sign agrees with a held-out advantage", _agreement(signs, credit["actions"])],
    ]
    return f"The credit {credit['column']}", ["", ""], rows


def _agreement(signs: dict[str, Any], actions: int) -> str:
    if signs["value"] is None:
        return "-"
    spread = "" if signs["low"] is None else f" ({signs['low']:.3f} to {signs['high']:.3f})"
    return f"{signs['value']:.3f}{spread}; chance 0.5, {signs['turns']} of {actions} turns"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def show(report: dict[str, Any]) -> None:
    """Print the tables and what they mean."""
    from rich.console import Console
    from rich.table import Table as Shown
    from rich.text import Text

    console = Console()
    for title, head, rows in tables(report):
        shown = Shown(title=Text(printable(title)), title_justify="left", show_header=any(head))
        for name in head:
            shown.add_column(name, overflow="fold")
        for row in rows:
            shown.add_row(*(Text(printable(cell)) for cell in row))
        console.print(shown)
    for sentence in report["advice"]:
        console.print(Text(f"- {printable(sentence)}"))


def page(report: dict[str, Any]) -> str:
    """One HTML page without scripts; what is in the log is escaped."""
    parts = [f"<li>{_escaped(sentence)}</li>" for sentence in report["advice"]]
    body = [f"<h1>Audit</h1><ul>{''.join(parts)}</ul>"]
    for title, head, rows in tables(report):
        body.append(f"<h2>{_escaped(title)}</h2><table>{_row(head, 'th')}")
        body.append("".join(_row(row, "td") for row in rows) + "</table>")
    body += [_bars(role, about) for role, about in report["contents"]["roles"].items()]
    head_line = "<!doctype html><html lang=en><meta charset=utf-8><title>Audit</title>"
    return f"{head_line}<style>{_STYLE}</style>{''.join(body)}</html>\n"


def _bars(role: str, about: dict[str, Any]) -> str:
    """The final rewards of a role as bars, where they are few."""
    values = (about["reward"] or {}).get("values")
    if not values:
        return ""
    most = max(values.values())
    rows = []
    for place, (value, count) in enumerate(values.items()):
        y, width = 22 * place, 300 * count / most
        rows.append(f'<text x="0" y="{y + 15}">{_escaped(f"{float(value):.6g}")}</text>')
        rows.append(f'<rect class=bar x="110" y="{y}" width="{width:.0f}" height="18"/>')
        rows.append(f'<text x="{width + 118:.0f}" y="{y + 15}">{count}</text>')
    drawn = f'<svg width="490" height="{22 * len(values)}">{"".join(rows)}</svg>'
    return f"<h3>Final rewards of {_escaped(role)}</h3>{drawn}"


def _row(cells: list[str], kind: str) -> str:
    if not any(cells):
        return ""
    return "<tr>" + "".join(f"<{kind}>{_escaped(cell)}</{kind}>" for cell in cells) + "</tr>"


def _escaped(text: str) -> str:
    return html.escape(printable(text))
