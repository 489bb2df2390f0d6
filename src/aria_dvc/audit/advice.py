"""What an audit found, in plain words: what to do next."""

from __future__ import annotations

from typing import Any

FEW_GROUPS = 30
LEAST = 0.01
"""A share of the returns' variance below this is the discount's or the shrinkage's own doing."""
FEW_TWINS = 10
ENOUGH_SHARED = 0.5
"""Share of the turns; with less, means over cells of whole histories are hardly any means."""
WHOLE_HISTORIES = "aria"
"""The estimator whose credit is such a mean."""
YARDSTICK = "regression"
"""Whose held-out advantage the sign of a credit is compared with."""
_BY_DESIGN = ", as plain returns and `gae` do by design"
# By what the log tells of tasks: what twins share, and what else may tell them apart.
_SAME_TASK = {
    "group": (
        "of a task",
        f"{_BY_DESIGN}. What is estimated out of fold does not",
    ),
    "prompt": (
        "with the same prompt and configuration",
        ", or was fitted apart for parts of the log. Groups (`--group-by`) would exclude this",
    ),
    None: (
        "of which the log tells no task",
        ", or knows the task, or was fitted apart for parts of the log. Groups (`--group-by`) "
        "would exclude both",
    ),
}


def advice(report: dict[str, Any]) -> list[str]:
    """A few sentences, the most important first."""
    found = _data(report)
    if any(_varies(about["reward"]) for about in report["contents"]["roles"].values()):
        found += [*_signal(report), *_cells(report)]
    if "credit" in report:
        found += _credit(report["credit"], _has_skill(report))
    return found or ["Nothing stands out: train on it, and compare with plain returns."]


def _data(report: dict[str, Any]) -> list[str]:
    there, said = report["contents"], []
    for role, about in there["roles"].items():
        if about["reward"] is not None and not _varies(about["reward"]):
            said.append(f"Every episode of {role} ended alike: no credit can tell turns apart.")
    if there["groups"] == 1:
        said.append(
            "Only 1 group: no other can be held out, so no figure tells of unseen ones, and none "
            "has an interval. Add tasks, or name what sets episodes apart by --group-by."
        )
    elif there["groups"] < FEW_GROUPS:
        said.append(
            f"Only {there['groups']} groups: intervals are wide, and held-out figures may change "
            "with the folds. Add more tasks rather than more trials of the same."
        )
    return said


def _varies(reward: dict[str, Any] | None) -> bool:
    """Whether not all episodes ended alike; they did where nobody has a reward."""
    return reward is not None and bool(reward["quantiles"][0] < reward["quantiles"][-1])


def _best(report: dict[str, Any]) -> dict[str, Any] | None:
    """The estimator that surely tells more than the turn index, and most; one that can be advised
    before one that cannot. None where there is none."""
    rows = [row for row in report["signal"] if row["role"] == "all"]
    told = [row for row in rows if _is_there(row["over_turn_index"])]
    usable = [row for row in told if _is_usable(row["method"], report)]
    return max(usable or told, key=lambda row: row["over_turn_index"]["value"], default=None)


def _is_usable(method: str, report: dict[str, Any]) -> bool:
    return method != WHOLE_HISTORIES or report["cells"]["shared"] >= ENOUGH_SHARED


def _signal(report: dict[str, Any]) -> list[str]:
    """What a fit on some groups tells of the others; nothing where there is a single one."""
    if report["contents"]["groups"] == 1:
        return []
    rows = [row for row in report["signal"] if row["role"] == "all"]
    if all(row["over_turn_index"] is None for row in rows):
        return ["Returns do not vary: nothing can be estimated."]
    if (best := _best(report)) is not None:
        name, over = best["method"], best["over_turn_index"]
        use = f" Use `--method {name}`." if _is_usable(name, report) else ""
        return [
            f"What is said tells more than the clock: {name} explains {over['value']:.0%} of what "
            f"the turn index leaves ({over['low']:.0%} to {over['high']:.0%}).{use}"
        ]
    clock = next(row for row in rows if row["method"] == "turn_index")["over_constant"]
    if _is_there(clock):
        return [
            "On unseen groups nothing beats the turn index: a credit by turn would be as good. Add "
            "episodes, or several trials of each task, before you train on any credit."
        ]
    return [
        "On unseen groups nothing beats the mean of the role: this log does not show which turns "
        "matter. Add episodes, or vary the play, before you train on any credit."
    ]


def _is_there(skill: dict[str, Any] | None) -> bool:
    """Whether a skill is of some size and above 0 with its interval."""
    return skill is not None and skill["value"] >= LEAST and (skill["low"] or 0) > 0


def _has_skill(report: dict[str, Any]) -> bool:
    """Whether the yardstick knows anything of unseen groups; else a sign of it is a coin's."""
    rows = [row for row in report["signal"] if row["role"] == "all"]
    own = next((row for row in rows if row["method"] == YARDSTICK), None)
    return own is not None and _is_there(own["over_turn_index"])


def _cells(report: dict[str, Any]) -> list[str]:
    """How few turns share a cell, with a remedy where `_signal` has advised no method."""
    share = report["cells"]["shared"]
    if share >= ENOUGH_SHARED:
        return []
    best = _best(report)
    advised = best is not None and _is_usable(best["method"], report)
    remedy = ": use `--method gae`, or cells of recent history (`aria_recent`)"
    return [
        f"Aggregation by whole histories (`{WHOLE_HISTORIES}`) changes {share:.0%} of your turns, "
        f"the others are alone in their cell{'' if advised else remedy}."
    ]


def _credit(credit: dict[str, Any], comparable: bool) -> list[str]:
    """comparable: whether there is anything to compare its signs with."""
    said, parts = [], credit["parts"]
    if credit["variance"] == 0:
        return ["The credit is the same for every turn: it teaches nothing."]
    names = {
        "clock": "the turn index: subtract what the history lets expect (the baseline), "
        "or the policy learns to end early or late; a mean by turn index is biased itself, since "
        "when an episode stops follows from its actions",
        "length": "the number of turns, which is known only at the end",
        "task": "which task it is: compare within groups (group-relative baselines)",
        "role": "who speaks: centre by role",
    }
    for name, meaning in names.items():
        if (parts[name] or 0) > 0.3:
            said.append(f"{parts[name]:.0%} of the credit's variance is {meaning}.")
    said += _leakage(credit["leakage"])
    signs = credit["sign_agreement"]
    if comparable and signs["low"] is not None and signs["low"] <= 0.5:
        said.append(
            "Its sign agrees with a held-out estimate of the advantage no more often than chance: "
            "do not train on it without a comparison with plain returns."
        )
    return said


def _leakage(leak: dict[str, Any]) -> list[str]:
    """What the credit knows of the future; where no group tells the task, what else it may be."""
    if leak["twins"] >= FEW_TWINS and leak["differing"] > 0.05:
        same, other = _SAME_TASK[leak["tasks"]]
        return [
            f"{leak['differing']:.0%} of the turns that were said word for word in the same place "
            f"of several episodes {same} have different credits: the credit looks at what came "
            f"after{other}."
        ]
    if (leak["later"]["low"] or 0) > 0.1:
        other = "" if leak["tasks"] else ", or know the task: name that by `--group-by`"
        return [
            f"Outcome and length add {leak['later']['value']:.0%} to what the past tells of the "
            f"credit: it may look at what came after the action{_BY_DESIGN}{other}."
        ]
    return []
