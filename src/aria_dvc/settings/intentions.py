"""From dialogues to credit: prepare, embed, cluster, select_k, aggregate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from aria_dvc.records.names import Anchor, PlayerKind, ProgressObjective
from aria_dvc.settings.block import Block

CreditMethod = Literal[
    "aria",
    "aria_recent",
    "shrinkage",
    "kernel",
    "regression",
    "progress",
    "critic",
    "group",
    "gigpo",
    "gae",
    "belief",
    "information_gain",
    "prefix",
]
Decisions = Literal["worth", "share", "text"]


class PrepareParams(Block):
    max_chars: int = Field(
        ge=1,
        description="a longer utterance is refused (a broken log more often than a long speech)",
    )
    players: list[PlayerKind] = Field(
        min_length=1,
        description="kinds of player whose utterances get credit and train, in games that we "
        "played; of your own logs all",
    )
    decisions: Decisions = Field(
        description="what intentions of adversarial games are found in: worth (the parsed move, "
        "with the own part of what the deal would be worth to both at that moment), "
        "share (with the own share of the sum, or the price) or text (the words)"
    )


class EmbedParams(Block):
    source: str = Field(
        description="packaged model, sentence-transformers id, folder under models/sentence/, or "
        "endpoint:NAME (paper: text-embedding-3-small); @bfloat16 behind a model's name is faster "
        "and rounds (docs/stages/embed.md)"
    )
    use_log_vectors: bool = Field(
        description="a log that carries embeddings keeps them; false embeds its texts anew"
    )
    normalize: bool = Field(
        description="scale vectors to unit length, so that distance means angle"
    )


class ClusterParams(Block):
    k_max: int = Field(ge=2, le=100, description="finest cut of the tree (2..100)")
    linkage: Literal["ward", "average"] = Field(
        description="ward, or average (the paper's appendix D)"
    )
    exact_limit: int = Field(
        ge=2, description="above this many distinct utterances the near-exact tree is used"
    )


class SelectKParams(Block):
    method: Literal[
        "silhouette", "calinski_harabasz", "davies_bouldin", "split_score", "cross_validated"
    ] = Field(
        description="silhouette, calinski_harabasz, davies_bouldin, split_score (the paper's) or "
        "cross_validated"
    )
    per_role: bool = Field(description="true = every role has its own k")
    eps: float = Field(
        gt=0, description="split_score: largest mean change of the rewards that counts as stable"
    )
    tau: int = Field(ge=0, description="split_score: for how many further k it must stay stable")


class AggregateParams(Block):
    method: CreditMethod = Field(
        description="aria (cell means, the paper's), aria_recent, shrinkage, kernel, regression, "
        "progress, critic, group, gigpo, gae, belief or information_gain (guessing games) or prefix"
    )
    further: list[CreditMethod] = Field(
        description="more of these methods, for variants that train on their credit"
    )
    history: int = Field(
        ge=0,
        description="aria_recent: so many last utterances make a cell; 2 = the action and what it "
        "answers (larger cells vary less and are more biased), 0 = by cross-validation",
    )
    objective: ProgressObjective = Field(
        "prefix",
        description="progress: sum (contributions sum to the outcome), spread (evenly over the "
        "turns) or prefix (so that the sum so far predicts it at every turn)",
    )
    anchor: Anchor = Field(
        "intentions",
        description="gigpo: steps compared have the same observation, state (all that was said) "
        "or recent intentions",
    )
    gamma: float = Field(
        gt=0, le=1, description="discount per own turn; lower = later turns matter more"
    )
    folds: int = Field(
        ge=2,
        description="parts, by whole groups of episodes, in which a held-out fit does not see what "
        "it judges: credits that are out of fold, cross_validated k, credit_quality",
    )
