"""The trainings on a log: reward model, progress estimator, policy."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from aria_dvc.records.names import ProgressObjective
from aria_dvc.settings.block import Block
from aria_dvc.settings.intentions import CreditMethod

VANILLA = "vanilla"  # the variant that is the base model as it is
PlainReturn = Literal["discounted", "terminal"]  # what needs no aggregation
Estimated = Literal["estimator"]  # what the stage progress says, not aggregate
PolicyMethod = Literal[
    "reinforce",
    "behaviour_cloning",
    "ppo",
    "grpo",
    "gigpo",
    "igpo",
    "spag",
    "trajectory_dpo",
    "step_dpo",
    "none",
]
# Methods that read policy.credit.
CREDITED = frozenset({"reinforce", "ppo", "gigpo", "igpo", "step_dpo"})


class Lora(Block):
    rank: int = Field(ge=1, description="size of the adapter (paper: 8)")
    alpha: float = Field(gt=0, description="strength of the adapter (paper: 16)")
    dropout: float = Field(ge=0, lt=1, description="dropout on the adapter's input")
    target_modules: list[str] = Field(
        min_length=1, description="projections that are adapted (paper: q, k, v)"
    )
    layers: int | None = Field(
        ge=1, description="adapt only so many layers nearest the output; null = all (paper: null)"
    )


class RewardModelParams(Block):
    train: Literal["used", "always"] = Field(
        description="used = only where online.credit asks for it; always = for its own sake too"
    )
    backbone: str = Field(
        description="base = data/base_model, or a Hugging Face id or a folder under "
        "models/language/"
    )
    learning_rate: float = Field(gt=0, description="step size (paper: 2e-5)")
    epochs: float = Field(gt=0, description="passes over the training actions (paper: 3)")
    max_episodes: int | None = Field(
        ge=1, description="episodes per log at the most, drawn by whole groups; null = all"
    )
    batch_size: int = Field(ge=1, description="actions per step, by whole dialogues (paper: 64)")
    max_tokens: int = Field(ge=16, description="longest history + action (paper: 4096)")
    held_out: float = Field(
        gt=0, lt=1, description="share of episodes kept for the held-out metrics"
    )
    weighting: Literal["none", "cell_size"] = Field(
        description="none, or cell_size: actions of large cells weigh more"
    )
    lora: Lora | None = Field(
        description="null trains all weights; the stage progress adapts alike"
    )


class ProgressParams(Block):
    train: bool = Field(
        description="true trains the estimator, for variants with credit: estimator"
    )
    objective: ProgressObjective = Field(
        description="sum (contributions add up to the outcome; the paper's), spread (evenly over "
        "the turns too) or prefix (so that the sum so far predicts it at every turn)"
    )
    folds: int = Field(
        ge=2,
        description="models, each of which judges the episodes, by group, that it has not seen "
        "(paper: none, a single model judges those that it learned from)",
    )
    learning_rate: float = Field(gt=0, description="step size (paper: 3e-6)")
    epochs: float = Field(gt=0, description="passes over the episodes (paper: 1)")
    batch_size: int = Field(ge=1, description="dialogues per step, one an episode and role")
    max_tokens: int = Field(
        ge=16, description="longest dialogue; a longer one is refused, since none may be cut"
    )


class Clip(Block):
    """How far one iteration may take the probability of a token, seen from where it began."""

    low: float = Field(gt=0, lt=1, description="lower end: 1 - low (PPO, SPAG, GRPO: 0.2)")
    high: float = Field(gt=0, description="upper end: 1 + high (PPO, SPAG: 0.2, StarPO-S: 0.28)")


class PpoParams(Block):
    lam: float = Field(
        ge=0, le=1, description="lambda of GAE over a role's actions, whose gamma is 1 (SPA: 0.95)"
    )
    grounding: float = Field(
        ge=0, description="what a turn gets besides that the environment carried out (SPA: 0.5)"
    )


class GrpoParams(Block):
    keep: float = Field(
        gt=0, le=1, description="share of a log's groups that train, by spread (StarPO-S: 0.25)"
    )


class SpagParams(Block):
    decay: float = Field(
        gt=0, le=1, description="of the winner's reward from turn to turn backwards (paper: 0.8)"
    )
    beta: float = Field(ge=0, description="weight of log pi / pi_ref in the advantage (paper: 0.2)")
    sft: float = Field(ge=0, description="weight of the imitation of the same turns (paper: 0.5)")


class DpoParams(Block):
    beta: float = Field(
        gt=0, description="how sharply a pair is told apart; larger = nearer to the base (0.1)"
    )


class PolicyParams(Block):
    method: PolicyMethod = Field(
        description="reinforce, behaviour_cloning (imitate successful episodes), ppo (on credit: "
        "terminal, progress or estimator), grpo, gigpo (on credit: gigpo), igpo (on credit: "
        "information_gain), spag, trajectory_dpo, step_dpo, or none (the base model as it is)"
    )
    credit: CreditMethod | PlainReturn | Estimated = Field(
        description="aggregate.method or one of aggregate.further; discounted (no aggregation) or "
        "terminal (no decay either); estimator (what the stage progress says)"
    )
    advantage: Literal["return", "centred", "group", "normalised", "value"] = Field(
        description="return (the paper's), centred (minus the state's value), group (minus also "
        "what other games of the same configuration brought), normalised, or value (q - v, both "
        "of the credit's method)"
    )
    placebo: bool = Field(
        False,
        description="true gives every advantage to another action of the same role, by seed: a "
        "control that can teach nothing",
    )
    kl: float = Field(ge=0, description="weight of the KL divergence to the base model; 0 = none")
    learning_rate: float = Field(gt=0, description="step size (paper: 2e-5)")
    online_learning_rate: float | None = Field(
        None, gt=0, description="step size of this policy online; null = online.learning_rate"
    )
    epochs: float = Field(gt=0, description="passes over the episodes (paper: 3)")
    max_episodes: int | None = Field(
        ge=1, description="episodes per log at the most, drawn by whole groups; null = all"
    )
    batch_size: int = Field(
        ge=1,
        description="dialogues per optimiser step, one an episode and trained role (paper: 32 "
        "adversarial, 16 single-agent episodes)",
    )
    max_tokens: int = Field(
        ge=16, description="longest dialogue; older turns are cut (paper: 4096)"
    )
    gradient_batches: int = Field(
        ge=0, description="small batches for the metric gradient_variance_ratio; 0 skips it"
    )
    lora: Lora | None = Field(description="null trains all weights")
    clip: Clip = Field(description="ppo, grpo, gigpo, igpo, spag: the clipped ratio pi / pi_old")
    ppo: PpoParams
    grpo: GrpoParams
    spag: SpagParams
    dpo: DpoParams = Field(description="trajectory_dpo, step_dpo")
