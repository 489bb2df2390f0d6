"""verl: an advantage estimator for rewards that stand at each turn's last token.

    register()                                   # then algorithm.adv_estimator=aria

Put the credits there by `rm_scores` in your reward manager. `grpo` would add them up and lose the
turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.adapters.credits import (
    Messages,
    at_turn_ends,
    centred,
    credits_of,
    last_turns,
    over_turns,
    sums_of_turns,
    turn_counts,
)

if TYPE_CHECKING:
    import torch

NAME = "aria"


def turn_scores(source: str | Path, **options: Any) -> Callable[..., torch.Tensor]:
    """A function (chats, response_mask (B, T)) -> rm_scores (B, T); options as `credits_of`.

    Only the last turns of a chat are in its response: as many as the mask has runs of ones.
    """
    credits = credits_of(source, **options)

    def scores(chats: Sequence[Messages], mask: torch.Tensor) -> torch.Tensor:
        found = credits(chats)
        own = [last_turns(row, n) for row, n in zip(found, turn_counts(mask), strict=True)]
        return at_turn_ends(mask, own)

    return scores


def estimate(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any = None,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(advantages, returns), (B, T) each: every token of a turn gets what its turn has.

    That is its reward at the end, less what a penalty in the reward (KL) takes at its tokens.
    Advantages are less the mean over all turns of the group (`index`, the prompt's uid).
    """
    values = sums_of_turns(response_mask, token_level_rewards)
    groups = list(range(len(values))) if index is None else list(index)
    advantages = over_turns(response_mask, centred(values, groups))
    return advantages, over_turns(response_mask, values)


def register() -> Any:
    """Make the estimator known to verl as NAME."""
    from verl.trainer.ppo.core_algos import register_adv_est

    return register_adv_est(NAME)(estimate)
