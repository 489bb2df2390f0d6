"""Dialogues whose right credit is known."""

from __future__ import annotations

import numpy as np

from aria_dvc.credit.methods.registry import method_names
from aria_dvc.intentions.log import Log

GUESSING = {"belief", "information_gain"}  # of guessing games alone
ANY_GAME = [name for name in method_names() if name not in GUESSING]


def dialogues(
    episodes: int = 40, turns: int = 4, topics: int = 4, seed: int = 0, noise: float = 0.1
) -> Log:
    """Questions on random topics and answers: topic 0 asked at any time raises the return by 1."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(2 * topics, 8))
    rows, returns = [], []
    for episode in range(episodes):
        asked = rng.integers(0, topics, turns)
        answered = topics + rng.integers(0, topics, turns)
        for turn in range(turns):
            rows += [(episode, "agent", asked[turn]), (episode, "oracle", answered[turn])]
            returns += [float(asked[turn] == 0) + noise * rng.normal(), np.nan]
    labels = np.array([row[2] for row in rows])
    vectors = centres[labels] + 0.1 * rng.normal(size=(len(rows), 8))
    role = np.array([row[1] for row in rows])
    return Log(
        np.array([row[0] for row in rows]),
        role,
        role == "agent",
        np.array([f"utterance about topic {label}" for label in labels], dtype=object),
        vectors.astype(np.float32),
        labels,
        np.array(returns),
    )
