"""Players as params.yaml and the records of episodes name them: `policy`, `scripted:fair`, ...

It lies below `params`, which checks the names, and imports no player, game or model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from aria_dvc.errors import AriaError
from aria_dvc.records.names import MIXTURES, STRATEGY_NAMES
from aria_dvc.suggestions import did_you_mean

PLAYERS = ("policy", "base", "embedded", "scripted:<strategy>", "endpoint:<name>")
TRAINED_ONLINE = ("policy",)  # whatever else plays there, such as the base model, stays as it is
Pool = str | Mapping[str, float]  # who plays a role: one spec, or specs with their weights
Described = TypeVar("Described")


@dataclass(frozen=True)
class PlayerSpec:
    """`kind` is what stands before the colon; `name` is the strategy's or the endpoint's."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind


def parse_spec(text: str) -> PlayerSpec:
    """The player that `text` names.

    Raises:
        AriaError: no player and no strategy is called so, with what may have been meant.
    """
    kind, _, name = text.partition(":")
    if kind == "scripted" and name and name not in STRATEGY_NAMES:
        raise AriaError(f"unknown strategy {name}{did_you_mean(name, STRATEGY_NAMES)}")
    named = kind in ("scripted", "endpoint") and name
    if not named and text not in ("policy", "base", "embedded"):
        raise AriaError(f"unknown player {text}{did_you_mean(text, PLAYERS)}")
    return PlayerSpec(kind, name)


def weights_of(pool: Pool) -> dict[str, float]:
    """The weight of every player in a pool; one of weight 0 is not in it."""
    if isinstance(pool, str):
        return {pool: 1.0}
    return {spec: weight for spec, weight in pool.items() if weight != 0}


def specs_of(pools: Mapping[str, Pool]) -> list[str]:
    """Everybody who may play, role by role."""
    return [spec for pool in pools.values() for spec in weights_of(pool)]


def strategies_of(specs: Iterable[str]) -> set[str]:
    """The strategies of the scripted players among `specs`, with the parts of mixtures."""
    scripted = (spec.partition(":") for spec in specs)
    names = [name for kind, _, name in scripted if kind == "scripted"]
    return {part for name in names for part in (name, *MIXTURES.get(name, ()))}


def endpoint_name(source: str) -> str | None:
    """NAME of `endpoint:NAME`; None for anything else, such as a model's id."""
    kind, colon, name = source.partition(":")
    return name if colon and kind == "endpoint" else None


def find_endpoint(name: str, endpoints: Mapping[str, Described]) -> Described:
    """What is described as `name` under `endpoints` in params.yaml.

    Raises:
        AriaError: nothing is, with what may have been meant.
    """
    if name not in endpoints:
        raise AriaError(f"no endpoint {name} under endpoints{did_you_mean(name, endpoints)}")
    return endpoints[name]
