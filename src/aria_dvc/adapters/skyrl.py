"""SkyRL: a credit as the reward of every turn, and the advantage estimator that keeps the turns.

    register()                                 # then trainer.algorithm.advantage_estimator=aria
    credits = credits_of("fitted/", agent="assistant")
    skyrl_gym.register("mine", with_turn_credits(Env, credits))     # with SkyRL's own generator
    credit_output(output, chats, credits)                           # or at the end of your own

Not with `generator.step_wise_trajectories`, which keeps the last step's reward only, nor with
`trainer.algorithm.use_kl_in_reward`. What SkyRL reports as reward is then the sum of the credits:
give rows of evaluation the environment itself.

Read in NovaSky-AI/SkyRL at commit a9564572 (August 2026, skyrl 0.3.0, skyrl-gym 0.4.0):
skyrl/train/generators/{base,skyrl_gym_generator}.py, skyrl/train/trainer.py,
skyrl/backends/skyrl_train/utils/ppo_utils.py, skyrl_gym/envs/base_text_env.py. Its trainer imports
from Python 3.12 on: tested against these documented fields, not run in the package.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from aria_dvc.adapters.credits import (
    Credits,
    Messages,
    at_turn_ends,
    centred,
    last_turns,
    turn_counts,
)
from aria_dvc.errors import AriaError

if TYPE_CHECKING:
    import torch

NAME = "aria"
NOUGHT = -1e-30  # a credit of 0: the estimator knows turns by rewards; below 0, it passes nothing


def with_turn_credits(env: type, credits: Credits) -> type:
    """A subclass of a BaseTextEnv whose reward of a step is the credit of the model's message."""
    lock = Lock()  # SkyRL steps environments in threads

    class TurnCreditEnv(env):  # type: ignore[misc]
        def init(self, prompt: Messages) -> Any:
            first, info = super().init(prompt)
            self._said = [*first]
            return first, info

        def step(self, action: str) -> dict[str, Any]:
            found = super().step(action)
            kept = found.get("postprocessed_action")
            self._said.append({"role": "assistant", "content": action if kept is None else kept})
            with lock:
                credit = credits([self._said])[0][-1]
            self._said += found["observations"]
            return {**found, "reward": credit or NOUGHT}

    return TurnCreditEnv


def credit_output(output: dict[str, Any], chats: Sequence[Messages], credits: Credits) -> None:
    """Set the rewards of a GeneratorOutput, in place: each turn's credit at its last token.

    chats: one a response. Turns are runs of ones of `loss_masks`; only a chat's last are in it.

    Raises AriaError for a step-wise output, and for turns that are not those of the chat.
    """
    import torch

    if output.get("is_last_step") is not None:
        raise AriaError("step-wise output has one reward: set step_wise_trajectories=false")
    masks = [torch.tensor(mask) for mask in output["loss_masks"]]
    table = torch.nn.utils.rnn.pad_sequence(masks, batch_first=True)
    found = zip(credits(chats), turn_counts(table), strict=True)
    own = [[credit or NOUGHT for credit in last_turns(row, n)] for row, n in found]
    rewards = at_turn_ends(table, own)
    output["rewards"] = [row[: len(m)].tolist() for row, m in zip(rewards, masks, strict=True)]


def estimate(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Sequence[Hashable],
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(advantages, returns), (B, T) each: every token has the reward of the turn that it leads to.

    SkyRL's response_mask holds observations too; the loss leaves them out. Advantages are less the
    mean over all turns of the group (`index`, the prompt's uid). Tokens after the last reward,
    and responses without any, have 0.

    Raises AriaError where a penalty stands among the rewards.
    """
    import torch

    if getattr(config, "use_kl_in_reward", False):
        raise AriaError("use_kl_in_reward hides where turns end: set use_kl_loss=true instead")
    ends = (token_level_rewards != 0).long()
    turns = ends.cumsum(dim=1) - ends
    values = [row[row != 0].tolist() for row in token_level_rewards]

    def spread(rows: Sequence[Sequence[float]]) -> torch.Tensor:
        tables = [torch.tensor([*row, 0.0]) for row in rows]
        table = torch.nn.utils.rnn.pad_sequence(tables, batch_first=True).to(turns.device)
        return table.gather(1, turns) * response_mask

    return spread(centred(values, list(index))), spread(values)


def register() -> None:
    """Make the estimator known to SkyRL as NAME."""
    from skyrl.backends.skyrl_train.utils.ppo_utils import AdvantageEstimatorRegistry

    if NAME not in AdvantageEstimatorRegistry.list_available():
        AdvantageEstimatorRegistry.register(NAME, estimate)
