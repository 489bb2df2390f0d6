"""Guess My City dialogues (LMRL-Gym, ArCHer): one JSON list of {conversation, done, word}."""

from __future__ import annotations

from typing import Any

from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.formats.base import BadEntry, Layout, list_of


def _read_city(entry: dict[str, Any]) -> Episode:
    said = []
    for index, turn in enumerate(list_of(entry, "conversation")):
        if not isinstance(turn, str):
            raise BadEntry(f"conversation[{index}] must be a string")
        question, mark, answer = turn.partition("?")
        said.append(Utterance("agent", (question + mark).strip()))
        if answer.strip():
            said.append(Utterance("oracle", answer.strip()))
    word = entry.get("word")
    if not isinstance(word, str | None):
        raise BadEntry(f"word is {type(word).__name__}: give the word to guess as text")
    return Episode("", "", said, {}, {}, {"config": {"target": word}})


def _city_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    done = entry.get("done")
    if done is None:
        return {}
    if not isinstance(done, int) or done not in (0, 1):
        raise BadEntry(f"done is {done!r}: true or false is needed")
    return {"agent": float(done)}


def _judged(episode: Episode) -> dict[str, float] | None:
    """1 if a question guesses the target as the game's rules ask; None of an unknown target."""
    from aria_dvc.oracles.city.oracle import oracle

    try:
        asked = oracle(episode.info["config"]["target"] or "")
    except AriaError:
        return None
    questions = (said.text for said in episode.utterances if said.role == "agent")
    return {"agent": float(any(map(asked.is_guess, questions)))}


LAYOUT = Layout(
    "guess_my_city",
    frozenset({"conversation", "word"}),
    "guess_my_city",
    _read_city,
    _city_rewards,
    judged=_judged,
)
