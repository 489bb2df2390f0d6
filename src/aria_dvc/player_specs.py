"""Players as params.yaml and the records of episodes name them: `policy`, `scripted:fair`, ...

It lies below `params`, which checks the names, and imports no player, game or model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from aria_dvc.errors import AriaError
from aria_dvc.records.names import STRATEGY_NAMES
from aria_dvc.suggestions import did_you_mean

PLAYERS = ("policy", "base", "embedded", "scripted:<strategy>", "endpoint:<name>")
_KIND_OF = {"policy": "policy", "base": "policy", "scripted": "scripted", "endpoint": "endpoint"}
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


def kind_of(recorded: str) -> str | None:
    """What `policy.players` calls the player of that recorded name; None for a stranger."""
    return _KIND_OF.get(recorded.partition(":")[0])


def endpoint_name(source: str) -> str | None:
    """NAME of `endpoint:NAME`; None for anything else, such as a model's id.

    The several names of a player that is dealt to (see `together`) stay joined by commas.
    """
    kind, colon, name = source.partition(":")
    return name if colon and kind == "endpoint" else None


def together(servers: Sequence[str]) -> str:
    """One player of several `endpoint:NAME`, which serve the same model: games are dealt to them.

    It is written endpoint:NAME,OTHER.
    """
    return f"endpoint:{','.join(name for spec in servers if (name := endpoint_name(spec)))}"


def find_endpoint(name: str, endpoints: Mapping[str, Described]) -> Described:
    """What is described as `name` under `endpoints` in params.yaml.

    Raises:
        AriaError: nothing is, with what may have been meant.
    """
    if name not in endpoints:
        raise AriaError(f"no endpoint {name} under endpoints{did_you_mean(name, endpoints)}")
    return endpoints[name]
