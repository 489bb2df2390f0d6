"""How much of the returns of unseen groups an estimator predicts, beyond role and turn index."""

from __future__ import annotations

from typing import Any

from aria_dvc.credit.methods.base import Values, all_out_of_fold
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import CreditSettings
from aria_dvc.credit.skill import ALL, skill_scores
from aria_dvc.intentions.log import Log

BASELINES = ("constant", "turn_index")


def held_out(
    log: Log, methods: tuple[str, ...], settings: CreditSettings, valued: str = ""
) -> dict[str, Values]:
    """Method -> values by a fit on other groups, the two baselines among them.

    valued: the method of which v is wanted too; that of the others is NaN.
    """
    folds, seed = settings.aggregate.folds, settings.seed
    made = {name: make_method(name, settings.aggregate, seed) for name in (*BASELINES, *methods)}
    return all_out_of_fold(made, log, folds, seed, valued=[valued])


def signal(log: Log, found: dict[str, Values], seed: int = 0) -> list[dict[str, Any]]:
    """One row a method and role (all of them first): its skill over both baselines.

    Skill and its interval as in credit/skill.py; null where the returns do not vary.
    """
    role = log.role[log.actions].tolist()
    rows = []
    for name in [name for name in found if name != "constant"]:
        over = {
            base: skill_scores(found[name], {base: found[base].q}, log, seed)
            for base in BASELINES
            if base != name
        }
        for who in (ALL, *sorted(set(role))):
            actions = len(role) if who == ALL else role.count(who)
            skills = {f"over_{base}": _known(over, base, who) for base in BASELINES}
            rows.append({"method": name, "role": who, "actions": actions, **skills})
    return rows


def _known(over: dict[str, Any], base: str, who: str) -> dict[str, float] | None:
    skill = over[base][who]["skill"] if base in over else None
    return None if skill is None or skill["value"] is None else skill
