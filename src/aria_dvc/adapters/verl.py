"""verl: an advantage estimator for rewards that stand at each turn's last token.

    register()                                   # then algorithm.adv_estimator=aria

Put the credits there by `rm_scores` in your reward manager. `grpo` would add them up and lose the
turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.adapters.credits import Messages, at_turn_ends, centred, credits_of, over_turns

if TYPE_CHECKING:
    import torch

NAME = "aria"


def turn_scores(source: str | Path, **options: Any) -> Callable[..., torch.Tensor]:
    """A function (chats, response_mask (B, T)) -> rm_scores (B, T); options as `credits_of`.

    Only the last turns of a chat are in its response: as many as the mask has runs of ones.
    """
    credits = credits_of(source, **options)

    def scores(chats: Sequence[Messages], mask: torch.Tensor) -> torch.Tensor:
        runs = ((mask[:, 1:] > mask[:, :-1]).sum(dim=1) + (mask[:, 0] > 0)).tolist()
        found = credits(chats)
        own = [row[len(row) - int(n) :] for row, n in zip(found, runs, strict=True)]
        return at_turn_ends(mask, own)

    return scores


def estimate(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any = None,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(advantages, returns), (B, T) each: every token of a turn gets what stands at its end.

    Advantages are less the mean over all turns of the group (`index`, the prompt's uid).
    """
    ends = at_turn_ends(response_mask, _ones(response_mask)).bool()
    values = [row[end].tolist() for row, end in zip(token_level_rewards, ends, strict=True)]
    groups = list(range(len(values))) if index is None else list(index)
    advantages = over_turns(response_mask, centred(values, groups))
    return advantages, over_turns(response_mask, values)


def _ones(mask: torch.Tensor) -> list[list[float]]:
    starts = (mask[:, 1:] > mask[:, :-1]).sum(dim=1) + (mask[:, 0] > 0)
    return [[1.0] * int(count) for count in starts]


def register() -> Any:
    """Make the estimator known to verl as NAME."""
    from verl.trainer.ppo.core_algos import register_adv_est

    return register_adv_est(NAME)(estimate)
