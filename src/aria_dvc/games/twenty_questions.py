"""Twenty Questions: guess one of 157 objects by yes-or-no questions (LMRL-Gym's rules)."""

from __future__ import annotations

import re

from aria_dvc.games.base import IllegalMove
from aria_dvc.games.guessing import GuessingGame, GuessingMatch
from aria_dvc.games.parsing import cut
from aria_dvc.oracles.objects import oracle as objects
from aria_dvc.oracles.objects.oracle import INVALID, NO, YES

_FIRST_WORD = re.compile(r"[^a-z]*(yes|no|invalid(?: question)?)\b(.*)", re.DOTALL)
_OPPOSITE = {
    "yes": r"\bno\b|\binvalid\b",
    "no": r"\byes\b|\binvalid\b",
    "invalid": r"\byes\b|\bno\b",
}


class TwentyQuestionsMatch(GuessingMatch):
    game = "twenty_questions"
    knowledge = objects
    no_answer = INVALID

    def read_answer(self, text: str) -> str:
        return read_answer(text)

    def system_prompt(self, role: str) -> str:
        if role == "oracle":
            return (
                'You answer in Twenty Questions with exactly one of "Yes.", "No." and "Invalid '
                'question." (not a yes-or-no question about the hidden object). Say nothing else. '
                f"The hidden object: {self.config['target']}."
            )
        return (
            "Find a hidden everyday object. Ask one short yes-or-no question a turn, such as "
            f'"Is it a compass?" {self.config["max_questions"]} questions.'
        )


def read_answer(text: str) -> str:
    """One of the three answers, from the first word of an oracle's text.

    Raises:
        IllegalMove: the text gives none of them, or two.
    """
    match = _FIRST_WORD.match(cut(text).lower())
    if match is None or re.search(_OPPOSITE[match[1].split()[0]], match[2]):
        raise IllegalMove("unreadable_answer", 'Answer "Yes.", "No." or "Invalid question."')
    return {"yes": YES, "no": NO, "invalid": INVALID}[match[1].split()[0]]


class TwentyQuestions(GuessingGame):
    name = "twenty_questions"
    match = TwentyQuestionsMatch


GAME = TwentyQuestions()
