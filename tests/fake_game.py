"""A counting game for tests of players and collection: small, strict, quick.

Two roles take turns for `rounds` turns; a turn must be of at most `longest` characters and must
not be empty. The role that says more characters wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aria_dvc.arena.assignments import Assignment
from aria_dvc.arena.collection import collect_series
from aria_dvc.arena.journal import Journal
from aria_dvc.arena.series import Series
from aria_dvc.games.base import Config, Failure, Game, IllegalMove, Match, Outcome
from aria_dvc.players.base import Player, Reply, Request
from aria_dvc.records.episodes import Episode
from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import Pace

ROLES = ("alice", "bob")


class CountingMatch(Match):
    game = "counting"
    roles = ROLES

    @property
    def to_move(self) -> str | None:
        return None if self.outcome else ROLES[len(self.lines) % 2]

    def system_prompt(self, role: str) -> str:
        return (
            f"You are {role}. Talk for {self.config['rounds']} turns. Topic {self.config['topic']}."
        )

    def play(self, text: str) -> None:
        role = self.to_move
        assert role is not None
        if not text.strip():
            raise IllegalMove("empty", "Say something.")
        if len(text) > self.config.get("longest", 1000):
            raise IllegalMove("too_long", "Say less.")
        self.lines.append((role, text.strip()))
        if len(self.lines) >= self.config["rounds"]:
            said = {r: float(sum(len(t) for who, t in self.lines if who == r)) for r in ROLES}
            wins = {r: float(said[r] == max(said.values())) for r in ROLES}
            self.outcome = Outcome(wins, "done", said, {"lines": len(self.lines)})

    def forfeit(self, kind: str, text: str = "") -> None:
        role = self.to_move
        assert role is not None
        if text.strip():
            self.lines.append((role, text.strip()[:100]))
        wins = {r: float(r != role) for r in ROLES}
        self.outcome = Outcome(wins, "failure", failure=Failure(role, kind))


class CountingGame(Game):
    name = "counting"
    category = "adversarial"
    roles = ROLES
    environment = None

    def __init__(self, **config: object) -> None:
        self.config = config

    def grids(self) -> Mapping[str, Sequence[Config]]:
        return {"default": [{"rounds": 4, "topic": t, **self.config} for t in range(7)]}

    def start(self, config: Config, reward: str = "win") -> CountingMatch:
        return CountingMatch(config)


class Talker:
    """Says `texts` in turn (by role), or what a function of the request returns."""

    name = "talker"
    model = "none"

    def __init__(self, say) -> None:
        self.say = say
        self.asked: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(self.say(request), prompt_tokens=2, completion_tokens=1)

    def finished(self, episode_id: str) -> None: ...

    async def close(self) -> None: ...


def both(player) -> dict:
    return {"alice": player, "bob": player}


def collect_episodes(
    game: Game,
    assignments: Sequence[Assignment],
    players: Mapping[str, Player],
    settings: PlaySettings,
    pace: Pace,
    reward: str = "win",
    journal: Journal | None = None,
) -> list[Episode]:
    """The episodes of one series."""
    one = Series(game, assignments, players, settings, reward, journal)
    (episodes,) = collect_series([one], pace)
    return episodes
