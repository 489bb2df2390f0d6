"""Credit methods by the name that `aggregate.method` and `credit --method` take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from aria_dvc.credit.methods.base import CreditMethod
from aria_dvc.credit.settings import Aggregate
from aria_dvc.errors import AriaError
from aria_dvc.suggestions import did_you_mean

if TYPE_CHECKING:
    from aria_dvc.credit.settings import AnyAggregate

RECENT = "aria_recent"
METHODS = {
    "aria": ("aria", "AriaCredit"),
    RECENT: ("aria", "AriaRecentCredit"),
    "shrinkage": ("shrinkage", "ShrinkageCredit"),
    "kernel": ("kernel", "KernelCredit"),
    "regression": ("regression", "RegressionCredit"),
    "progress": ("progress", "ProgressCredit"),
    "critic": ("critic", "CriticCredit"),
    "group": ("group", "GroupCredit"),
    "gigpo": ("gigpo", "GigpoCredit"),
    "gae": ("gae", "GaeCredit"),
    "belief": ("belief", "BeliefCredit"),
    "information_gain": ("information_gain", "InformationGainCredit"),
    "prefix": ("prefix", "PrefixCredit"),
    "turn_index": ("turn_index", "TurnIndexCredit"),
    "constant": ("constant", "ConstantCredit"),
}
# the first argument of a method, by the name that it has in the block `aggregate`
ARGUMENTS = {RECENT: "history", "progress": "objective", "gigpo": "anchor"}
SEEDED = {RECENT, "shrinkage", "kernel", "regression", "progress", "critic", "gae", "belief"}
FOLDED = {RECENT, "shrinkage", "gae"}  # hold out by `aggregate.folds`, others in parts of their own


def method_names() -> list[str]:
    return list(METHODS)


def method_class(
    name: str, settings: AnyAggregate | None = None, seed: int = 0
) -> Callable[[], CreditMethod]:
    """The class of a method, to be called without arguments.

    settings: what a method is told (see ARGUMENTS, FOLDED); None for the defaults. seed: of what is
        random in it.

    Raises:
        AriaError: there is no such method.
    """
    if name not in method_names():
        raise AriaError(f"unknown credit method {name}{did_you_mean(str(name), METHODS)}")
    module, attribute = METHODS[name]
    named = import_module(f"aria_dvc.credit.methods.{module}")
    found: Callable[..., CreditMethod] = getattr(named, attribute)
    told = settings or Aggregate()
    first = [getattr(told, ARGUMENTS[name])] if name in ARGUMENTS else []
    more = {"seed": seed} if name in SEEDED else {}
    if name in FOLDED:
        more["folds"] = told.folds
    return partial(found, *first, **more)


def make_method(name: str, settings: AnyAggregate | None = None, seed: int = 0) -> CreditMethod:
    """A fresh method (see `method_class`)."""
    return method_class(name, settings, seed)()
