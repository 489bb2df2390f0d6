"""Credits against exact advantages: three small decision processes, solved by enumeration.

    python benchmarks/mdps.py [--quick] [--batches 10] [--episodes 1000] [--out FILE]

A yardstick that others made: the processes and the scores are those of AgentCreditBench 0.5.0
(github.com/hectopascal/agent-credit-bench), written anew from their definition. The policy is
uniform and nothing is discounted.

- delayed: the first action sets the chance of success (0.8 or 0.2), those after it change nothing;
- recovery: a mistake that the next action can mend;
- horizon: stop or go on, paid 0, 2, 1, 3, 0 for stopping at the first to the fifth turn.

An episode is a dialogue: the environment says the state, the agent its action. Every text is an
intention of its own, with a vector of its own, so the credits are told all that there is to tell.
Each batch is one log, on which every credit is fitted.

Scores, means over the batches: identification (root mean squared error, Spearman's correlation,
share of equal signs where A is not 0, share of all credit that lies on actions whose A is 0), then
what trains (error after the best shift of every state; cosine of the mean gradient of a tabular
softmax policy with the exact one, and their distance over its length; noise of a batch's gradient
around that mean, likewise). `exact` is the true advantage itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from scipy.stats import spearmanr

from aria_dvc.credit.methods.base import fit_values
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import Aggregate
from aria_dvc.intentions.log import Log
from aria_dvc.seeds import derived_seed
from truth import tell

METHODS = (
    *("group", "gigpo", "gae", "aria", "aria_recent", "shrinkage", "prefix"),
    *("regression", "kernel", "critic", "progress", "turn_index"),
)
SETTINGS = Aggregate(gamma=1.0, anchor="observation")
AGENT, ENVIRONMENT = "agent", "environment"
COLUMNS = ("RMSE", "Spearman", "signs", "leakage", "centred", "cosine", "distance", "noise")
ZERO = 1e-8  # an advantage that is none
Move = tuple[int, str, str]  # turn from 0, state, action


class Outcome(NamedTuple):
    """What may follow an action; state None: the end."""

    chance: float
    state: str | None
    reward: float


class Process(Protocol):
    """A finite process that ends by itself; every action is equally likely."""

    @property
    def start(self) -> str: ...

    def actions(self, turn: int, state: str) -> list[str]: ...

    def outcomes(self, turn: int, state: str, action: str) -> list[Outcome]: ...


@dataclass(frozen=True)
class Delayed:
    """GOOD or BAD, then actions that change nothing."""

    turns: int = 8
    success: tuple[float, float] = (0.8, 0.2)
    start: str = "start"

    def actions(self, turn: int, state: str) -> list[str]:
        return ["GOOD", "BAD"] if turn == 0 else ["this", "that"]

    def outcomes(self, turn: int, state: str, action: str) -> list[Outcome]:
        if turn == 0:
            return [Outcome(1.0, action.lower(), 0.0)]
        if turn < self.turns - 1:
            return [Outcome(1.0, state, 0.0)]
        chance = self.success[state == "bad"]
        return [Outcome(chance, None, 1.0), Outcome(1.0 - chance, None, 0.0)]


@dataclass(frozen=True)
class Recovery:
    """GOOD wins; after BAD only RECOVER does."""

    start: str = "start"

    def actions(self, turn: int, state: str) -> list[str]:
        return ["GOOD", "BAD"] if turn == 0 else ["RECOVER", "GIVE UP"]

    def outcomes(self, turn: int, state: str, action: str) -> list[Outcome]:
        if action == "BAD":
            return [Outcome(1.0, "mistake", 0.0)]
        return [Outcome(1.0, None, float(action != "GIVE UP"))]


@dataclass(frozen=True)
class Horizon:
    """STOP is paid by the turn at which it is said; the last turn leaves no choice."""

    paid: tuple[float, ...] = (0.0, 2.0, 1.0, 3.0, 0.0)
    start: str = "alive"

    def actions(self, turn: int, state: str) -> list[str]:
        return ["STOP", "CONTINUE"] if turn < len(self.paid) - 1 else ["STOP"]

    def outcomes(self, turn: int, state: str, action: str) -> list[Outcome]:
        return [
            Outcome(1.0, None, self.paid[turn]) if action == "STOP" else Outcome(1.0, state, 0.0)
        ]


PROCESSES: dict[str, Process] = {
    "delayed": Delayed(),
    "recovery": Recovery(),
    "horizon": Horizon(),
}


@dataclass(frozen=True)
class Exact:
    """A process under the uniform policy, solved; M moves can be made."""

    process: Process

    @cached_property
    def chances(self) -> dict[tuple[int, str], float]:
        """How likely each turn and state is, in the order of the turns."""
        found = {(0, self.process.start): 1.0}
        frontier = list(found)
        while frontier:
            follow: dict[tuple[int, str], float] = {}
            for turn, state in frontier:
                actions = self.process.actions(turn, state)
                here = found[turn, state] / len(actions)
                for action in actions:
                    for chance, after, _ in self.process.outcomes(turn, state, action):
                        if after:
                            key = (turn + 1, after)
                            follow[key] = follow.get(key, 0.0) + here * chance
            found |= follow
            frontier = list(follow)
        return found

    @cached_property
    def advantages(self) -> dict[Move, float]:
        """A(s, a) of every move, by backward induction."""
        worth: dict[tuple[int, str | None], float] = {}
        found: dict[Move, float] = {}
        for turn, state in reversed(self.chances):
            q = {
                action: sum(
                    chance * (reward + (worth[turn + 1, after] if after else 0.0))
                    for chance, after, reward in self.process.outcomes(turn, state, action)
                )
                for action in self.process.actions(turn, state)
            }
            worth[turn, state] = value = sum(q.values()) / len(q)
            found |= {(turn, state, action): of - value for action, of in q.items()}
        return found

    @cached_property
    def values(self) -> np.ndarray:
        """(M,) the advantages in their order."""
        return np.array(list(self.advantages.values()))

    @cached_property
    def places(self) -> dict[Move, int]:
        return {move: place for place, move in enumerate(self.advantages)}

    @cached_property
    def states(self) -> np.ndarray:
        """(M,) the number of the turn and state of each move."""
        numbers = {key: number for number, key in enumerate(self.chances)}
        return np.array([numbers[turn, state] for turn, state, _ in self.advantages])

    @cached_property
    def gradient(self) -> np.ndarray:
        """(M,) of the expected reward by the logits of a tabular softmax policy."""
        chance = np.array(list(self.chances.values())) / np.bincount(self.states)
        return chance[self.states] * self.values


@dataclass(frozen=True)
class Batch:
    """E episodes with A actions. moves: (A,) places of the actions; log: the same as dialogues."""

    moves: np.ndarray
    log: Log
    episodes: int


def drawn(exact: Exact, episodes: int, seed: int) -> Batch:
    rng = np.random.default_rng(seed)
    played = [one_episode(exact.process, rng) for _ in range(episodes)]
    rows = [
        (number, role, said, reward if role == AGENT else np.nan)
        for number, (moves, reward) in enumerate(played)
        for _, state, action in moves
        for role, said in ((ENVIRONMENT, state), (AGENT, action))
    ]
    episode, role, text, returns = (np.array(column) for column in zip(*rows, strict=True))
    labels = np.unique(text, return_inverse=True)[1]
    log = Log(
        episode,
        role,
        role == AGENT,
        text.astype(object),
        np.eye(labels.max() + 1, dtype=np.float32)[labels],
        labels,
        returns,
        final=returns,
    )
    moves = [exact.places[move] for of, _ in played for move in of]
    return Batch(np.array(moves), log, episodes)


def one_episode(process: Process, rng: np.random.Generator) -> tuple[list[Move], float]:
    """Its moves and what it brought."""
    moves: list[Move] = []
    state, total = process.start, 0.0
    while state:
        actions = process.actions(len(moves), state)
        moves.append((len(moves), state, actions[rng.integers(len(actions))]))
        follows = process.outcomes(*moves[-1])
        chosen = follows[rng.choice(len(follows), p=[one.chance for one in follows])]
        state, total = chosen.state or "", total + chosen.reward
    return moves, total


def credits_of(
    batch: Batch, exact: Exact, seed: int, methods: Sequence[str] = METHODS
) -> dict[tuple[str, str], np.ndarray]:
    """(method, q or q - v) -> (A,) credit of the batch's actions."""
    true = exact.values[batch.moves]
    found = {("exact", "A"): true}
    for name in methods:
        method = make_method(name, SETTINGS, seed)
        values = fit_values(method, batch.log, SETTINGS.folds, seed)
        found |= {(name, "q"): values.q, (name, "q - v"): values.advantage}
    return found


def gradient(batch: Batch, exact: Exact, credit: np.ndarray) -> np.ndarray:
    """(M,) that the batch's actions induce, weighted by their credit."""
    by_move = np.bincount(batch.moves, credit, len(exact.advantages)) / batch.episodes
    by_state = np.bincount(exact.states, by_move)
    return by_move - (by_state / np.bincount(exact.states))[exact.states]


def scores(credit: np.ndarray, true: np.ndarray, states: np.ndarray) -> list[float]:
    """RMSE, Spearman, signs, leakage and centred RMSE of (A,) credits of moves in `states`."""
    off, matters = credit - true, np.abs(true) > ZERO
    centred = off - (np.bincount(states, off) / np.maximum(1, np.bincount(states)))[states]
    vary = np.ptp(credit) > 0 and np.ptp(true) > 0
    return [
        float(np.sqrt((off**2).mean())),
        float(spearmanr(credit, true).statistic) if vary else 0.0,
        float((np.sign(credit) == np.sign(true))[matters].mean()),
        float(np.abs(credit[~matters]).sum() / (np.abs(credit).sum() + ZERO)),
        float(np.sqrt((centred**2).mean())),
    ]


def directions(gradients: np.ndarray, exact: np.ndarray) -> list[float]:
    """Cosine and distance of the mean of (batches, M) gradients, and their noise around it."""
    mean, length = gradients.mean(axis=0), float(np.linalg.norm(exact))
    size = float(np.linalg.norm(mean))
    spread = np.sqrt(((gradients - mean) ** 2).sum(axis=1).mean())
    cosine = float(mean @ exact) / (size * length) if size > ZERO else np.nan
    return [cosine, float(np.linalg.norm(mean - exact)) / length, float(spread) / length]


def report(name: str, args: argparse.Namespace, methods: Sequence[str] = METHODS) -> Iterator[str]:
    """The table of one process."""
    exact = Exact(PROCESSES[name])
    seeds = [derived_seed(args.seed, f"{name} {number}") for number in range(args.batches)]
    batches = [drawn(exact, args.episodes, seed) for seed in seeds]
    found = [credits_of(batch, exact, args.seed, methods) for batch in batches]
    yield f"{name}: {args.batches} batches of {args.episodes} episodes"
    yield ""
    yield "| credit | as | " + " | ".join(COLUMNS) + " |"
    yield "|" + "---|" * (2 + len(COLUMNS))
    for credit in found[0]:
        pairs = [(of[credit], batch) for of, batch in zip(found, batches, strict=True)]
        own = [scores(c, exact.values[b.moves], exact.states[b.moves]) for c, b in pairs]
        gradients = np.array([gradient(b, exact, c) for c, b in pairs])
        figures = [*np.mean(own, axis=0), *directions(gradients, exact.gradient)]
        yield f"| `{credit[0]}` | {credit[1]} | " + " | ".join(f"{f:.2f}" for f in figures) + " |"
    yield ""
    if name == "recovery":
        yield from mended(exact, batches, found)


def mended(
    exact: Exact, batches: Sequence[Batch], found: Sequence[dict[tuple[str, str], np.ndarray]]
) -> Iterator[str]:
    """Mean credit of BAD and of RECOVER in episodes that had both."""
    recover_at = exact.places[1, "mistake", "RECOVER"]
    yield "| credit | as | BAD, mended | RECOVER |"
    yield "|---|---|---|---|"
    for credit in found[0]:
        both = []
        for of, batch in zip(found, batches, strict=True):
            first = np.flatnonzero(batch.moves[1:] == recover_at)  # the action before is BAD
            both.append((of[credit][first].mean(), of[credit][first + 1].mean()))
        bad, recover = np.mean(both, axis=0)
        yield f"| `{credit[0]}` | {credit[1]} | {bad:+.2f} | {recover:+.2f} |"
    yield ""


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    tell((report(name, args) for name in args.processes), args.out)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", nargs="+", default=list(PROCESSES), choices=PROCESSES)
    parser.add_argument("--episodes", type=int, default=1000, help="of a batch")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    args = parser.parse_args(argv)
    if args.quick:
        vars(args).update(episodes=60, batches=2)
    return args


if __name__ == "__main__":
    main()
