"""What the objectives of a policy go with (`policy.method`)."""

from __future__ import annotations

from collections.abc import Iterator

from aria_dvc.settings.training import CREDITED, PolicyParams

ESTIMATOR = "estimator"
ADDS_UP = ("terminal", "progress", ESTIMATOR)  # credits that say what every turn was paid
OWN_CREDIT = {"gigpo": "gigpo", "igpo": "information_gain"}  # of methods that know one alone
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
    own = OWN_CREDIT.get(policy.method, policy.credit)
    if policy.credit != own:
        yield (
            f"variants.{name}.credit: {policy.method} trains on credit {own}, not on "
            f"{policy.credit}"
        )
    if policy.method in PAIRED and policy.kl > 0:
        yield f"variants.{name}.kl: {policy.method} is held to the base model by dpo.beta: use 0"
    if by_model and policy.method != "reinforce":
        yield (
            f"online.credit: {name} is trained by {policy.method}, which takes no scores of a "
            "reward model: use games"
        )
    if by_model and policy.method == "reinforce" and policy.advantage == "value":
        yield (
            f"variants.{name}.advantage: a reward model's scores (online.credit) have no value of "
            "their own: use group or centred"
        )


def estimator_problems(
    name: str, policy: PolicyParams, trained: bool, online: bool
) -> Iterator[str]:
    """Why the variant `name` cannot have its credit from the stage progress.

    Args:
        trained: whether that stage trains. online: whether the variant goes on with fresh games.
    """
    if policy.credit != ESTIMATOR or policy.method not in CREDITED:
        return
    if not trained:
        yield f"variants.{name}.credit: estimator is trained only with progress.train: true: set it"
    if online:
        yield (
            f"online.variants: {name} trains on credit estimator, which judges the games of the "
            "logs and no fresh ones: take it off the list, or use credit: progress"
        )
