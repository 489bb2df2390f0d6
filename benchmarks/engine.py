"""Our in-process engine against transformers' continuous batching, on the same games.

    python benchmarks/engine.py --model data/base_model
    python benchmarks/engine.py --endpoint http://127.0.0.1:8036/v1

The baseline is transformers (`init_continuous_batching`, prefix sharing on); every ratio is ours
over it. Each run is a fresh process, so that its peak of memory is its own; the ways take turns.
Greedy games are then compared token by token: where two ways part, the gap is how far apart the
two tokens' logits are in a plain float32 pass, in nats.

On a busy machine read tokens per CPU second, and set OMP_NUM_THREADS=1: two threads of one matrix
product that wait for each other measure the neighbours.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from aria_dvc.arena.assignments import Assignment, assign
from aria_dvc.arena.collection import play_all
from aria_dvc.arena.series import Series
from aria_dvc.chat import Message, Renderer, view
from aria_dvc.errors import AriaError
from aria_dvc.files import write_json
from aria_dvc.games.registry import get_game
from aria_dvc.models.loading import load_for_play, load_tokenizer
from aria_dvc.models.source import ModelSource
from aria_dvc.params import load_params
from aria_dvc.players.allocator import DialogueKey
from aria_dvc.players.base import Player
from aria_dvc.players.engine import Engine, Generation
from aria_dvc.players.policy import PolicyPlayer, TurnRenderer
from aria_dvc.players.registry import PlayerContext
from aria_dvc.players.sampling import Sampling
from aria_dvc.players.slots import CacheShape
from aria_dvc.records.episodes import Episode
from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import Endpoint, Pace, Precision

PARAMS = Path(__file__).resolve().parent.parent / "params.yaml"
OURS, TRANSFORMERS, SERVER = "engine", "transformers", "server"
GAME, ROLE, ENVIRONMENT = "twenty_questions", "agent", "oracle"
GREEDY_PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")


@dataclass(frozen=True)
class Job:
    """What one process plays: `in_flight` games, all at once."""

    way: str
    in_flight: int
    temperature: float
    precision: Precision
    args: argparse.Namespace


@dataclass(frozen=True)
class Run:
    """What one process measured."""

    episodes_per_hour: float
    tokens_per_second: float
    tokens_per_cpu_second: float
    peak_gib: float
    games: list[Episode] = field(default_factory=list, repr=False)


SPEED = ("episodes_per_hour", "tokens_per_second")
IN_PROCESS = (*SPEED, "tokens_per_cpu_second", "peak_gib")  # of a server, only its client's
FIGURES = {OURS: IN_PROCESS, TRANSFORMERS: IN_PROCESS, SERVER: SPEED}


class TransformersBatching:
    """The library's manager behind the interface of `Engine`.

    A reply is a request of its own: of the dialogue before it, whole pages that are still in the
    cache are shared. There is no seed per request, and top_p and temperature are the manager's.
    """

    def __init__(self, model: Any, end_ids: Sequence[int], job: Job) -> None:
        from transformers import ContinuousBatchingConfig, GenerationConfig

        args, shape = job.args, {}
        if job.temperature:
            shape = {"temperature": job.temperature, "top_p": args.top_p, "top_k": 0}
        sampling = GenerationConfig(
            do_sample=bool(job.temperature),
            eos_token_id=list(end_ids),
            pad_token_id=end_ids[0],
            max_new_tokens=args.max_new_tokens,
            **shape,
        )
        batching = ContinuousBatchingConfig(
            page_size=args.page_size,
            num_blocks=cache_tokens(model, args.cache_gib) // args.page_size,
            max_batch_tokens=args.batch_tokens,
            max_requests_per_batch=job.in_flight,
            seed=args.seed,
        )
        self.max_length = model.config.max_position_embeddings
        self.manager = model.init_continuous_batching(sampling, batching)
        self.manager.start()
        self.asked = 0

    async def generate(
        self, dialogue: DialogueKey, prompt_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked += 1
        name = f"{'/'.join(dialogue)}/{self.asked}"
        self.manager.register_result_handler(name, done.set_result)
        self.manager.add_request(
            list(prompt_ids), request_id=name, max_new_tokens=sampling.max_new_tokens
        )
        output = await done
        if output.error:
            raise AriaError(f"transformers gave up a request: {output.error}")
        return Generation(output.generated_tokens, None, len(prompt_ids), len(prompt_ids))

    def finished(self, episode_id: str) -> None:
        """Pages of old requests stay until their room is needed."""

    async def close(self) -> None:
        self.manager.stop(block=True)


def cache_tokens(model: Any, gib: float) -> int:
    """Tokens whose keys and values fit into `gib`."""
    return int(gib * 2**30) // CacheShape.of(model).token_bytes


def make_player(job: Job, settings: PlaySettings, pace: Pace) -> Player:
    """The player that is measured; greedy ones keep their token ids."""
    source = ModelSource(job.args.model)
    if job.way == SERVER:
        context = PlayerContext(settings, pace, source, {SERVER: served(job)})
        return context.player(f"endpoint:{SERVER}")
    renderer = TurnRenderer(load_tokenizer(source))
    model = load_for_play(source, None, job.precision)
    engine: Any
    if job.way == OURS:
        cache = int(pace.cache_gib * 2**30)
        engine = Engine(model, renderer.end_ids(), slots=job.in_flight, cache_bytes=cache)
    else:
        engine = TransformersBatching(model, renderer.end_ids(), job)
    keep = job.temperature == 0
    return PolicyPlayer("policy", str(source), engine, renderer, settings, None, keep)


def served(job: Job) -> Endpoint:
    args = job.args
    return Endpoint(
        base_url=args.endpoint,
        model=args.served_model,
        max_concurrency=job.in_flight,
        timeout_s=120,
    )


def games(args: argparse.Namespace, count: int) -> list[Assignment]:
    """The first `count` games, with at most `args.questions` questions each."""
    todo = assign(get_game(GAME), count, args.seed)
    return [replace(a, config={**a.config, "max_questions": args.questions}) for a in todo]


def measure(job: Job) -> Run:
    """Play the job's games in this process; loading and a first short game are not counted."""
    args, game = job.args, get_game(GAME)
    settings, pace = settings_of(job)
    player = make_player(job, settings, pace)
    oracle = PlayerContext(settings, pace, ModelSource(args.model)).player("embedded")
    players = {ROLE: player, ENVIRONMENT: oracle}

    async def play() -> tuple[list[Episode], float, float]:
        first = Series(game, games(args, 1), players, settings)
        await play_all([first], pace, title="warm-up")
        wall, cpu = time.perf_counter(), time.process_time()
        (done,) = await play_all([replace(first, assignments=games(args, job.in_flight))], pace)
        spent = time.perf_counter() - wall, time.process_time() - cpu
        await player.close()
        return done, *spent

    done, wall, cpu = asyncio.run(play())
    tokens = sum(cost.completion for episode in done for cost in episode.record.tokens.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return Run(len(done) / wall * 3600, tokens / wall, tokens / cpu, peak, done)


def settings_of(job: Job) -> tuple[PlaySettings, Pace]:
    """params.yaml's, but for what the job and the options say."""
    params, args = load_params(PARAMS), job.args
    settings = params.collect.model_copy(
        update={
            "temperature": job.temperature,
            "top_p": args.top_p,
            "max_new_tokens": args.max_new_tokens,
        }
    )
    pace = params.pace.model_copy(
        update={
            "in_flight": job.in_flight,
            "cache_gib": args.cache_gib,
            "precision": job.precision,
        }
    )
    return settings, pace


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call in a fresh process."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=fresh) as pool:
        return pool.submit(function, *arguments).result()


def compare_speed(args: argparse.Namespace) -> dict[str, float]:
    """Medians of every way at every size, and ours over the others."""
    ways = [TRANSFORMERS, OURS, *([SERVER] if args.endpoint else [])]
    runs: dict[tuple[int, str], list[Run]] = {(n, w): [] for n in args.in_flight for w in ways}
    for _ in range(args.repeats):
        for (size, way), list_ in runs.items():
            job = Job(way, size, args.temperature, args.precision, args)
            list_.append(apart(measure, job))
            print(f"{way} x {size}: {list_[-1]}", flush=True)
    return medians(runs)


def medians(runs: Mapping[tuple[int, str], Sequence[Run]]) -> dict[str, float]:
    """By way, size and figure, and ours over the same figure of every other way."""
    found: dict[str, float] = {}
    for (size, way), list_ in runs.items():
        for name in FIGURES[way]:
            found[f"{way}_{size}_{name}"] = statistics.median(getattr(r, name) for r in list_)
    for size, way in runs:
        for name in FIGURES[way] if way != OURS else ():
            ratio = found[f"{OURS}_{size}_{name}"] / found[f"{way}_{size}_{name}"]
            found[f"{OURS}_over_{way}_{size}_{name}"] = ratio
    return found


@dataclass(frozen=True)
class Parting:
    """Where two greedy games part: the chat so far, the reply's common tokens, the next ones."""

    messages: list[Message]
    common: list[int]
    nexts: tuple[int, int]


def partings(first: Sequence[Episode], second: Sequence[Episode]) -> Iterator[Parting]:
    """One for every pair of games that are not equal token by token."""
    for one, other in zip(first, second, strict=True):
        pairs = zip(one.record.generations, other.record.generations, strict=False)
        for mine, yours in pairs:
            if mine.token_ids != yours.token_ids:
                yield parting(one, mine.position, mine.token_ids, yours.token_ids)
                break


def parting(episode: Episode, position: int, mine: list[int], yours: list[int]) -> Parting:
    lines = [(said.role, said.text) for said in episode.utterances[:position]]
    both = zip(mine, yours, strict=False)
    at = next((i for i, (a, b) in enumerate(both) if a != b), min(len(mine), len(yours)) - 1)
    messages = view(lines, ROLE, episode.prompts[ROLE])
    return Parting(messages, mine[:at], (mine[at], yours[at]))


def gaps(model: Path, found: Sequence[Parting]) -> list[float]:
    """How far apart the logits of the two next tokens are in a plain float32 pass."""
    import torch

    source = ModelSource(model)
    renderer, plain = Renderer(load_tokenizer(source)), load_for_play(source, None, "float32")
    distances = []
    for one in found:
        ids = torch.tensor([renderer.prompt_ids(one.messages) + one.common], device=plain.device)
        with torch.inference_mode():
            logits = plain(ids, logits_to_keep=1).logits[0, -1].float()
        distances.append(abs(float(logits[one.nexts[0]] - logits[one.nexts[1]])))
    return distances


def compare_texts(args: argparse.Namespace) -> dict[str, float]:
    """How many greedy games differ between ours and transformers, by precision, and why."""
    found: dict[str, float] = {}
    size = min(args.in_flight)
    for precision in GREEDY_PRECISIONS:
        runs = [
            apart(measure, Job(way, size, 0.0, precision, args)) for way in (OURS, TRANSFORMERS)
        ]
        parted = list(partings(runs[0].games, runs[1].games))
        found[f"greedy_{precision}_games"] = size
        found[f"greedy_{precision}_games_that_differ"] = len(parted)
        if parted:
            found[f"greedy_{precision}_largest_gap"] = max(apart(gaps, args.model, parted))
    return found


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=Path("data/base_model"))
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 16], help="games at once")
    parser.add_argument("--questions", type=int, default=20, help="longest game")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--max-new-tokens", type=int, default=40)
    parser.add_argument("--precision", choices=get_args(Precision), default="auto")
    parser.add_argument("--cache-gib", type=float, default=3.0)
    parser.add_argument("--page-size", type=int, default=16, help="transformers: tokens of a page")
    parser.add_argument("--batch-tokens", type=int, default=512, help="transformers: tokens a step")
    parser.add_argument("--endpoint", help="base_url of a server that serves the same model")
    parser.add_argument("--served-model", default="policy")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-texts", action="store_true", help="leave the greedy games out")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    return parser.parse_args(words)


def main() -> None:
    args = arguments()
    try:
        found = compare_speed(args) if args.repeats else {}
        found |= {} if args.no_texts else compare_texts(args)
    except AriaError as error:
        raise SystemExit(f"error: {error}") from None
    for name, value in found.items():
        print(f"{name:56} {value:12.3f}")
    if args.output:
        write_json(args.output, found)


if __name__ == "__main__":
    main()
