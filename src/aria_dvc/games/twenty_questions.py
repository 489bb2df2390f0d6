"""Twenty Questions: guess one of 157 objects by yes-or-no questions (LMRL-Gym's rules)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from aria_dvc.games.base import Config, Game, IllegalMove
from aria_dvc.games.guessing import GuessGrammar, GuessingMatch, complete, is_guess
from aria_dvc.games.parsing import cut
from aria_dvc.oracles.objects.targets import find_object, objects
from aria_dvc.oracles.text import fold

YES, NO, INVALID = "Yes.", "No.", "Invalid question."
_THING = (
    r"(?:(?:mystery|secret|hidden|target|correct|right) )?(?:object|thing|item|answer|word)"
    r"(?: (?:that )?(?:(?:you are|youre|i am) thinking (?:of|about)|in question|you have in mind))?"
)
_IT = rf"(?:it|this|that|they|these|those|(?:the|your) {_THING}|what you are thinking of)"
_SOFT = (
    r"(?: (?:perhaps|maybe|possibly|actually|really|just|simply|by any chance|probably|likely))*"
)
_GRAMMAR = GuessGrammar(
    lead=(
        rf"(?:(?:is|are|was|were) {_IT}|(?:could|might|can|would|must|may) {_IT} be"
        rf"|{_IT} (?:is|are|must be|has to be|could be|might be)|its|theyre"
        r"|my (?:\w+ )?guess is|(?:are|were) you thinking (?:of|about)"
        r"|(?:i|id|i would|i will) (?:guess|think|believe|say)(?: that)?"
        rf"(?: (?:{_IT} (?:is|are)|its))?)"
        rf"{_SOFT}(?: (?:called|named|known as))?(?: (?:a|an|the|some))?|a|an|the|some"
    )
)
_FIRST_WORD = re.compile(r"[^a-z]*(yes|no|invalid(?: question)?)\b(.*)", re.DOTALL)
_OPPOSITE = {
    "yes": r"\bno\b|\binvalid\b",
    "no": r"\byes\b|\binvalid\b",
    "invalid": r"\byes\b|\bno\b",
}


@cache
def _guesses(target: str | None) -> re.Pattern[str]:
    """Guesses of one target, or of any; plural forms count as the word."""
    chosen = objects() if target is None else [find_object(target)]
    spellings = {fold(spelling) for item in chosen for spelling in item.spellings}
    return _GRAMMAR.pattern(spellings | {form for one in spellings for form in plurals(one)})


def plurals(word: str) -> list[str]:
    """Spellings that are taken for the plural of a folded word."""
    forms = [word + "s", word + "es"]
    for ending, plural in (("y", "ies"), ("f", "ves"), ("fe", "ves")):
        if word.endswith(ending):
            forms.append(word.removesuffix(ending) + plural)
    return forms


class TwentyQuestionsMatch(GuessingMatch):
    game = "twenty_questions"

    def solved_by(self, question: str) -> bool:
        return is_guess(question, _guesses(self.config["target"]), _guesses(None))

    def read_answer(self, text: str) -> str:
        return read_answer(text)

    def system_prompt(self, role: str) -> str:
        if role == "oracle":
            return (
                f"You answer in Twenty Questions. The hidden object is: {self.config['target']}. "
                'Answer every question with exactly one of "Yes.", "No." and "Invalid question." '
                "(when it is not a yes-or-no question about the object). Say nothing else."
            )
        return agent_prompt(self.config["max_questions"])


def agent_prompt(limit: int) -> str:
    return (
        "You play Twenty Questions: find the hidden everyday object. Ask one short yes-or-no "
        f"question a turn, {limit} at most. The answers are Yes, No or Invalid question. "
        'You win by naming the object in a question such as "Is it a compass?"'
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


class TwentyQuestions(Game):
    name = "twenty_questions"
    category = "single_agent"
    roles = ("agent",)
    environment = "oracle"

    def grids(self) -> Mapping[str, Sequence[Config]]:
        """`default`: all 157 targets."""
        return {"default": [complete(self.name, {"target": item.name}) for item in objects()]}

    def start(self, config: Config, reward: str = "win") -> TwentyQuestionsMatch:
        full = complete(self.name, config)
        return TwentyQuestionsMatch({**full, "target": find_object(full["target"]).name})

    def describe(self, role: str) -> str:
        return agent_prompt(20) if role == "agent" else ""


GAME = TwentyQuestions()
