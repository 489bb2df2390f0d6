"""A trained reward model at work: credits of actions, whole dialogues in one pass each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from aria_dvc.chat import Message, Renderer
from aria_dvc.errors import AriaError
from aria_dvc.learning.batches import Paired
from aria_dvc.learning.examples import Dialogue, Key, build_examples
from aria_dvc.learning.models import Precision, load_tokenizer, uses_bfloat16
from aria_dvc.learning.reward_model import load_scored, predict, read_scale, regression_collate


class RewardScorer:
    """Scores (history, action) with the reward model in a folder.

    Args:
        folder: data/reward_model/<category>.
        base_dir: the backbone under a LoRA adapter; None takes the one that the adapter names.
        max_tokens: longer histories keep their most recent whole exchanges.

    Raises:
        AriaError: the folder holds no reward model.
    """

    def __init__(
        self,
        folder: str | Path,
        base_dir: str | Path | None = None,
        *,
        max_tokens: int = 4096,
        tokens_per_batch: int = 4096,
        precision: Precision = "auto",
        trust_remote_code: bool = False,
    ) -> None:
        folder = Path(folder)
        self.scale = read_scale(folder)
        self.tokenizer = load_tokenizer(folder, trust_remote_code=trust_remote_code)
        self.renderer = Renderer(self.tokenizer)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = load_scored(folder, base_dir, trust_remote_code).to(device).eval()
        self.max_tokens = max_tokens
        self.tokens_per_batch = tokens_per_batch
        self.bfloat16 = uses_bfloat16(precision)

    def score(self, chats: Sequence[Sequence[Message]]) -> np.ndarray:
        """Credit of the last message of every chat, which is the action: (n,) float64.

        Raises:
            AriaError: a chat does not end with an assistant message, or does not fit.
        """
        for index, chat in enumerate(chats):
            if not chat or chat[-1]["role"] != "assistant":
                raise AriaError(
                    f"items[{index}]: the last message must be the assistant's, it is the action"
                )
        last = [scores[-1] for scores in self.score_chats(chats)]
        if None in last:
            raise AriaError(
                f"items[{last.index(None)}]: the action does not fit into {self.max_tokens} "
                "tokens: shorten it or raise the limit"
            )
        return np.array(last, dtype=np.float64)

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
            regression_collate(self.tokenizer.pad_token_id, {}),
            tokens_per_batch=self.tokens_per_batch,
            bfloat16=self.bfloat16,
        )
        keys = [key for example, _ in data for key in example.keys]
        return dict(zip(keys, scores.tolist(), strict=True))


def _action_places(chat: Sequence[Message]) -> list[int]:
    return [i for i, message in enumerate(chat) if message["role"] == "assistant"]
