"""Episodes an hour: many games at once against one after the other, and against a server.

    python benchmarks/collection.py --model data/base_model
    python benchmarks/collection.py --endpoint http://127.0.0.1:8036/v1

Every way of playing gets the same games, seeds and settings (params.yaml's, but for the options
below); what is printed are medians over the repeats. The sequential player plays only the first few
of the games, since it is slow.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from aria_dvc.arena.assignments import assign
from aria_dvc.arena.collection import play_all
from aria_dvc.arena.series import Series
from aria_dvc.errors import AriaError
from aria_dvc.files import write_json
from aria_dvc.games.registry import get_game
from aria_dvc.models.source import ModelSource
from aria_dvc.params import load_params
from aria_dvc.players.registry import PlayerContext
from aria_dvc.records.episodes import Episode
from aria_dvc.settings.machine import Endpoint

SERVER = "server"
PARAMS = Path(__file__).resolve().parent.parent / "params.yaml"


@dataclass(frozen=True)
class Run:
    """One measured collection."""

    episodes_per_hour: float
    tokens_per_second: float
    failures: int


def measure(args: argparse.Namespace, spec: str, in_flight: int, episodes: int) -> Run:
    """Play the first `episodes` games with the player `spec` in every role that acts."""
    game, params = get_game(args.game), load_params(PARAMS)
    sampling = {"temperature": args.temperature, "max_new_tokens": args.max_new_tokens}
    settings = params.collect.model_copy(update=sampling)
    pace = params.pace.model_copy(update={"in_flight": in_flight})
    context = PlayerContext(settings, pace, ModelSource(args.model), _endpoints(args, in_flight))
    opponent = args.opponent or ("embedded" if game.environment else spec)
    roles = [*game.roles, *([game.environment] if game.environment else [])]
    players = {role: context.player(opponent) for role in roles}
    players[args.role or game.roles[0]] = context.player(spec)
    todo = assign(game, episodes, args.seed)

    async def play() -> tuple[list[Episode], float]:
        started = time.perf_counter()
        series = [Series(game, todo, players, settings)]
        (done,) = await play_all(series, pace, title=f"{spec} x {in_flight}")
        spent = time.perf_counter() - started
        for player in set(players.values()):
            await player.close()
        return done, spent

    done, spent = asyncio.run(play())
    tokens = sum(cost.completion for e in done for cost in e.record.tokens.values())
    failures = sum(e.record.failure is not None for e in done)
    return Run(len(done) / spent * 3600, tokens / spent, failures)


def _endpoints(args: argparse.Namespace, in_flight: int) -> dict[str, Endpoint]:
    if not args.endpoint:
        return {}
    server = Endpoint(
        base_url=args.endpoint, model=args.served_model, max_concurrency=in_flight, timeout_s=120
    )
    return {SERVER: server}


def compare(args: argparse.Namespace) -> dict[str, float]:
    """Medians of every way of playing, and their ratios."""
    ways = {"many": ("policy", args.in_flight, args.episodes)}
    if args.sequential:
        ways["sequential"] = ("policy", 1, args.sequential)
    if args.endpoint:
        ways["endpoint"] = (f"endpoint:{SERVER}", args.in_flight, args.episodes)
    runs: dict[str, list[Run]] = {way: [] for way in ways}
    for _ in range(args.repeats):
        for way, settings in ways.items():
            runs[way].append(measure(args, *settings))
    found: dict[str, float] = {}
    for way, list_ in runs.items():
        found[f"{way}_episodes_per_hour"] = statistics.median(r.episodes_per_hour for r in list_)
        found[f"{way}_tokens_per_second"] = statistics.median(r.tokens_per_second for r in list_)
        found[f"{way}_failures"] = statistics.median(r.failures for r in list_)
    many = found["many_episodes_per_hour"]
    if args.sequential:
        found["many_over_sequential"] = many / found["sequential_episodes_per_hour"]
    if args.endpoint:
        found["endpoint_over_many"] = found["endpoint_episodes_per_hour"] / many
    found["peak_memory_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=Path("data/base_model"))
    parser.add_argument("--game", default="twenty_questions")
    parser.add_argument("--role", help="the role that is measured (default: the game's first)")
    parser.add_argument("--opponent", help="player of the other roles (default: self-play)")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument(
        "--sequential", type=int, default=4, help="games played one by one; 0: none"
    )
    parser.add_argument("--endpoint", help="base_url of a server that serves the same model")
    parser.add_argument("--served-model", default="policy")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--max-new-tokens", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    args = parser.parse_args()
    try:
        found = compare(args)
    except AriaError as error:
        raise SystemExit(f"error: {error}") from None
    for name, value in found.items():
        print(f"{name:32} {value:12.2f}")
    if args.output:
        write_json(args.output, found)


if __name__ == "__main__":
    main()
