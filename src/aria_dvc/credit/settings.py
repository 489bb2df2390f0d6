"""What decides a log's credit, with the packaged defaults of the command and the library.

The blocks of params.yaml have the same names and fields; a test compares the shipped values.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal

from aria_dvc.errors import AriaError
from aria_dvc.records.names import Anchor, ProgressObjective

if TYPE_CHECKING:
    from aria_dvc.params import Params
    from aria_dvc.settings.intentions import AggregateParams

EMBEDDER = "all-minilm-l6-v2"
EMBED_BATCH = 64  # texts at once
# Of the commands and of the library; params.yaml's is the paper's (Aggregate). The nearest to the
# true advantages, or level with the nearest, in every game that was measured (docs/credit.md).
METHOD = "gae"


@dataclass(frozen=True)
class Cluster:
    """k_max: finest cut. linkage: ward or average. exact_limit: near-exact above so many points."""

    k_max: int = 100
    linkage: Literal["ward", "average"] = "ward"
    exact_limit: int = 200_000


@dataclass(frozen=True)
class SelectK:
    """method: see credit/selection.py. per_role: a k for each role. eps, tau: of split_score."""

    method: str = "silhouette"
    per_role: bool = False
    eps: float = 0.01
    tau: int = 10


def _check_whole(name: str, value: object) -> None:
    """Raises AriaError for what is no whole number; True and False are none."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise AriaError(f"{name} is {value!r}: give a whole number")


@dataclass(frozen=True)
class Aggregate:
    """method, further: see credit/methods/registry.py. gamma: discount. folds: by episode.

    history: utterances that make a cell of `aria_recent`; 0 = by cross-validation.
    objective: of `progress`. anchor: of `gigpo`.

    Raises AriaError for what is no number, or one out of range.
    """

    method: str = "aria"
    gamma: float = 0.95
    folds: int = 5
    further: tuple[str, ...] = ()
    history: int = 0
    objective: ProgressObjective = "prefix"
    anchor: Anchor = "intentions"

    def __post_init__(self) -> None:
        _check_whole("folds", self.folds)
        if self.folds < 2:
            raise AriaError(f"folds is {self.folds}: at least 2 are needed to hold episodes out")
        if not isinstance(self.gamma, Real) or isinstance(self.gamma, bool):
            raise AriaError(f"gamma is {self.gamma!r}: give a number")
        if not 0.0 <= self.gamma <= 1.0:
            raise AriaError(f"gamma is {self.gamma}: a discount runs from 0 to 1")


@dataclass(frozen=True)
class CreditSettings:
    """k: number of intentions, or auto for what `select_k` chooses. seed: deals the folds.

    Raises AriaError for what is no number, or one out of range.
    """

    k: int | Literal["auto"] = "auto"
    seed: int = 0
    cluster: Cluster = Cluster()
    select_k: SelectK = SelectK()
    aggregate: Aggregate = Aggregate()

    def __post_init__(self) -> None:
        _check_whole("seed", self.seed)
        if self.k != "auto":
            _check_whole("k", self.k)
            if self.k > self.cluster.k_max:
                raise AriaError(f"k is {self.k}: intentions are 2 to {self.cluster.k_max}")
        if self.seed < 0:
            raise AriaError(f"seed is {self.seed}: folds are dealt by a whole number from 0 on")


if TYPE_CHECKING:
    AnySettings = CreditSettings | Params
    AnyAggregate = Aggregate | AggregateParams
