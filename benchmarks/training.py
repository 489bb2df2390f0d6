"""Seconds per epoch on the same games: turn by turn, padded dialogues, prefix trees.

    python benchmarks/training.py --model data/base_model --games bargaining negotiation

All ways train the same actions with the same trainer, LoRA and token budget (params.yaml's unless
given), and compute logits only where a loss is taken. `turn` and `padded` keep the frozen weights
in float32 and cast them at every product; `packed` holds them in the precision of play. `lanes` is
`packed` with the micro-batches side by side (pace.processes); all others share every product among
the cores. The ways take turns, and the fastest round of each counts. Prints JSON.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import orjson
import torch

from aria_dvc.chat import Renderer, view
from aria_dvc.games.alternating import AlternatingMatch
from aria_dvc.games.base import Match
from aria_dvc.games.registry import get_game
from aria_dvc.learning.batches import Paired
from aria_dvc.learning.examples import NO_ACTION, Dialogue, Example, build_examples
from aria_dvc.learning.objective import policy_collate
from aria_dvc.learning.policy import PolicyTrainer
from aria_dvc.learning.trainer import FitSettings, fit, make_deterministic
from aria_dvc.models.hardware import inference_dtype
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import add_lora, cast_by_autocast
from aria_dvc.models.source import ModelSource
from aria_dvc.params import load_params
from aria_dvc.players.dialogues import play_out, scripted_dialogues
from aria_dvc.players.scripted import ScriptedPlayer
from aria_dvc.settings.machine import Pace, Precision
from aria_dvc.settings.training import Lora

LORA = Lora(
    rank=8, alpha=16, dropout=0.0, target_modules=["q_proj", "k_proj", "v_proj"], layers=None
)


@dataclass(frozen=True)
class Way:
    """How an epoch is computed. own_precision: of the frozen weights; otherwise float32."""

    one_turn: bool = False
    packed: bool = False
    own_precision: bool = False
    lanes: bool = False


WAYS = {
    "turn": Way(one_turn=True),
    "padded": Way(),
    "packed, float32 weights": Way(packed=True),
    "packed": Way(packed=True, own_precision=True),
    "lanes": Way(packed=True, own_precision=True, lanes=True),
}


@dataclass(frozen=True)
class Cost:
    """One epoch. computed_tokens: padding included; loss: mean over actions.

    cpu_seconds: of all threads; says more than seconds where other work shares the machine.
    """

    sequences: int
    computed_tokens: int
    seconds: float
    cpu_seconds: float
    games_per_second: float
    loss: float


def matches(name: str, count: int, repeats: int, seed: int) -> list[Match]:
    """`count` scripted games, so many neighbours with one configuration.

    Raises:
        SystemExit: repeats of a game that is not played by two sides of equal kind.
    """
    first = scripted_dialogues(name, -(-count // repeats), seed)
    if repeats == 1:
        return first
    if not all(isinstance(match, AlternatingMatch) for match in first):
        raise SystemExit(f"--repeats: {name} has no strategies for every role")
    found = []
    for match in first:
        for number in range(repeats):
            again = get_game(name).start(match.config)
            players = {role: ScriptedPlayer("mixed") for role in again.roles}
            play_out(again, players, seed + number)
            found.append(again)
    return found


def games(names: Sequence[str], count: int, seed: int, repeats: int = 1) -> list[Dialogue]:
    """`count` scripted games of each name, as every role that is rewarded saw them."""
    found = []
    for name in names:
        for number, match in enumerate(matches(name, count, repeats, seed)):
            for role in match.roles:
                messages = view(match.lines, role, match.system_prompt(role))
                positions = [i for i, (speaker, _) in enumerate(match.lines) if speaker == role]
                if positions:
                    found.append(Dialogue(name, str(number), role, messages, positions))
    return found


def one_turn_each(examples: Sequence[Example]) -> list[Example]:
    """The textbook's data: every action as a sequence of its own, after its whole history."""
    single = []
    for example in examples:
        for index, key in enumerate(example.keys):
            end = int(np.flatnonzero(example.action == index)[-1]) + 1
            action = np.where(example.action[:end] == index, 0, NO_ACTION).astype(np.int32)
            ids = example.input_ids[:end]
            single.append(replace(example, input_ids=ids, action=action, keys=(key,)))
    return single


class Epoch:
    """A model and its data, trained on again and again in one way."""

    def __init__(
        self, way: Way, source: ModelSource, examples: Sequence[Example], pad_id: int, pace: Pace
    ) -> None:
        make_deterministic(0)
        dtype = inference_dtype(pace.precision) if way.own_precision else torch.float32
        self.model = add_lora(load_model(source, dtype=dtype), LORA, "policy")
        if way.own_precision:
            cast_by_autocast(self.model)
        self.examples = one_turn_each(examples) if way.one_turn else list(examples)
        self.collate = policy_collate(pad_id, model=self.model if way.packed else None)
        own = pace if way.lanes else pace.model_copy(update={"processes": 1})
        self.settings = FitSettings(learning_rate=1e-4, seed=0, pace=own)

    def run(self, batches: list[np.ndarray]) -> tuple[float, float, float]:
        """Seconds and CPU seconds of the steps, and the last one's loss."""
        data: list[Paired] = [(e, np.ones(len(e.keys), dtype=np.float32)) for e in self.examples]
        with tempfile.TemporaryDirectory() as scratch:
            begin, begin_cpu = time.perf_counter(), time.process_time()
            trainer = fit(
                PolicyTrainer,
                self.model,
                data,
                batches,
                self.collate,
                Path(scratch),
                self.settings,
            )
            seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
        return seconds, cpu, [row["loss"] for row in trainer.state.log_history if "loss" in row][-1]

    def cost(self, rounds: Sequence[tuple[float, float, float]], count: int) -> Cost:
        """Args:
        rounds: what `run` returned.
        count: games in an epoch.
        """
        seconds, cpu = (min(values) for values in list(zip(*rounds, strict=True))[:2])
        budget = self.settings.pace.tokens_per_batch
        tokens = sum(
            self.collate.lay_out([self.examples[i] for i in group]).inputs["input_ids"].numel()
            for group in self.collate.cut(self.examples, budget)
        )
        speed = round(count / seconds, 2)
        times = round(seconds, 2), round(cpu, 2)
        return Cost(len(self.examples), tokens, *times, speed, rounds[0][2])


def measure(
    source: ModelSource, found: Sequence[Dialogue], pace: Pace, rounds: int, ways: Sequence[str]
) -> dict[str, Any]:
    """The cost of an epoch as one optimiser step, way by way, after a warm-up."""
    tokenizer = load_tokenizer(source)
    examples = build_examples(found, Renderer(tokenizer), 1 << 20).items
    epochs = {
        name: Epoch(WAYS[name], source, examples, tokenizer.pad_token_id, pace) for name in ways
    }
    for epoch in epochs.values():
        epoch.run([np.array([int(np.argmin([len(e) for e in epoch.examples]))])])
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, epoch in epochs.items():
            times[name].append(epoch.run([np.arange(len(epoch.examples))]))
    count = len({(dialogue.log, dialogue.episode_id) for dialogue in found})
    costs = {name: epoch.cost(times[name], count) for name, epoch in epochs.items()}
    report: dict[str, Any] = {name: asdict(cost) for name, cost in costs.items()}
    for slow, fast in (("padded", "packed"), ("packed", "lanes")):
        if slow in costs and fast in costs:
            report[f"{fast} beside {slow}"] = ratios(costs[slow], costs[fast])
    return report


def ratios(slow: Cost, fast: Cost) -> dict[str, float]:
    """What `fast` saves."""
    return {
        "times_fewer_tokens": round(slow.computed_tokens / fast.computed_tokens, 2),
        "times_faster": round(slow.seconds / fast.seconds, 2),
        "times_less_cpu": round(slow.cpu_seconds / fast.cpu_seconds, 2),
    }


def main() -> None:
    pace = load_params().pace
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="data/base_model", help="model folder or name")
    parser.add_argument("--games", nargs="+", default=["bargaining", "negotiation"])
    parser.add_argument("--episodes", type=int, default=24, help="of each game")
    parser.add_argument("--repeats", type=int, default=1, help="games that share a configuration")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens-per-batch", type=int, default=pace.tokens_per_batch)
    parser.add_argument("--precision", default=pace.precision, choices=get_args(Precision))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    found = games(args.games, args.episodes, args.seed, args.repeats)
    pace = pace.model_copy(
        update={"tokens_per_batch": args.tokens_per_batch, "precision": args.precision}
    )
    report = measure(ModelSource(args.model), found, pace, args.rounds, args.ways)
    print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())


if __name__ == "__main__":
    main()
