"""rLLM: the credits of steps, as the advantages that its trainer takes as they are.

    hook = with_turn_credits(_default_traj_grouping_hook, credits_of("fitted/", agent="assistant"))
    AgentTrainer(backend="tinker", traj_grouping_hook=hook, ...)

with `rllm.algorithm.use_precomputed_advantage=true`. Only on its tinker backend and those made from
it: the verl backend has one number a trajectory. Validation goes through the hook too, and has no
`val/reward` of groups with advantages; correctness is reported as before.

Read in rllm-org/rllm, 0.3.0.pre at commit 9beb6e0f (August 2026): rllm/types.py,
rllm/trainer/algorithms/{advantage,transform}.py, docs/training/precompute-advantage.mdx. rLLM is
not on PyPI: tested against these documented fields, not run in the package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aria_dvc.adapters.credits import Credits, centred
from aria_dvc.errors import AriaError


def credit_groups(groups: Sequence[Any], credits: Credits) -> None:
    """Set `advantage` of every step of these TrajectoryGroups, in place.

    It is one float, which rLLM gives to all of the step's tokens: the credit of the step's reply,
    less the mean over all steps of the group.

    Raises AriaError for a step whose `chat_completions` do not end with the model's reply.
    """
    runs = [
        (n, run) for n, group in enumerate(groups) for t in group.trajectories for run in _runs(t)
    ]
    turns = [[_turn(step) for step in run] for _, run in runs]
    found = credits([run[-1].chat_completions for _, run in runs])
    own = [[row[turn] for turn in some] for row, some in zip(found, turns, strict=True)]
    advantages = centred(own, [n for n, _ in runs])
    for (_, run), values in zip(runs, advantages, strict=True):
        for step, value in zip(run, values, strict=True):
            step.advantage = float(value)


def with_turn_credits(hook: Callable[..., Any], credits: Credits) -> Callable[..., Any]:
    """A `traj_grouping_hook` that groups as `hook` does and credits the steps of the groups."""

    def grouped(episodes: Any, *configs: Any) -> Any:
        groups = hook(episodes, *configs)
        credit_groups(groups, credits)
        return groups

    return grouped


def _runs(trajectory: Any) -> list[list[Any]]:
    """The steps, by the chat that holds them: one of all where each chat goes on from the last."""
    steps = trajectory.steps
    return [steps] if steps and trajectory.is_cumulative() else [[step] for step in steps]


def _turn(step: Any) -> int:
    """Which of the assistant's messages of its chat the step made: the last."""
    chat = step.chat_completions
    if not chat or chat[-1]["role"] != "assistant":
        raise AriaError(
            f"step {step.id}: its chat_completions must end with the reply: set them in the flow"
        )
    return sum(message["role"] == "assistant" for message in chat) - 1
