"""TRL's GRPO with a credit for every turn: advantages (B, T) in place of one a completion.

    credits = TurnCredits("fitted/", agent="assistant")
    Trainer = with_turn_credits(GRPOTrainer, credits)
    Trainer(model=..., reward_funcs=[credits, ...], train_dataset=..., args=...)

Prompts and completions must be conversational (lists of messages).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aria_dvc.adapters.credits import Messages, centred, credits_of, last_turns, over_turns
from aria_dvc.errors import AriaError


class TurnCredits:
    """A reward function: the last turn's credit, remembering those of all turns of the batch."""

    __name__ = "aria_credit"

    def __init__(
        self, source: str | Path, agent: str | None = None, key_env: str | None = None
    ) -> None:
        self._credits = credits_of(source, agent, key_env)
        self.turns: list[list[float]] = []
        self.prompts: list[str] = []

    def __call__(
        self, prompts: list[Messages], completions: list[Messages], **_: Any
    ) -> list[float]:
        if any(isinstance(text, str) for text in (*prompts, *completions)):
            raise AriaError("prompts or completions are texts: train on messages, which have turns")
        chats = [[*p, *c] for p, c in zip(prompts, completions, strict=True)]
        own = [sum(m["role"] == "assistant" for m in completion) for completion in completions]
        if 0 in own:
            raise AriaError(f"completion {own.index(0)} has no turn of the assistant")
        found = self._credits(chats)
        self.turns = [list(last_turns(row, n)) for row, n in zip(found, own, strict=True)]
        self.prompts = [repr(prompt) for prompt in prompts]
        return [row[-1] for row in self.turns]


def with_turn_credits(trainer: type, credits: TurnCredits) -> Any:
    """A subclass of GRPOTrainer whose advantages are the turns' credits, less their prompt's mean.

    The mean is over the completions of all processes, since TRL spreads those of a prompt over
    them. What the reward functions return is logged, and trains nothing.
    """
    from accelerate.utils import gather_object

    class TurnCreditTrainer(trainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            found = super()._generate_and_score_completions(inputs)
            mask = found["completion_mask"]
            if found.get("tool_mask") is not None:
                mask = mask * found["tool_mask"]
            own = centred(credits.turns, credits.prompts, gather_object)
            found["advantages"] = over_turns(mask, own)
            return found

    return TurnCreditTrainer
