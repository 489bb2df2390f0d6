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
    "prefix": ("prefix", "PrefixCredit"),
    "turn_index": ("turn_index", "TurnIndexCredit"),
    "constant": ("constant", "ConstantCredit"),
}
# the first argument of a method, by the name that it has in the block `aggregate`
ARGUMENTS = {RECENT: "history", "progress": "objective", "gigpo": "anchor"}


def method_names() -> list[str]:
    return list(METHODS)


def method_class(name: str, settings: AnyAggregate | None = None) -> Callable[[], CreditMethod]:
    """The class of a method, to be called without arguments.

    settings: what a method is told (see ARGUMENTS); None for the defaults.

    Raises:
        AriaError: there is no such method.
    """
    if name not in METHODS:
        raise AriaError(f"unknown credit method {name}{did_you_mean(name, METHODS)}")
    module, attribute = METHODS[name]
    named = import_module(f"aria_dvc.credit.methods.{module}")
    found: Callable[..., CreditMethod] = getattr(named, attribute)
    if name not in ARGUMENTS:
        return found
    return partial(found, getattr(settings or Aggregate(), ARGUMENTS[name]))


def make_method(name: str, settings: AnyAggregate | None = None) -> CreditMethod:
    """A fresh method (see `method_class`)."""
    return method_class(name, settings)()
