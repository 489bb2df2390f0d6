"""Small games in groups, of which everything is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from learning_tiny import tiny_tokenizer

from aria_dvc.chat import Renderer
from aria_dvc.learning.examples import Example, LogFrames, frames_examples

TOKENIZER = tiny_tokenizer()
RENDERER = Renderer(TOKENIZER)


def played(*games: tuple[str, Sequence[str], float], log: str = "bargaining") -> LogFrames:
    """Games of (group, texts in turns from Alice on, Alice's final reward); Bob has the rest of 1.

    The credit of an action is its final reward, its value a quarter.
    """
    rows: list[dict[str, Any]] = []
    for number, (group, texts, final) in enumerate(games):
        for position, text in enumerate(texts):
            role = ("alice", "bob")[position % 2]
            rows.append(
                {
                    "game": log, "episode_id": f"e{number}", "group_id": group,
                    "position": position, "role": role, "is_action": True,
                    "turn": position // 2 + 1, "turns": len(texts) // 2, "text": text,
                    "reward": final if role == "alice" else 1.0 - final,
                }
            )  # fmt: skip
    turns = pd.DataFrame(rows)
    rewards = turns[["episode_id", "position", "role", "turn", "reward"]].copy()
    rewards = rewards.assign(value=0.25, cell=0, cell_size=1, **{"return": rewards["reward"]})
    episodes = turns[["game", "episode_id", "group_id", "role"]].drop_duplicates()
    episodes = episodes.assign(system_prompt=lambda t: "You are " + t["role"] + ".", info="{}")
    return LogFrames(log, turns.drop(columns="group_id"), episodes, rewards)


def examples_of(frames: Sequence[LogFrames]) -> list[Example]:
    return frames_examples(frames, RENDERER, 512).items


def own_text(example: Example) -> str:
    """What the example's trained tokens say."""
    return str(TOKENIZER.decode(example.input_ids[example.action >= 0].tolist()))
