"""A review as Markdown of at most 40 lines: the longest lists are cut, and say by how much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from aria_dvc.review.commits import SHORT
from aria_dvc.review.estimates import Change, Estimate, by_chance, moved, name
from aria_dvc.review.freshness import Freshness
from aria_dvc.review.gathered import Pair, Review
from aria_dvc.review.locks import Ran
from aria_dvc.shown import printable

MARK = "<!-- aria review -->"  # by which the workflow finds its comment
MOST_LINES = 40
FEW, MANY = 5, 15  # values with a line of their own; values on one line
LONGEST = 60  # characters of a value
WIDTH = 380  # pixels of a picture
FIRST = ("evaluation", "learning_curve")  # pictures that tell most


@dataclass
class Section:
    """lead: lines that stay. rows: lines of which the last may be cut. more: says of how many.

    weight: sections are cut so that their rows are in these proportions.
    """

    lead: list[str]
    rows: list[str] = field(default_factory=list)
    more: str = "- {} more"
    weight: float = 1.0
    cut: int = 0

    @property
    def lines(self) -> list[str]:
        return ["", *self.lead, *self.rows, *([self.more.format(self.cut)] if self.cut else [])]


def comment(review: Review, address: str | None) -> str:
    """The review as Markdown.

    Args:
        address: the repository's on the web, for pictures; without one they are named.
    """
    made = [
        Section(_head(review)),
        Section(*_listed("Warnings", _warnings(review.warnings))),
        Section(*_moved(review.estimates), "| {} more | | | |", weight=2.0),
        Section(*_listed("Other metrics", _pairs(review.numbers))),
        Section(*_listed("Params", _pairs(review.params))),
        Section(*_listed("Stages that ran", _stages(review.stages))),
        _pictures(review, address),
    ]
    sections = [section for section in made if section.lead]
    while sum(len(section.lines) for section in sections) > MOST_LINES:
        longest = max(sections, key=lambda section: len(section.rows) / section.weight)
        longest.rows.pop()
        longest.cut += 1
    return "\n".join(line for section in sections for line in section.lines).strip() + "\n"


def _head(review: Review) -> list[str]:
    base, head = (commit[:SHORT] for commit in review.commits.both)
    lines = [MARK, f"## What {head} changes against {base}", _fresh(review.fresh)]
    if review.dirty:
        lines.append("Edits that are in no commit yet count for dvc.lock alone.")
    return lines


def _fresh(fresh: Freshness) -> str:
    absent = f" Outputs of {fresh.absent} stages are not here and were not looked at."
    note = absent if fresh.absent else ""
    if fresh.stale:
        told = _short("; ".join(_grouped(fresh.stale)), 8 * LONGEST)
        return f"**dvc.lock is stale**: `dvc repro` would run {told}.{note}"
    if fresh.code_only:
        return (
            "**dvc.lock is fresh** but for the stage `code`: the edits change what no stage "
            f"does.{note}"
        )
    return f"**dvc.lock is fresh**.{note}"


def _warnings(warnings: dict[str, bool]) -> list[str]:
    """New ones first."""
    told = sorted(warnings.items(), key=lambda item: not item[1])
    return [f"- {'**new**: ' if new else ''}{plain(text, 4 * LONGEST)}" for text, new in told]


def _moved(found: list[Change]) -> tuple[list[str], list[str]]:
    """A table of what moved, and below it what only the newer run has."""
    rows = [_row(change) for change in moved(found)]
    compared = sum(change.difference is not None for change in found)
    new = [change for change in found if change.before is None]
    gone = sum(change.after is None for change in found)
    if not found:
        return [], []
    said = f"{len(rows)} of {compared} figures moved beyond their interval"
    most = f"{by_chance(found):.0f}"
    chance = f" (among games of the same policies at most about {most}; training anew moves more)"
    others = f"; new: {len(new)}, gone: {gone}" if new or gone else ""
    lead = ["### Figures", f"{said}{chance if rows else ''}{others}."]
    if rows or new:
        lead += ["", "| figure | before | after | difference |", "|---|---|---|---|"]
    return lead, rows + [_row(change) for change in new]


def _row(change: Change) -> str:
    numbers = (_interval(change.before), _interval(change.after))
    difference = _interval(change.difference, "+")
    return "| " + " | ".join([plain(name(change.place)), *numbers, difference]) + " |"


def _interval(found: Estimate | None, sign: str = "") -> str:
    if found is None:
        return "none"
    value, low, high = (f"{x:{sign}.2f}" for x in (found.value, found.low, found.high))
    return f"{value} ({low} to {high})"


def _listed(title: str, rows: Iterable[str]) -> tuple[list[str], list[str]]:
    found = list(rows)
    return ([f"### {title}"] if found else [], found)


def _pairs(pairs: list[Pair]) -> list[str]:
    """A line a pair; many of them share one."""
    told = [f"{plain(p.name)}: {code(p.before)} to {code(p.after)}" for p in pairs]
    if len(told) <= FEW:
        return [f"- {text}" for text in told]
    more = f"; {len(told) - MANY} more" if len(told) > MANY else ""
    return [f"- {'; '.join(told[:MANY])}{more}"]


def _stages(stages: list[Ran]) -> list[str]:
    """One line for all stages that ran for the same reasons."""
    groups: dict[str, list[str]] = defaultdict(list)
    for one in stages:
        count = f" ({len(one.instances)})" if len(one.instances) > 1 else ""
        single = f"@{one.instances[0]}" if len(one.instances) == 1 else ""
        outputs = "other outputs" if one.other_outputs else "same outputs"
        groups[f"{', '.join(one.because)}; {outputs}"].append(f"{one.stage}{single}{count}")
    return [f"- {plain(', '.join(names), 300)}: {why}" for why, names in groups.items()]


def _grouped(stale: dict[str, tuple[str, ...]]) -> list[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for stage, why in stale.items():
        groups[", ".join(why)].append(plain(stage.partition("@")[0]))
    told = {why: ", ".join(dict.fromkeys(names)) for why, names in groups.items()}
    return [f"{names} ({plain(why)})" for why, names in told.items()]


def _pictures(review: Review, address: str | None) -> Section:
    """A table of pictures before and after; without an address a list of names."""
    pictures = sorted(review.pictures, key=_weight)
    if not pictures:
        return Section([])
    if address is None:
        rows = [f"- {plain(path)} ({_HOW[review.pictures[path]]})" for path in pictures]
        return Section(["### Pictures (see one with `git show COMMIT:PATH`)"], rows)
    lead = ["### Pictures", "", "| before | after |", "|---|---|"]
    rows = [_sides(review, path, address) for path in pictures]
    return Section(lead, rows, "| {} more | |")


def _sides(review: Review, path: str, address: str) -> str:
    shown = (
        "none" if review.pictures[path] == lacks else _image(address, commit, path)
        for commit, lacks in zip(review.commits.both, "AD", strict=True)
    )
    return f"| {' | '.join(shown)} |"


_HOW = {"A": "added", "D": "removed", "M": "changed", "T": "changed"}


def _weight(path: str) -> tuple[bool, str]:
    return PurePosixPath(path).stem not in FIRST, path


def _image(address: str, commit: str, path: str) -> str:
    link = f"{address.rstrip('/')}/blob/{commit}/{quote(path)}"
    label = plain(PurePosixPath(path).stem)
    image = f'<img src="{link}?raw=true" width="{WIDTH}" alt="{label}">'
    return f'<a href="{link}">{label}<br>{image}</a>'


def code(value: Any) -> str:
    """A value as code, which Markdown does not read; `none` where there is none."""
    if value is None:
        return "none"
    text = str(value) or '""'  # two backticks alone would begin code that goes on
    return f"`{_short(text, LONGEST).replace('`', chr(39)).replace('|', '/')}`"


def plain(text: str, longest: int = 2 * LONGEST) -> str:
    """A text that Markdown shows as it is: no HTML, no cells, links, mentions or code."""
    short = _short(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    for mark in "\\|`*[]":  # the backslash first: before a mark it would undo what shields it
        short = short.replace(mark, f"\\{mark}")
    return short.replace("@", "@<!-- -->")


def _short(text: str, longest: int) -> str:
    one_line = printable(" ".join(text.split()))
    return one_line if len(one_line) <= longest else f"{one_line[: longest - 1]}…"
