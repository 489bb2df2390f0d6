"""Guessing games: an agent asks about a hidden target, an oracle answers, at most 20 questions.

The match itself knows the target and judges every guess; what the oracle says never decides it.
The oracle is a role like any other, so an embedded one or a language model can play it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from aria_dvc.errors import AriaError
from aria_dvc.games.base import Config, Failure, Game, Match, Outcome, refuse_unknown_keys
from aria_dvc.games.parsing import cut, utterance
from aria_dvc.oracles.base import Knowledge, Oracle

MAX_QUESTIONS = 20
MAX_QUESTION_CHARS = 500
SMALL = (16, 32)
"""Sizes of the small grids."""


class GuessingMatch(Match):
    """`config`: target, max_questions, and on a small grid `among`, how many targets it has.

    Lines alternate agent, oracle; a win closes both.

    knowledge: what the game is about. solved_answer: the oracle's line after a right guess.
    no_answer: what the oracle says when it tells nothing.
    """

    roles = ("agent",)
    knowledge: Knowledge
    solved_answer = "Yes."
    no_answer: str

    @property
    def targets(self) -> tuple[str, ...]:
        """What the target may be: all, or the first `among` that small models name."""
        among = self.config.get("among")
        return self.knowledge.targets() if among is None else self.knowledge.familiar()[:among]

    @property
    def oracle(self) -> Oracle:
        """The embedded oracle of the target."""
        return self.knowledge.oracle(self.config["target"])

    def solved_by(self, question: str) -> bool:
        """Whether the question names the target as its guess."""
        return self.oracle.is_guess(question)

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


class GuessingGame(Game):
    """A guessing game is its kind of match."""

    category = "single_agent"
    roles = ("agent",)
    environment = "oracle"
    match: type[GuessingMatch]

    def grids(self) -> Mapping[str, Sequence[Config]]:
        """`default`: all targets. `small16`, `small32`: so many that small models name.

        Who plays on a small grid learns a list, and success there says nothing of other targets.
        """
        knowledge = self.match.knowledge
        whole = [complete(self.name, {"target": target}) for target in knowledge.targets()]
        return {"default": whole} | {
            f"small{among}": [
                complete(self.name, {"target": target, "among": among})
                for target in knowledge.familiar()[:among]
            ]
            for among in SMALL
        }

    def start(self, config: Config, reward: str = "win") -> GuessingMatch:
        full = complete(self.name, config)
        target = self.match.knowledge.oracle(full["target"]).target
        match = self.match({**full, "target": target})
        if target not in match.targets:
            raise AriaError(
                f"{self.name}: {target} is not among the first {full['among']} familiar targets: "
                "leave out among"
            )
        return match


def complete(game: str, config: Config) -> Config:
    """A configuration with the default number of questions; the target is not checked here.

    `among` stays out where the target may be any.

    Raises:
        AriaError: a key is missing or unknown, or a value is of the wrong kind.
    """
    refuse_unknown_keys(game, config, ["target", "max_questions", "among"])
    if not isinstance(config.get("target"), str):
        raise AriaError(f"{game}: the configuration has no target: add target, a word of the list")
    limit = config.get("max_questions", MAX_QUESTIONS)
    if type(limit) is not int or not 1 <= limit <= MAX_QUESTIONS:
        raise AriaError(f"{game}: max_questions is {limit!r}: use a number from 1 to 20")
    full = {"target": config["target"], "max_questions": limit}
    if "among" not in config:
        return full
    if config["among"] not in SMALL:
        raise AriaError(
            f"{game}: among is {config['among']!r}: use one of {SMALL}, or leave it out"
        )
    return {**full, "among": config["among"]}
