"""Games between players whose distribution is known, and their exact values by enumeration."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from tests.fake_game import collect_episodes
from tests.settings import pace, play_settings

from aria_dvc.arena.assignments import Assignment
from aria_dvc.games.registry import get_game
from aria_dvc.players.base import Player, Reply, Request
from aria_dvc.players.scripted import embedded_oracle
from aria_dvc.records.episodes import Episode
from aria_dvc.seeds import derived_seed
from aria_dvc.settings.dialogues import TruthParams
from aria_dvc.truth.table import Question

GAMMA = 0.9
CONFIG = {"money": 100, "delta_a": 0.9, "delta_b": 0.8, "rounds": 4}
KEPT = {80: 0.2, 60: 0.5, 40: 0.3}  # what a proposer keeps, and how often
TAKEN = {20: 0.3, 40: 0.45, 60: 0.6}  # how often such a share is accepted
DISCOUNTS = {"alice": 0.9, "bob": 0.8}
NAME = "scripted:fair"  # what the dicing player is recorded as


class Dicer:
    """Says what `say` draws; asked counts, by episode."""

    name, model = NAME, "dice"

    def __init__(self, say: Callable[[Request, random.Random], str]) -> None:
        self.say = say
        self.asked: list[str] = []

    async def reply(self, request: Request) -> Reply:
        self.asked.append(request.episode_id)
        return Reply(self.say(request, random.Random(request.seed)))

    def finished(self, episode_id: str) -> None: ...

    async def close(self) -> None: ...


def bargains(request: Request, rng: random.Random) -> str:
    """Accept by TAKEN, else propose by KEPT; in the last round there is nothing to propose."""
    match: Any = request.match
    if match.offers:
        alice = int(match.offers[-1])
        own = alice if request.role == "alice" else 100 - alice
        if rng.random() < TAKEN.get(own, 0.0):
            return "I accept."
        if len(match.offers) == CONFIG["rounds"]:
            return "I reject."
    return f"I keep {rng.choices(list(KEPT), list(KEPT.values()))[0]}."


def log_of(
    name: str, config: dict[str, Any], players: dict[str, Player], games: int, seed: int = 0
) -> list[Episode]:
    """Games of one configuration between these players, which are recorded by their names."""
    wanted = [
        Assignment(f"{name}-{n}", config, derived_seed(seed, n), f"{name}-{n}")
        for n in range(games)
    ]
    settings = play_settings(max_reasks=0)
    return collect_episodes(get_game(name), wanted, players, settings, pace(), reward="utility")


# --- bargaining, solved ---------------------------------------------------------------------------


@cache
def worth(role: str, offers: int, alice: int, mover: str) -> float:
    """E[gamma^(own turns from here on) R] of `role` where `mover` answers the offer `alice`."""
    return own_turn(role, mover) * sum(
        chance * after(role, offers, alice, mover, action)
        for action, chance in policy(offers, alice, mover).items()
    )


def own_turn(role: str, mover: str) -> float:
    return GAMMA if role == mover else 1.0


def policy(offers: int, alice: int | None, mover: str) -> dict[str, float]:
    """The distribution of the mover's utterance; `alice` is her share in the standing offer."""
    accept = 0.0
    if alice is not None:
        accept = TAKEN.get(alice if mover == "alice" else 100 - alice, 0.0)
    rest = {f"I keep {kept}.": chance for kept, chance in KEPT.items()}
    if offers == CONFIG["rounds"]:
        rest = {"I reject.": 1.0}
    found = {"I accept.": accept, **{text: (1 - accept) * p for text, p in rest.items()}}
    return {text: chance for text, chance in found.items() if chance}


def after(role: str, offers: int, alice: int | None, mover: str, action: str) -> float:
    """E[gamma^(own turns still to come) R] after the mover's action."""
    if action == "I reject.":
        return 0.0
    if action == "I accept.":
        share = alice if role == "alice" else 100 - alice
        return float(Fraction(share, 100)) * DISCOUNTS[role] ** (offers - 1)
    kept = int(action.split()[-1].strip("."))
    now = kept if mover == "alice" else 100 - kept
    return worth(role, offers + 1, now, "bob" if mover == "alice" else "alice")


def exact_bargaining(episode: Episode, position: int) -> tuple[float, float]:
    """(Q, V) of the action at a position."""
    said = [utterance.text for utterance in episode.utterances]
    role = episode.utterances[position].role
    alice = None
    for place, text in enumerate(said[:position]):
        kept = int(text.split()[-1].strip("."))
        alice = kept if place % 2 == 0 else 100 - kept
    chances = policy(position, alice, role)
    value = sum(p * after(role, position, alice, role, text) for text, p in chances.items())
    return after(role, position, alice, role, said[position]), value


# --- eight targets, solved ------------------------------------------------------------------------

EIGHT = ("Cat", "Dog", "Apple", "Banana", "Car", "Chair", "Piano", "Hammer")
USELESS, IDLE = "Is it alive?", 0.25
QUESTIONS = 4
GUESSING = {"target": "Piano", "max_questions": QUESTIONS}


def guesses(request: Request, rng: random.Random) -> str:
    """Something useless with the chance IDLE, else a target that was not tried."""
    tried = {text for _, text in request.match.lines}
    left = [text for text in map(guess, EIGHT) if text not in tried]
    return USELESS if rng.random() < IDLE else rng.choice(left)


def guess(target: str) -> str:
    return f"Is it a {target.lower()}?"


def guessers(say: Callable[[Request, random.Random], str] = guesses) -> dict[str, Player]:
    return {"agent": Dicer(say), "oracle": embedded_oracle()}


@cache
def hope(left: int, questions: int) -> float:
    """E[gamma^(turns) R] with so many targets left and so many questions."""
    if not questions:
        return 0.0
    wrong = (1 - 1 / left) * hope(left - 1, questions - 1) if left > 1 else 0.0
    return GAMMA * (IDLE * hope(left, questions - 1) + (1 - IDLE) * (1 / left + wrong))


def exact_guessing(episode: Episode, position: int) -> tuple[float, float]:
    """(Q, V) of the question at a position."""
    asked = [u.text for u in episode.utterances[:position] if u.role == "agent"]
    left = len(EIGHT) - len(set(asked) - {USELESS})
    rest = QUESTIONS - len(asked) - 1
    wrong = hope(left - 1, rest) if left > 1 else 0.0
    value = IDLE * hope(left, rest) + (1 - IDLE) * (1 / left + (1 - 1 / left) * wrong)
    text = episode.utterances[position].text
    if text == guess(episode.record.config["target"]):
        return 1.0, value
    return (hope(left, rest) if text == USELESS else wrong), value


# --- what is asked --------------------------------------------------------------------------------


def question(turns: int, continuations: int, draws: int, each: int = 1) -> Question:
    settings = TruthParams(
        turns=turns, continuations=continuations, draws=draws, draw_continuations=each
    )
    return Question(settings, GAMMA, ["scripted"], __file__)
