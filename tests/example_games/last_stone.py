"""Last Stone: Alice and Bob take one to three stones in turn; who takes the last one wins."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from aria_dvc.errors import AriaError
from aria_dvc.games.base import Config, Failure, Game, IllegalMove, Match, Outcome
from aria_dvc.games.parsing import cut, utterance
from aria_dvc.games.rewards import after_forfeit

ROLES = ("alice", "bob")
_TAKE = re.compile(r"(?:(?:well|fine), |then )?(?:i )?take ([0-9]+)\.?", re.IGNORECASE)


class LastStoneMatch(Match):
    game = "last_stone"
    roles = ROLES

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.left: int = config["stones"]

    @property
    def to_move(self) -> str | None:
        return None if self.outcome else ROLES[len(self.lines) % 2]

    def system_prompt(self, role: str) -> str:
        rival = "Bob" if role == "alice" else "Alice"
        return (
            f"You and {rival} take stones from a pile of {self.config['stones']} in turn. "
            'Each turn say "I take N." with N from 1 to 3. Who takes the last stone wins.'
        )

    def scripted_text(self, rng: random.Random) -> str:
        """Optional: words for warm-start dialogues and for the player `scripted:own`."""
        taken = self.left % 4 or rng.randint(1, min(3, self.left))
        return rng.choice(("I take {}.", "Well, I take {}.", "Then I take {}.")).format(taken)

    def _mover(self) -> str:
        if self.to_move is None:
            raise ValueError("the match is over")
        return self.to_move

    def play(self, text: str) -> None:
        role = self._mover()
        spoken = utterance(text, role)
        taken = self._read(spoken)
        self.lines.append((role, spoken))
        self.left -= taken
        if self.left == 0:
            self._end(role, "last_stone")

    def _read(self, text: str) -> int:
        said = _TAKE.fullmatch(text)
        if not said:
            raise IllegalMove("unreadable", 'Say only "I take N."')
        stones = int(said[1])
        if not 1 <= stones <= min(3, self.left):
            raise IllegalMove("wrong_number", f"Take 1 to {min(3, self.left)} stones.")
        return stones

    def forfeit(self, kind: str, text: str = "") -> None:
        role = self._mover()
        if cut(text):
            self.lines.append((role, cut(text)))
        self._end(ROLES[1 - ROLES.index(role)], "failure", Failure(role, kind))

    def _end(self, winner: str, reason: str, failure: Failure | None = None) -> None:
        rewards = {role: float(role == winner) for role in ROLES}
        if failure:
            rewards = after_forfeit("win", ROLES, failure.role)
        self.outcome = Outcome(rewards, reason, details={"left": self.left}, failure=failure)


class LastStone(Game):
    name = "last_stone"
    category = "adversarial"
    roles = ROLES
    environment = None

    def grids(self) -> Mapping[str, Sequence[Config]]:
        return {"default": [{"stones": stones} for stones in (9, 13, 21)]}

    def start(self, config: Config, reward: str = "win") -> LastStoneMatch:
        stones = config.get("stones")
        if set(config) != {"stones"} or type(stones) is not int or stones < 1:
            raise AriaError(f"last_stone: the configuration is {config}: use stones: 9 or so")
        return LastStoneMatch(config)


GAME = LastStone()
