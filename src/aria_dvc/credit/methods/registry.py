"""Credit methods by the name that `aggregate.method` and `credit --method` take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from aria_dvc.credit.methods.base import CreditMethod
from aria_dvc.credit.settings import Aggregate
from aria_dvc.errors import AriaError
from aria_dvc.suggestions import did_you_mean

RECENT = "aria_recent"
METHODS = {
    "aria": ("aria", "AriaCredit"),
    RECENT: ("aria", "AriaRecentCredit"),
    "shrinkage": ("shrinkage", "ShrinkageCredit"),
    "kernel": ("kernel", "KernelCredit"),
    "regression": ("regression", "RegressionCredit"),
    "prefix": ("prefix", "PrefixCredit"),
    "turn_index": ("turn_index", "TurnIndexCredit"),
    "constant": ("constant", "ConstantCredit"),
}


def method_names() -> list[str]:
    return list(METHODS)


def method_class(name: str, history: int = Aggregate.history) -> Callable[[], CreditMethod]:
    """The class of a method, to be called without arguments for its defaults.

    history: utterances that make a cell of `aria_recent`.

    Raises:
        AriaError: there is no such method.
    """
    if name not in METHODS:
        raise AriaError(f"unknown credit method {name}{did_you_mean(name, METHODS)}")
    module, attribute = METHODS[name]
    found = getattr(import_module(f"aria_dvc.credit.methods.{module}"), attribute)
    return partial(found, history) if name == RECENT else found


def make_method(name: str, history: int = Aggregate.history) -> CreditMethod:
    """A fresh method with its defaults (see `method_class`)."""
    return method_class(name, history)()
