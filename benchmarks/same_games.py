"""Playing and training on the same games, beside another commit of the project.

    git worktree add /tmp/before 7d96ac1
    python benchmarks/same_games.py --against /tmp/before [--threads 2] [--rounds 3]

The model first plays games against itself; those that end by the rules of both checkouts are played
again in each, every reply being what was said in the game: prompts, engine, sampler and rules are
the checkout's own, and what is computed for the words is what it would have been had they been
drawn. Then an epoch of their actions is trained as one step of LoRA. The checkouts take turns, in
processes of their own with the same threads; the first round of each warms up and does not count.
Medians in seconds, and their ratios, as JSON. The other checkout may be as old as 7d96ac1.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

HERE = Path(__file__).resolve().parent.parent
GAMES = ("bargaining", "negotiation")
IN_FLIGHT = 64
CACHE_BYTES = 3 << 30
LONGEST = 64  # tokens of a reply

Game = dict[str, Any]  # episode_id, game, config, lines: [role, text] each


def games_played(model: str, count: int) -> list[Game]:
    """`count` games of each kind that the model plays against itself, without those forfeited."""
    from aria_dvc.arena.assignments import assign
    from aria_dvc.arena.collection import collect_series
    from aria_dvc.arena.series import Series
    from aria_dvc.games.registry import get_game
    from aria_dvc.models.source import ModelSource
    from aria_dvc.params import load_params
    from aria_dvc.players.registry import PlayerContext

    params = load_params(HERE / "params.yaml")
    player = PlayerContext(params.collect, params.pace, ModelSource(model), {}).player("policy")
    series = [
        Series(game, assign(game, count, 0), dict.fromkeys(game.roles, player), params.collect)
        for game in map(get_game, GAMES)
    ]
    return [
        {
            "episode_id": episode.episode_id,
            "game": episode.game,
            "config": dict(episode.record.config),
            "lines": [[line.role, line.text] for line in episode.utterances],
        }
        for episodes in collect_series(series, params.pace)
        for episode in episodes
        if episode.record.failure is None
    ]


# What follows runs in the checkout that is measured: only what all of them know is imported.


def started(game: Game) -> Any:
    """Its match; settings that this checkout's games do not have are left out."""
    from aria_dvc.games.registry import get_game

    kind = get_game(game["game"])
    known = kind.grids()["default"][0]
    return kind.start({name: value for name, value in game["config"].items() if name in known})


def replayed(game: Game) -> Any:
    """The match after all that was said; None where it is against the rules or not the end."""
    from aria_dvc.games.base import IllegalMove

    match = started(game)
    for role, text in game["lines"]:
        try:
            match.play(text)
        except IllegalMove:
            return None
        if match.lines[-1][0] != role:
            return None
    return match if match.to_move is None else None


class Said:
    """Stands where the engine draws numbers: gives the tokens of a reply, one after the other."""

    replies: ClassVar[list[list[int]]] = []  # by the seed of the reply

    def __init__(self, seed: int) -> None:
        self.left = iter(self.replies[seed])

    def random(self) -> int:
        return next(self.left)


def loaded(model: str) -> tuple[Any, Any]:
    """The model as it plays, and its renderer."""
    from aria_dvc.players import policy

    if hasattr(policy, "load_policy_model"):
        return policy.load_policy_model(model)
    from aria_dvc.models.loading import load_for_play, load_tokenizer
    from aria_dvc.models.source import ModelSource

    source = ModelSource(model)
    return load_for_play(source, None, "auto"), policy.TurnRenderer(load_tokenizer(source))


def play_seconds(model: str, games: list[Game], rounds: int) -> tuple[list[float], int, int]:
    """Seconds of each round; tokens of prompts computed, and of replies, in one."""
    import torch

    from aria_dvc.players.sampling import Sampling

    engines: Any = import_module("aria_dvc.players.engine")

    def choose(logits: Any, temperature: Any, top_p: Any, tokens: list[int]) -> Any:
        drawn(logits, temperature, top_p, [0.5] * len(tokens))
        return torch.tensor(tokens)

    drawn, engines.choose = engines.choose, choose
    engines.random = SimpleNamespace(Random=Said)
    network, renderer = loaded(model)
    end = renderer.end_ids()[0]
    slots = "slots" if "slots" in inspect.signature(engines.Engine).parameters else "seats"
    size = {slots: IN_FLIGHT, "cache_bytes": CACHE_BYTES}
    seconds, computed, generated = [], 0, 0

    async def play(engine: Any, game: Game, gate: asyncio.Semaphore) -> None:
        nonlocal computed, generated
        async with gate:
            match = started(game)
            for role, text in game["lines"]:
                words = renderer.tokenizer.encode(text, add_special_tokens=False)
                Said.replies.append([*words[: LONGEST - 1], end])
                sampling = Sampling(0.7, 0.95, LONGEST, len(Said.replies) - 1, False)
                asked = renderer.prompt_ids(match.messages(role))
                reply = await engine.generate((game["episode_id"], role), asked, sampling)
                computed += reply.computed_tokens
                generated += len(reply.token_ids)
                match.play(text)
            engine.finished(game["episode_id"])

    async def play_all() -> None:
        engine = engines.Engine(network, renderer.end_ids(), **size)
        gate = asyncio.Semaphore(IN_FLIGHT)
        await asyncio.gather(*(play(engine, game, gate) for game in games))
        await engine.close()

    for _ in range(rounds):
        computed = generated = 0
        begin = time.perf_counter()
        asyncio.run(play_all())
        seconds.append(time.perf_counter() - begin)
    return seconds, computed, generated


def train_seconds(model: str, games: list[Game], rounds: int) -> tuple[list[float], int]:
    """Seconds of each round, an epoch as one step; actions of an epoch."""
    from aria_dvc.chat import Renderer
    from aria_dvc.learning.examples import Dialogue, build_examples

    found = []
    for number, game in enumerate(games):
        match = replayed(game)
        for role in match.roles:
            own = [place for place, (speaker, _) in enumerate(match.lines) if speaker == role]
            if own:
                seen = match.messages(role)
                found.append(Dialogue(game["game"], str(number), role, seen, own))
    tokenizer = loaded(model)[1].tokenizer
    examples = build_examples(found, Renderer(tokenizer), 1 << 20).items
    epoch = first_version_epoch if "precision" in fit_options() else todays_epoch
    run = epoch(model, examples, tokenizer.pad_token_id)
    return [run() for _ in range(rounds)], sum(len(example.keys) for example in examples)


def fit_options() -> Any:
    from aria_dvc.learning.trainer import FitSettings

    return inspect.signature(FitSettings).parameters


def todays_epoch(model: str, examples: list[Any], pad_id: int) -> Any:
    """As online training computes it: prefix trees, micro-batches side by side."""
    import numpy as np

    from aria_dvc.models.source import ModelSource
    from aria_dvc.params import load_params
    from training import WAYS, Epoch

    pace = load_params(HERE / "params.yaml").pace
    epoch = Epoch(WAYS["lanes"], ModelSource(model), examples, pad_id, pace)
    return lambda: epoch.run([np.arange(len(examples))])[0]


def first_version_epoch(model: str, examples: list[Any], pad_id: int) -> Any:
    """As 7d96ac1 computed it: padded dialogues, 2,048 tokens at once, its benchmark's LoRA."""
    import numpy as np

    # By name, since these are the other checkout's, whose types nobody here can check.
    params, models, objective, policy, trainer = (
        import_module(f"aria_dvc.{name}")
        for name in (
            "params",
            "learning.models",
            "learning.objective",
            "learning.policy",
            "learning.trainer",
        )
    )
    trainer.make_deterministic(0)
    lora = params.Lora(rank=8, alpha=16, dropout=0.0, target_modules=["q_proj", "k_proj", "v_proj"])
    network = models.add_lora(models.load_model(model), lora, "policy")
    settings = trainer.FitSettings(
        learning_rate=1e-4, seed=0, precision="auto", tokens_per_batch=2048
    )
    data = [(example, np.ones(len(example.keys), dtype=np.float32)) for example in examples]
    batches = [np.arange(len(data))]

    def run() -> float:
        with tempfile.TemporaryDirectory() as scratch:
            begin = time.perf_counter()
            collate = objective.policy_collate(pad_id)
            folder = Path(scratch)
            trainer.fit(policy.PolicyTrainer, network, data, batches, collate, folder, settings)
            return time.perf_counter() - begin

    return run


# ... until here.


def asked(checkout: Path, task: str, file: Path, args: argparse.Namespace) -> Any:
    """What a process in that checkout answers."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "OMP_NUM_THREADS": str(args.threads),
    }
    words = [sys.executable, __file__, "--task", task, "--file", str(file), "--model", args.model]
    done = subprocess.run(
        [*words, "--rounds", str(args.rounds)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def answer(args: argparse.Namespace) -> Any:
    games: list[Game] = json.loads(args.file.read_text())
    if args.task == "readable":
        return [game["episode_id"] for game in games if replayed(game) is not None]
    if args.task == "train":
        seconds, actions = train_seconds(args.model, games, args.rounds + 1)
        return {"seconds": seconds[1:], "actions": actions}
    seconds, computed, generated = play_seconds(args.model, games, args.rounds + 1)
    return {"seconds": seconds[1:], "prompt_tokens": computed, "reply_tokens": generated}


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """By game and task: medians before and now, their ratio, and what was computed."""
    report: dict[str, Any] = {}
    sides = {"before": args.against.resolve(), "now": HERE}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "games.json"
        played = games_played(args.model, 2 * args.games)
        for name in GAMES:
            mine = [game for game in played if game["game"] == name]
            file.write_text(json.dumps(mine))
            legal = set.intersection(
                *(set(asked(s, "readable", file, args)) for s in sides.values())
            )
            mine = [game for game in mine if game["episode_id"] in legal][: args.games]
            file.write_text(json.dumps(mine))
            for task in ("play", "train"):
                found = {side: asked(folder, task, file, args) for side, folder in sides.items()}
                medians = {side: statistics.median(one["seconds"]) for side, one in found.items()}
                report[f"{task} {name}"] = {
                    "games": len(mine),
                    **{side: round(value, 2) for side, value in medians.items()},
                    "times_faster": round(medians["before"] / medians["now"], 2),
                    "runs": found,
                }
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--against", type=Path, help="folder of the other checkout")
    parser.add_argument("--model", default="data/base_model")
    parser.add_argument("--games", type=int, default=64, help="of each kind")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--task", choices=["readable", "play", "train"], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.task and not args.against:
        parser.error("--against: name the folder of the other checkout")
    print(json.dumps(answer(args) if args.task else compare(args), indent=None if args.task else 2))


if __name__ == "__main__":
    main()
