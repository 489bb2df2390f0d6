"""Tokens and seconds per epoch: one pass per dialogue against one pass per turn.

    python benchmarks/training.py --model data/base_model --turns 16 --dialogues 4

Both sides train the same actions of the same dialogues with the same trainer, LoRA, precision and
token budget (params.yaml's unless given); both compute logits only where a loss is taken. Prints
JSON.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import orjson

from aria_dvc.chat import Line, Renderer, view
from aria_dvc.learning.batches import Paired
from aria_dvc.learning.examples import NO_ACTION, Dialogue, Example, build_examples
from aria_dvc.learning.objective import policy_collate
from aria_dvc.learning.policy import PolicyTrainer
from aria_dvc.learning.trainer import FitSettings, fit, make_deterministic
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import add_lora
from aria_dvc.models.source import ModelSource
from aria_dvc.params import load_params
from aria_dvc.settings import Lora, Pace, Precision

QUESTIONS = (
    "Is it an animal?",
    "Is it bigger than a chair?",
    "Can you eat it?",
    "Is it made of wood?",
)
ANSWERS = ("Yes.", "No.", "Sometimes, but not often.", "It depends on who you ask.")
PROMPT = (
    "You play Twenty Questions. Find out which object is hidden by asking at most 20 questions "
    "that can be answered with yes or no. Ask one short question each turn."
)
LORA = Lora(
    rank=8, alpha=16, dropout=0.0, target_modules=["q_proj", "k_proj", "v_proj"], layers=None
)


@dataclass(frozen=True)
class Cost:
    """One epoch. tokens: without padding; loss: mean over actions."""

    sequences: int
    tokens: int
    seconds: float
    loss: float


def made_up_dialogues(count: int, turns: int, seed: int) -> list[Dialogue]:
    """Question-and-answer dialogues of exactly `turns` own turns."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        lines: list[Line] = []
        for _ in range(turns):
            lines += [("agent", rng.choice(QUESTIONS)), ("oracle", rng.choice(ANSWERS))]
        messages = view(lines, "agent", PROMPT)
        positions = list(range(0, 2 * turns, 2))
        found.append(Dialogue("twenty_questions", str(number), "agent", messages, positions))
    return found


def one_turn_each(examples: Sequence[Example]) -> list[Example]:
    """The textbook's data: every action as a sequence of its own, after its whole history."""
    single = []
    for example in examples:
        for index, key in enumerate(example.keys):
            end = int(np.flatnonzero(example.action == index)[-1]) + 1
            action = np.where(example.action[:end] == index, 0, NO_ACTION).astype(np.int32)
            single.append(
                Example(
                    example.log,
                    example.episode_id,
                    example.role,
                    example.input_ids[:end],
                    action,
                    (key,),
                )
            )
    return single


def epoch_cost(source: ModelSource, examples: Sequence[Example], pad_id: int, pace: Pace) -> Cost:
    """Train one epoch as one optimiser step and time it, after a warm-up on the shortest."""
    make_deterministic(0)
    model = add_lora(load_model(source), LORA, "policy")
    data: list[Paired] = [(e, np.ones(len(e.keys), dtype=np.float32)) for e in examples]
    settings = FitSettings(learning_rate=1e-4, seed=0, pace=pace)
    shortest = int(np.argmin([len(e) for e in examples]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        collate = policy_collate(pad_id)
        fit(PolicyTrainer, model, data, [np.array([shortest])], collate, folder, settings)
        begin = time.perf_counter()
        trainer = fit(PolicyTrainer, model, data, [np.arange(len(data))], collate, folder, settings)
        seconds = time.perf_counter() - begin
    loss = next(row["loss"] for row in trainer.state.log_history if "loss" in row)
    return Cost(len(data), sum(len(e) for e in examples), round(seconds, 2), loss)


def main() -> None:
    pace = load_params().pace
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="data/base_model", help="model folder")
    parser.add_argument("--turns", type=int, default=16, help="own turns per dialogue")
    parser.add_argument("--dialogues", type=int, default=4)
    parser.add_argument("--tokens-per-batch", type=int, default=pace.tokens_per_batch)
    parser.add_argument("--precision", default=pace.precision, choices=get_args(Precision))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    source = ModelSource(args.model)
    tokenizer = load_tokenizer(source)
    found = made_up_dialogues(args.dialogues, args.turns, args.seed)
    whole = build_examples(found, Renderer(tokenizer), 1 << 20).items
    pace = pace.model_copy(
        update={"tokens_per_batch": args.tokens_per_batch, "precision": args.precision}
    )
    costs = {
        name: epoch_cost(source, examples, tokenizer.pad_token_id, pace)
        for name, examples in (("dialogue", whole), ("turn", one_turn_each(whole)))
    }
    report = {
        **{name: asdict(cost) for name, cost in costs.items()},
        "times_fewer_tokens": round(costs["turn"].tokens / costs["dialogue"].tokens, 2),
        "times_faster": round(costs["turn"].seconds / costs["dialogue"].seconds, 2),
    }
    print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())


if __name__ == "__main__":
    main()
