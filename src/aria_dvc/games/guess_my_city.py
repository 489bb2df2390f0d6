"""Guess My City: find the oracle's home city by free questions (LMRL-Gym's rules)."""

from __future__ import annotations

import re

from aria_dvc.games.base import IllegalMove
from aria_dvc.games.guessing import GuessingGame, GuessingMatch
from aria_dvc.games.parsing import clean, cut
from aria_dvc.oracles.city import oracle as cities
from aria_dvc.oracles.city.guesses import leaks

_LABELS = re.compile(r"^(?:(?:oracle|assistant|answer) ?: ?)+", re.IGNORECASE)
REFUSAL = "I cannot tell you the name of my city."
MAX_ANSWER_CHARS = 300


class GuessMyCityMatch(GuessingMatch):
    game = "guess_my_city"
    knowledge = cities
    solved_answer = "Yes, that is my city."
    no_answer = REFUSAL

    def read_answer(self, text: str) -> str:
        answer = cut(_LABELS.sub("", clean(text)), MAX_ANSWER_CHARS)
        if not any(char.isalnum() for char in answer):
            raise IllegalMove("empty", "Your answer was empty. Answer in one short sentence.")
        return REFUSAL if leaks(answer, self.config["target"]) else answer

    def system_prompt(self, role: str) -> str:
        if role == "oracle":
            return (
                "Somebody must find out in which city you live by asking you. Answer each question "
                "about your city truthfully in one short sentence. Never write its name. Your "
                f"city: {self.config['target']}."
            )
        return (
            "Find out which city I live in. Ask one short question a turn, such as "
            f'"Is it Springfield?" {self.config["max_questions"]} questions.'
        )


class GuessMyCity(GuessingGame):
    name = "guess_my_city"
    match = GuessMyCityMatch


GAME = GuessMyCity()
