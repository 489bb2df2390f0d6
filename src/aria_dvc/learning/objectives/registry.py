"""The objectives by the name that `policy.method` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aria_dvc.learning.objectives.base import Objective
from aria_dvc.learning.objectives.dpo import StepDpo, TrajectoryDpo
from aria_dvc.learning.objectives.grpo import Grpo, OfCredit
from aria_dvc.learning.objectives.ppo import Ppo
from aria_dvc.learning.objectives.reinforce import Reinforce
from aria_dvc.learning.objectives.spag import Spag

if TYPE_CHECKING:
    from aria_dvc.settings.training import PolicyParams

METHODS: dict[str, type[Objective]] = {
    "reinforce": Reinforce,
    "behaviour_cloning": Reinforce,
    "ppo": Ppo,
    "grpo": Grpo,
    "gigpo": OfCredit,
    "igpo": OfCredit,
    "spag": Spag,
    "trajectory_dpo": TrajectoryDpo,
    "step_dpo": StepDpo,
}


def objective_of(params: PolicyParams) -> Objective:
    """The objective of a policy that is trained (`policy.method` is not `none`)."""
    return METHODS[params.method](params)
