"""Household: find, clean, heat, cool and carry things in a room, in the manner of ALFWorld.

Rooms and receptacles are in `household_rooms`, tasks are drawn in `household_tasks`, and
`household_world` holds a room's state and carries commands out. `commands` adds the dialogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aria_dvc.errors import AriaError
from aria_dvc.games.base import Config, Game, refuse_unknown_keys
from aria_dvc.games.commands import AGENT, STEPS_BOUND, CommandMatch
from aria_dvc.games.household_rooms import SPLITS
from aria_dvc.games.household_tasks import KINDS, SMALL_TASKS, draw
from aria_dvc.suggestions import did_you_mean

MAX_STEPS = {"train": 40, "unseen": 40, "small": 8}
# The tasks of the grids: the split, and numbers by kind. `unseen` has as many of each kind as
# ALFWorld's unseen split.
_UNSEEN = {"put": 24, "two": 17, "clean": 31, "heat": 23, "cool": 21, "look": 18}
_GRIDS = {
    "train": ("train", dict.fromkeys(KINDS, range(100))),
    "unseen": ("unseen", {kind: range(count) for kind, count in _UNSEEN.items()}),
    "small": ("small", dict.fromkeys(KINDS, range(20))),
    "small_train": ("small", dict.fromkeys(KINDS, range(20, SMALL_TASKS))),
}


class HouseholdMatch(CommandMatch):
    """`config`: split, kind and number of the task, and max_steps."""

    game = "household"

    def __init__(self, config: Config) -> None:
        self.world, self.task = draw(config["split"], config["kind"], config["number"])
        super().__init__(config, f"{self.world.around()} {self.task.sentence}")

    def carry_out(self, command: str) -> str | None:
        return self.world.command(command)

    def is_done(self) -> bool:
        return self.task.is_done(self.world)


class Household(Game):
    name = "household"
    category = "household"
    roles = (AGENT,)
    environment = None

    def grids(self) -> Mapping[str, Sequence[Config]]:
        """`train` (the default), `unseen`: 134 tasks in other rooms, with other pairs of object
        and place; `small`: 120 tasks of two to four commands, `small_train`: 600 others."""
        found = {
            name: [
                complete({"split": split, "kind": kind, "number": number})
                for kind, numbers in tasks.items()
                for number in numbers
            ]
            for name, (split, tasks) in _GRIDS.items()
        }
        return {"default": found["train"], **found}

    def task_kind(self, config: Config) -> str | None:
        return str(config["kind"])

    def start(self, config: Config, reward: str = "win") -> HouseholdMatch:
        return HouseholdMatch(complete(config))


def complete(config: Config) -> Config:
    """A configuration with the split's limit of steps filled in.

    Raises:
        AriaError: a key is missing or unknown, or a value is not one of this game's.
    """
    refuse_unknown_keys("household", config, ["split", "kind", "number", "max_steps"])
    for key, known in (("split", SPLITS), ("kind", KINDS)):
        if config.get(key) not in known:
            hint = did_you_mean(str(config.get(key)), known)
            raise AriaError(f"household: {key} is {config.get(key)!r}: use another{hint}")
    limit = config.get("max_steps", MAX_STEPS[config["split"]])
    for key, value, low in (("number", config.get("number"), 0), ("max_steps", limit, 1)):
        if type(value) is not int or value < low or (key == "max_steps" and value > STEPS_BOUND):
            raise AriaError(f"household: {key} is {value!r}: use a whole number from {low}")
    return {**{key: config[key] for key in ("split", "kind", "number")}, "max_steps": limit}


GAME = Household()
