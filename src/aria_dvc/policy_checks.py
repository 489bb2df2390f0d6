"""What the objectives of a policy go with (`policy.method`)."""

from __future__ import annotations

from collections.abc import Iterator

from aria_dvc.settings import PolicyParams

ADDS_UP = ("terminal", "progress")  # credits that say what every turn was paid
PAIRED = ("trajectory_dpo", "step_dpo")


def objective_problems(name: str, policy: PolicyParams, by_model: bool) -> Iterator[str]:
    """What the method of the variant `name` does not go with.

    Args:
        by_model: whether a reward model's scores are its credit online.
    """
    if policy.method == "ppo" and policy.credit not in ADDS_UP:
        yield (
            f"variants.{name}.credit: ppo adds up what every turn was paid, but {policy.credit} is "
            f"a return: use one of {', '.join(ADDS_UP)}"
        )
    if policy.method == "gigpo" and policy.credit != "gigpo":
        yield f"variants.{name}.credit: gigpo trains on credit gigpo, not on {policy.credit}"
    if policy.method in PAIRED and policy.kl > 0:
        yield f"variants.{name}.kl: {policy.method} is held to the base model by dpo.beta: use 0"
    if by_model and policy.method not in ("reinforce", "behaviour_cloning"):
        yield (
            f"online.credit: {name} is trained by {policy.method}, which takes no scores of a "
            "reward model: use games"
        )
