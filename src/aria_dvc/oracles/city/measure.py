"""How well the city oracle answers the questions of recorded games.

`python -m aria_dvc.oracles.city.measure LOG.json [--show N] [--seed S]` reads a list of
`{"conversation": [question with its answer, ...], "word": "city,country"}` (a question ends at
the first `?`) and prints the share of questions that get an answer and, where both answers are
yes or no, how often they agree, with a sample of the disagreements. The recorded answers come
from a language model and are themselves wrong at times, so disagreements need a look.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aria_dvc.errors import AriaError
from aria_dvc.oracles.base import Answer
from aria_dvc.oracles.city.oracle import oracle

_POLARITY = re.compile(r"^\W*(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a recorded game with both answers."""

    city: str
    question: str
    recorded: str
    answer: Answer

    @property
    def agrees(self) -> bool | None:
        """Whether both say yes or both say no; None unless both say either."""
        ours, theirs = _POLARITY.match(self.answer.text), _POLARITY.match(self.recorded)
        if not (ours and theirs and self.answer.known):
            return None
        return ours[1].lower() == theirs[1].lower()


def read_turns(path: Path) -> Iterator[tuple[str, str, str]]:
    """City, question and recorded answer of every turn.

    Raises:
        AriaError: the file is missing or not such a list.
    """
    try:
        games = json.loads(path.read_text(encoding="utf-8"))
        for game in games:
            for turn in game["conversation"]:
                question, mark, recorded = turn.partition("?")
                yield game["word"], question + mark, recorded.strip()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AriaError(
            f"{path} is no list of games with 'conversation' and 'word' ({error}); "
            "pass a file such as guess_my_city_dialogues.json"
        ) from error


def measure(path: Path) -> list[Turn]:
    """Ask the embedded oracle every question of the log."""
    return [
        Turn(city, question, recorded, oracle(city).answer(question))
        for city, question, recorded in read_turns(path)
    ]


def report(turns: list[Turn], show: int, seed: int) -> str:
    """Coverage, agreement and samples as text."""
    known = [turn for turn in turns if turn.answer.known]
    judged = [turn for turn in known if turn.agrees is not None]
    apart = [turn for turn in judged if not turn.agrees]
    distinct = {(turn.city, turn.question) for turn in turns}
    distinct_known = {(turn.city, turn.question) for turn in known}
    lines = [
        f"questions {len(turns)}, answered {len(known)} ({_share(len(known), len(turns))})",
        f"distinct {len(distinct)}, answered {len(distinct_known)} "
        f"({_share(len(distinct_known), len(distinct))})",
        f"both yes/no {len(judged)}, agree {len(judged) - len(apart)} "
        f"({_share(len(judged) - len(apart), len(judged))})",
    ]
    topics = Counter(turn.answer.topic for turn in known)
    lines.append("topics " + ", ".join(f"{name} {count}" for name, count in topics.most_common(30)))
    sample = random.Random(seed).sample(apart, min(show, len(apart)))
    for turn in sample:
        lines.append(f"{turn.city} | {turn.question} | {turn.recorded} | {turn.answer.text}")
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Coverage and agreement of the city oracle")
    parser.add_argument("log", type=Path)
    parser.add_argument("--show", type=int, default=20, help="disagreements to print")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    arguments = parser.parse_args()
    try:
        print(report(measure(arguments.log), arguments.show, arguments.seed))
    except AriaError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
