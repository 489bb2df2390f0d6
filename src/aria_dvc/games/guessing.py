"""Guessing games: an agent asks about a hidden target, an oracle answers, at most 20 questions.

The match itself knows the target and judges every guess; what the oracle says never decides it.
The oracle is a role like any other, so an embedded one or a language model can play it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from aria_dvc.errors import AriaError
from aria_dvc.games.alternating import refuse_unknown_keys
from aria_dvc.games.base import Config, Failure, Match, Outcome
from aria_dvc.games.parsing import cut, utterance
from aria_dvc.oracles.text import fold

MAX_QUESTIONS = 20
MAX_QUESTION_CHARS = 500


class GuessingMatch(Match):
    """`config`: target, max_questions. Lines alternate agent, oracle; a win closes both."""

    roles = ("agent",)
    solved_answer = "Yes."

    @property
    def to_move(self) -> str | None:
        if self.outcome:
            return None
        return "agent" if len(self.lines) % 2 == 0 else "oracle"

    @property
    def asked(self) -> int:
        """Questions asked so far."""
        return sum(role == "agent" for role, _ in self.lines)

    @abstractmethod
    def solved_by(self, question: str) -> bool:
        """Whether the question names the target as its guess."""

    @abstractmethod
    def read_answer(self, text: str) -> str:
        """The oracle's answer as it is shown to the agent.

        Raises:
            IllegalMove: the text is not an answer in this game.
        """

    def play(self, text: str) -> None:
        if self.to_move == "agent":
            self._ask(utterance(text, "agent", MAX_QUESTION_CHARS))
        elif self.to_move == "oracle":
            self.lines.append(("oracle", self.read_answer(text)))
            if self.asked >= self.config["max_questions"]:
                self._end("turn_limit")
        else:
            raise ValueError("the match is over")

    def _ask(self, question: str) -> None:
        solved = self.solved_by(question)
        self.lines.append(("agent", question))
        if solved:
            self.lines.append(("oracle", self.solved_answer))
            self._end("solved")

    def forfeit(self, kind: str, text: str = "") -> None:
        role = self.to_move
        if role is None:
            raise ValueError("the match is over")
        kept = cut(text, MAX_QUESTION_CHARS)
        if kept:
            self.lines.append((role, kept))
        self._end("failure", Failure(role, kind))

    def _end(self, reason: str, failure: Failure | None = None) -> None:
        self.outcome = Outcome(
            rewards={"agent": 1.0 if reason == "solved" else 0.0},
            reason=reason,
            details={"questions": self.asked, "target": self.config["target"]},
            failure=failure,
        )


def complete(game: str, config: Config) -> Config:
    """A configuration with the default number of questions; the target is not checked here.

    Raises:
        AriaError: a key is missing or unknown, or a value is of the wrong kind.
    """
    refuse_unknown_keys(game, config, ["target", "max_questions"])
    if not isinstance(config.get("target"), str):
        raise AriaError(f"{game}: the configuration has no target: add target, a word of the list")
    limit = config.get("max_questions", MAX_QUESTIONS)
    if type(limit) is not int or not 1 <= limit <= MAX_QUESTIONS:
        raise AriaError(f"{game}: max_questions is {limit!r}: use a number from 1 to 20")
    return {"target": config["target"], "max_questions": limit}


# --- guesses --------------------------------------------------------------------------------------

_END = re.compile(r"(?<!\bst)(?<!\b[a-z])([.!?]+)(?=\s|$)")
_ASKS = re.compile(
    r"(?:is|isnt|are|arent|was|were|do|does|did|can|could|would|will|has|have|might|may|must|what"
    r"|which|where|who|when|how|why)\b"
)
_FILLER = (
    r"(?:based on (?:\w+ ){1,8}?)?"
    r"(?:(?:let me guess|ok|okay|so|well|then|now|hmm|alright|great|and|please"
    r"|(?:my )?(?:final |last )?(?:guess|answer)|(?:next |final )?question|q|\d{1,2}) )*"
)
_TAIL = (
    r"(?: (?:then|right|correct|by any chance|maybe|perhaps|please|or not|yes or no"
    r"|your final answer))*"
)


@dataclass(frozen=True)
class GuessGrammar:
    """How guesses are phrased in one game, in folded words.

    lead: pattern of what may stand before the name ("is it a"); it may be empty.
    suffix: pattern of what may follow the name (", China").
    """

    lead: str
    suffix: str = ""

    def pattern(self, names: Iterable[str]) -> re.Pattern[str]:
        """Matches a folded sentence that is a guess of one of the folded `names`."""
        either = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
        return re.compile(rf"{_FILLER}(?:(?:{self.lead}) )?(?:{either}){self.suffix}{_TAIL}")


def guess_sentence(text: str) -> tuple[str, list[str]]:
    """The sentence that may be a guess, and the others, folded; ("", [...]) if two questions."""
    pieces = _END.split(text.lower())
    ends = [*pieces[1::2], ""]
    parts = [(fold(piece), end) for piece, end in zip(pieces[::2], ends, strict=True)]
    parts = [(piece, end) for piece, end in parts if piece]
    asked = [i for i, (piece, end) in enumerate(parts) if "?" in end or _ASKS.match(piece)]
    if not parts or len(asked) > 1:
        return "", [piece for piece, _ in parts]
    chosen = asked[0] if asked else len(parts) - 1
    return parts[chosen][0], [piece for i, (piece, _) in enumerate(parts) if i != chosen]


def is_guess(text: str, target: re.Pattern[str], anything: re.Pattern[str]) -> bool:
    """Whether the text guesses the target and nothing else.

    `target` matches guesses of the target, `anything` guesses of any target of the game.
    """
    guess, others = guess_sentence(text)
    return bool(target.fullmatch(guess)) and not any(map(anything.fullmatch, others))
