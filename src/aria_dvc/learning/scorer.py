"""A trained reward model at work: credits of actions, whole dialogues in one pass each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.chat import Message, Renderer
from aria_dvc.learning.batches import Paired
from aria_dvc.learning.examples import Dialogue, Key, build_examples
from aria_dvc.learning.reward_head import load_scored, predict, read_scale, regression_collate
from aria_dvc.models.hardware import best_device, uses_bfloat16
from aria_dvc.models.loading import load_tokenizer
from aria_dvc.models.source import ModelSource

if TYPE_CHECKING:
    from aria_dvc.settings.machine import Precision


class RewardScorer:
    """Scores (history, action) with a reward model.

    Args:
        source: data/reward_model/<category>.
        backbone: what lies under a LoRA adapter; None takes the one that the adapter names.
        max_tokens: longer histories keep their most recent whole exchanges.
        tokens_per_batch: padded tokens in one forward pass.

    Raises:
        AriaError: the folder holds no reward model.
    """

    def __init__(
        self,
        source: ModelSource,
        backbone: ModelSource | None = None,
        *,
        max_tokens: int,
        tokens_per_batch: int,
        precision: Precision,
    ) -> None:
        self.scale = read_scale(source.folder)
        self.tokenizer = load_tokenizer(source)
        self.renderer = Renderer(self.tokenizer)
        self.model = load_scored(source, backbone).to(best_device()).eval()
        self.max_tokens = max_tokens
        self.tokens_per_batch = tokens_per_batch
        self.bfloat16 = uses_bfloat16(precision)

    def score_chats(self, chats: Sequence[Sequence[Message]]) -> list[list[float | None]]:
        """Credit of every assistant message of every chat; None for one that does not fit."""
        dialogues = [
            Dialogue("", str(i), "", list(chat), _action_places(chat))
            for i, chat in enumerate(chats)
        ]
        scores = self.score_dialogues(dialogues)
        return [[scores.get(("", d.episode_id, p)) for p in d.positions] for d in dialogues]

    def score_dialogues(self, dialogues: Sequence[Dialogue]) -> dict[Key, float]:
        """Credit of every action that fits into `max_tokens`, one pass a dialogue."""
        examples = build_examples(dialogues, self.renderer, self.max_tokens).items
        data: list[Paired] = [(e, np.zeros(len(e.keys), dtype=np.float32)) for e in examples]
        return self._predict(data) if data else {}

    def _predict(self, data: Sequence[Paired]) -> dict[Key, float]:
        scores = predict(
            self.model,
            data,
            self.scale,
            regression_collate(self.tokenizer.pad_token_id, {}, model=self.model),
            tokens_per_batch=self.tokens_per_batch,
            bfloat16=self.bfloat16,
        )
        keys = [key for example, _ in data for key in example.keys]
        return dict(zip(keys, scores.tolist(), strict=True))


def _action_places(chat: Sequence[Message]) -> list[int]:
    return [i for i, message in enumerate(chat) if message["role"] == "assistant"]
