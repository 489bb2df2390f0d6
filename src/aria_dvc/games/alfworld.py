"""ALFWorld's own games, from the folder of a user's download, in ALFWorld's own engine.

Needs the extra `alfworld`. A grid is the path of a folder with games (`game.tw-pddl`), at any
depth: of these the ones count that ALFWorld itself would play, which are those that it found
solvable and in which nothing is sliced. Commands are spelt as in `household`.
"""

from __future__ import annotations

import hashlib
import re
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Self

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.games.base import Config, Failure, Game, refuse_unknown_keys
from aria_dvc.games.commands import AGENT, NOTHING, STEPS_BOUND, CommandMatch
from aria_dvc.games.household_world import canonical
from aria_dvc.shown import brief

FILE = "game.tw-pddl"
MAX_STEPS = 40  # as in SPA-RL
KINDS = {
    "pick_and_place_simple": "put",
    "pick_two_obj_and_place": "two",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "look_at_obj_in_light": "look",
}
"""The household's name of each of ALFWorld's kinds of task."""
_LEFT_OUT = ("movable", "Sliced")
"""In the name of a task's folder, where ALFWorld looks at the whole path, the user's part too."""
# Engines whose game is over: each holds a planner of its own, which nothing frees.
_FREE: list[Any] = []
_PUT = re.compile(r"put (.+) in/on (.+)")


class Room:
    """A game in ALFWorld's engine: `told` is its first answer, `done` whether the task is."""

    def __init__(self, file: str) -> None:
        self._env = _FREE.pop() if _FREE else _engine()
        try:
            self._env.load(file)
            state = self._env.reset()
        except (Exception, SystemExit) as error:  # so it says all that is wrong with a file
            raise AriaError(f"{file}: ALFWorld cannot play it: {brief(error)}") from None
        self._moves = any(one.startswith("move ") for one in state["command_templates"])
        self.told = " ".join(state.feedback.split("=-", 1)[-1].split())
        self.done = False
        self.close = weakref.finalize(self, _FREE.append, self._env)

    def say(self, command: str) -> str | None:
        """What the engine tells; None where nothing happens."""
        spelt = canonical(command)
        if (put := _PUT.fullmatch(spelt)) and self._moves:
            spelt = "move {} to {}".format(*put.groups())
        state, _, self.done = self._env.step(spelt)
        told = " ".join(state.feedback.split())
        return None if told == NOTHING else told


class AlfworldMatch(CommandMatch):
    """`config`: file, the path of a game, the hash of its content, and max_steps."""

    game = "alfworld"

    def __init__(self, config: Config) -> None:
        self._room = Room(config["file"])
        super().__init__(config, self._room.told)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The engine cannot be copied: a fresh one is brought to the same state."""
        twin = type(self)(self.config)
        for role, said in self.lines:
            if role == AGENT:
                twin.play(said)
        return twin

    def carry_out(self, command: str) -> str | None:
        return self._room.say(command)

    def is_done(self) -> bool:
        return self._room.done

    def _end(self, reason: str, failure: Failure | None = None) -> None:
        super()._end(reason, failure)
        self._room.close()


class Alfworld(Game):
    name = "alfworld"
    category = "household"
    roles = (AGENT,)
    environment = None

    def grids(self) -> Mapping[str, Sequence[Config]]:
        """None has a name: see `grid`."""
        return {}

    def grid(self, name: str) -> Sequence[Config]:
        """The games in the folder called `name`, by path.

        Raises:
            AriaError: there is no such folder, or no game in it.
        """
        return _games(name)

    def task_kind(self, config: Config) -> str | None:
        """By the name of the task's folder; None where ALFWorld did not name it."""
        parts = PurePosixPath(config["file"]).parts[::-1]
        return next((KINDS[kind] for part in parts if (kind := part.split("-")[0]) in KINDS), None)

    def start(self, config: Config, reward: str = "win") -> AlfworldMatch:
        return AlfworldMatch(complete(config))


def complete(config: Config) -> Config:
    """A configuration with the hash of the game and the limit of steps filled in.

    Raises:
        AriaError: a key is missing or unknown, a value is not one of this game's, or the file has
            other content than it had.
    """
    refuse_unknown_keys("alfworld", config, ["file", "content", "max_steps"])
    file, limit = config.get("file"), config.get("max_steps", MAX_STEPS)
    if not isinstance(file, str) or not Path(file).is_file():
        raise AriaError(f"alfworld: file is {file!r}: name a game of a download, a {FILE}")
    if type(limit) is not int or not 1 <= limit <= STEPS_BOUND:
        raise AriaError(f"alfworld: max_steps is {limit!r}: use a whole number from 1")
    content = _content(Path(file).read_bytes())
    if config.get("content", content) != content:
        raise AriaError(f"{file}: another game than it was: play again, or bring the old file back")
    return {"file": file, "content": content, "max_steps": limit}


def _content(game: bytes) -> str:
    return hashlib.sha256(game).hexdigest()[:16]


@cache
def _games(folder: str) -> tuple[Config, ...]:
    files = sorted(path.as_posix() for path in Path(folder).rglob(FILE))
    found = tuple(
        {"file": file, "content": _content(game), "max_steps": MAX_STEPS}
        for file in files
        if _is_played(file, game := Path(file).read_bytes())
    )
    if not found:
        told = f", though {len(files)} that ALFWorld does not play" if files else ""
        raise AriaError(
            f"alfworld: grid {folder}: no game there{told}: name the folder of a download, such "
            "as data/alfworld/json_2.1.1/valid_unseen"
        )
    return found


def _is_played(file: str, game: bytes) -> bool:
    """Whether it is one of ALFWorld's own games, by its content and its task's folder's name."""
    if any(word in PurePosixPath(file).parent.parent.name for word in _LEFT_OUT):
        return False
    try:
        return orjson.loads(game).get("solvable") is True
    except (orjson.JSONDecodeError, AttributeError):
        raise AriaError(f"{file}: no game of ALFWorld: download it again") from None


def _engine() -> Any:
    """A fresh engine, which gives things the names that ALFWorld does.

    Raises:
        AriaError: the extra is not installed.
    """
    try:
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld import EnvInfos
        from textworld.envs import PddlEnv

        return AlfredDemangler(PddlEnv(EnvInfos(admissible_commands=True)))
    except ImportError as error:
        raise AriaError(
            f"games of ALFWorld need its engine ({error}): pip install 'aria-dvc[alfworld]'"
        ) from None


GAME = Alfworld()
