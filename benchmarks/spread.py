"""What averaging returns buys and costs: bias and noise of every credit, measured over whole logs.

    python benchmarks/spread.py [--games NAME ...] [--logs 32] [--out FILE]

Scripted players play games as `logs` in params.yaml says, and one turn of each is kept fixed. Again
and again everything after these turns is drawn anew, which gives logs of the same sizes, and every
credit is fitted on each of them (intentions and their number anew, too). Over the logs a fixed turn
gets credits whose mean less the true value is the credit's bias there, and whose spread is its
noise. True values are of continuations of their own (see src/aria_dvc/truth).

q is measured against Q, q - v against A. A table a game, in units of the final reward: bias, root
of the mean square over the turns, freed of the noise of what it is measured with; noise, root of
the mean variance; error, both together. A difference of the means over all turns is no bias: what
all turns get trains nothing once it is centred. --quick: few games and logs.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from aria_dvc.arena.sessions import collect_session
from aria_dvc.arena.side_by_side import play_side_by_side
from aria_dvc.credit.methods.base import Values, fit_values
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.games.registry import get_game
from aria_dvc.intentions.log import Log
from aria_dvc.params import Params
from aria_dvc.progress import log_to_stderr
from aria_dvc.records.episodes import Episode, without_broken_off
from aria_dvc.seeds import derived_seed
from aria_dvc.settings.dialogues import TruthParams
from aria_dvc.truth.branching import RECORDED, Branch, Branching, end_of, played_by
from aria_dvc.truth.table import Question, values_of_turns
from aria_dvc.truth.turns import Turn, drawn_turns
from truth import TARGETS, labelled_turns, settings, tell

METHODS = ("discounted", "aria", "aria_recent", "shrinkage", "gigpo", "gae", "critic", "regression")
PLAIN = METHODS[0]  # returns, which have no value of the state of their own
EVERY = 1_000_000  # turns
PURPOSE = "spread"


@dataclass(frozen=True)
class Fixed:
    """One turn of each of N games. truth: N rows of the table of true values, in their order."""

    episodes: list[Episode]
    turns: list[Turn]
    truth: pd.DataFrame


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    log_to_stderr()
    tell((report(game, args) for game in args.games), args.out)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--games", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--episodes", type=int, default=144, help="games of a log")
    parser.add_argument("--repeats", type=int, default=4, help="of these share a configuration")
    parser.add_argument("--logs", type=int, default=32, help="that are drawn")
    parser.add_argument("--continuations", type=int, default=64, help="for a turn's true values")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    args = parser.parse_args(argv)
    if args.quick:
        vars(args).update(episodes=16, repeats=2, logs=3, continuations=4)
    vars(args).update(scripted=True, model=None)
    return args


def report(game: str, args: argparse.Namespace) -> Iterator[str]:
    """The table of one game."""
    params = settings(game, args)
    fixed = fixed_turns(game, params, args.continuations)
    found = [credits_of(log, fixed, params) for log in logs_of(game, fixed, params, args.logs)]
    q, advantage = (fixed.truth[name].to_numpy(float) for name in ("q", "advantage"))
    noise = np.sqrt(np.var([of[PLAIN, "q"] for of in found], axis=0, ddof=1).mean())
    yield (
        f"{game}: {len(fixed.turns)} turns, {args.logs} logs of {args.episodes} games; Q varies by "
        f"{spread(q, fixed.truth['se_q']):.3f} between the turns, A by "
        f"{spread(advantage, fixed.truth['se_advantage']):.3f}, the return after a turn by "
        f"{noise:.3f} (standard deviations)"
    )
    yield from ("", "| credit | as | bias | noise | error |", "|---|---|---|---|---|")
    for name, kind in found[0]:
        true, error = ("q", "se_q") if kind == "q" else ("advantage", "se_advantage")
        credits = np.array([of[name, kind] for of in found])
        parts = errors(credits, *(fixed.truth[of].to_numpy(float) for of in (true, error)))
        yield f"| `{name}` | {kind} | " + " | ".join(f"{part:.3f}" for part in parts) + " |"
    yield ""


def fixed_turns(game: str, params: Params, continuations: int) -> Fixed:
    """Play a log, draw one turn of each game, and measure these."""
    (played,) = play_side_by_side(params, [collect_session(params, game)], f"collect {game}")
    episodes = without_broken_off(played)
    players, source = params.prepare.players, params.logs[game].source
    of_game: dict[str, list[Turn]] = {}
    for turn in drawn_turns(episodes, players, EVERY, params.seed):
        of_game.setdefault(turn.episode.episode_id, []).append(turn)
    rng = random.Random(derived_seed(params.seed, PURPOSE))
    drawn = [rng.choice(turns) for turns in of_game.values()]
    each = {"continuations": continuations, "draws": continuations, "draw_continuations": 1}
    asked = Question(TruthParams(turns=EVERY, **each), params.aggregate.gamma, players, source)
    truth = values_of_turns(params, episodes, drawn, asked)
    known = set(zip(truth["episode_id"], truth["position"], strict=True))
    turns = [turn for turn in drawn if (turn.episode.episode_id, turn.position) in known]
    return Fixed(episodes, turns, truth)


def logs_of(game: str, fixed: Fixed, params: Params, count: int) -> Iterator[list[Episode]]:
    """Logs of the games that have a fixed turn, each with all after it drawn anew."""
    rule = params.reward_rule(game)
    branches = [Branch(turn, RECORDED, turn.text, range(count)) for turn in fixed.turns]
    branching = Branching(
        get_game(game),
        played_by(fixed.episodes),
        params.collect,
        tuple(one for one in branches if end_of(get_game(game), one.turn, rule) is None),
        PURPOSE,
        reward=rule,
        purpose=PURPOSE,
    )
    (played,) = play_side_by_side(params, [branching], f"{PURPOSE} {game}")
    ends = {episode.episode_id: episode for episode in played}
    for number in range(count):
        yield [going_on(one.turn, ends.get(one.name(number))) for one in branches]


def going_on(turn: Turn, end: Episode | None) -> Episode:
    """The game of a turn, with another end after it, or as it is where the turn was the end."""
    game = turn.episode
    if end is None:
        return game
    said = [*game.utterances[: turn.place + 1], *end.utterances]
    info = {**game.info, "failure": end.info["failure"]}
    return replace(game, utterances=said, rewards=end.rewards, info=info)


def credits_of(
    episodes: Sequence[Episode], fixed: Fixed, params: Params
) -> dict[tuple[str, str], np.ndarray]:
    """(method, q or q - v) -> (N,) what the fixed turns get of it; NaN in a game that somebody
    without a reward broke off."""
    _, log = labelled_turns(without_broken_off(list(episodes)), params)
    actions = log.action_frame()[["episode_id", "position"]].itertuples(index=False)
    places = {tuple(key): row for row, key in enumerate(actions)}
    rows = [places.get((turn.episode.episode_id, turn.position)) for turn in fixed.turns]
    found = {}
    for name in METHODS:
        values = values_of(name, log, params)
        kinds = {"q": values.q} if name == PLAIN else {"q": values.q, "q - v": values.advantage}
        for kind, all_of in kinds.items():
            found[name, kind] = np.array([np.nan if r is None else all_of[r] for r in rows])
    return found


def values_of(name: str, log: Log, params: Params) -> Values:
    if name == PLAIN:
        return Values(log.targets, np.zeros_like(log.targets))
    aggregate = params.aggregate
    return fit_values(make_method(name, aggregate), log, aggregate.folds, params.seed)


def errors(credits: np.ndarray, true: np.ndarray, se: np.ndarray) -> tuple[float, float, float]:
    """Bias, noise and error (root mean squares) of (logs, N) credits of N turns.

    true: (N,) values with standard errors `se`.
    """
    known = np.isfinite(credits).all(axis=0)
    credits, true, se = credits[:, known], true[known], se[known]
    variance = credits.var(axis=0, ddof=1)
    off = credits.mean(axis=0) - true
    squared = (off - off.mean()) ** 2 - variance / len(credits) - se**2
    bias, noise = max(0.0, float(squared.mean())), float(variance.mean())
    return bias**0.5, noise**0.5, (bias + noise) ** 0.5


def spread(values: np.ndarray, se: pd.Series) -> float:
    """Standard deviation of true values, freed of the noise with which they are measured."""
    return float(max(0.0, values.var() - (se**2).mean()) ** 0.5)


if __name__ == "__main__":
    main()
