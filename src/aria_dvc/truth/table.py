"""From a log to the table of the true values of some of its actions."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from aria_dvc.arena.side_by_side import play_side_by_side
from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.records.episodes import Episode
from aria_dvc.seeds import derived_seed
from aria_dvc.settings.dialogues import PlaySettings, SamplingOverride, TruthParams
from aria_dvc.truth.branching import RECORDED, Branch, Branching, end_of, is_end, played_by
from aria_dvc.truth.turns import Turn, drawn_turns
from aria_dvc.truth.values import values_of

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.params import Params

logger = logging.getLogger(__name__)
PURPOSE = "truth"
COUNTS = ("continuations", "draws", "draw_continuations")
NOTHING = (np.nan, np.nan)
Ending = tuple[float, float]  # a role's final reward, and how many turns it had


@dataclass(frozen=True)
class Question:
    """What is asked of a log.

    players: kinds of player whose turns are measured.
    model, adapter: behind the players `base` and `policy`, as where the log was played.
    """

    settings: TruthParams
    gamma: float
    players: Collection[str]
    model: str
    adapter: Path | None = None


def truth_table(params: Params, episodes: Sequence[Episode], asked: Question) -> pd.DataFrame:
    """The true values of `asked.settings.turns` turns, in the log's order (records/schemas.py).

    They are played in the arena, many at once; what was played before is taken from its journal,
    also for fewer turns, draws or continuations.

    Raises:
        AriaError: the log was not played here, by players that can go on, under the present rules;
            or a player cannot be reached.
    """
    seed = derived_seed(params.seed, PURPOSE)
    turns = drawn_turns(episodes, asked.players, asked.settings.turns, seed)
    return values_of_turns(params, episodes, turns, asked)


def values_of_turns(
    params: Params, episodes: Sequence[Episode], turns: Sequence[Turn], asked: Question
) -> pd.DataFrame:
    """The same of these very turns of the log."""
    settings = asked.settings
    _warn_of_models(episodes, asked)
    play = _Play(params, episodes, asked)
    ends = [play.end(turn) for turn in turns]
    play.go_on(_first_branches(turns, ends, settings))
    play.go_on(_further_branches(turns, play, settings))
    own = np.array([play.own(turn, end) for turn, end in zip(turns, ends, strict=True)])
    drawn = np.array([[play.drawn(t, d) for d in _draws(settings)] for t in turns])
    table = _frame(turns, own, drawn, asked.gamma)
    counts = np.full((3, len(turns)), [[getattr(settings, name)] for name in COUNTS], np.int32)
    counts[0, [end is not None for end in ends]] = 0
    return _whole(table.assign(**dict(zip(COUNTS, counts, strict=True))))


def _draws(settings: TruthParams) -> range:
    return range(1, settings.draws + 1)


def _first_branches(
    turns: Sequence[Turn], ends: Sequence[Ending | None], settings: TruthParams
) -> Iterator[Branch]:
    """All continuations of the recorded actions, and one of each action that is yet to be drawn."""
    for turn, end in zip(turns, ends, strict=True):
        if end is None:
            yield Branch(turn, RECORDED, turn.text, range(settings.continuations))
        for draw in _draws(settings):
            yield Branch(turn, draw, None, range(1))


def _further_branches(
    turns: Sequence[Turn], play: _Play, settings: TruthParams
) -> Iterator[Branch]:
    """The other continuations of the actions that were drawn, where these did not end the game."""
    for turn in turns if settings.draw_continuations > 1 else ():
        for draw in _draws(settings):
            action = play.action(turn, draw)
            if action is not None:
                yield Branch(turn, draw, action, range(1, settings.draw_continuations))


@dataclass
class _Play:
    """The continuations of one log that were played so far, by their names."""

    params: Params
    episodes: Sequence[Episode]
    asked: Question
    found: dict[str, Episode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.players = played_by(self.episodes)
        self.game = get_game(_one({episode.game for episode in self.episodes}, "games"))
        rules = {episode.record.reward_rule or "win" for episode in self.episodes}
        self.reward = _one(rules, "rules of reward")
        said = [[[u.role, u.text] for u in e.utterances] for e in self.episodes]
        names = [[e.episode_id, e.info] for e in self.episodes]
        self.log = hashlib.sha256(orjson.dumps([names, said])).hexdigest()

    def go_on(self, branches: Iterator[Branch]) -> None:
        """Play continuations."""
        wanted = tuple(branches)
        if not wanted:
            return
        series = Branching(
            self.game,
            self.players,
            sampled_as(self.episodes, self.params.collect),
            wanted,
            self.log,
            model=self.asked.model,
            adapter=self.asked.adapter,
            reward=self.reward,
            purpose=PURPOSE,
        )
        (played,) = play_side_by_side(self.params, [series], f"truth {self.game.name}")
        self.found.update((episode.episode_id, episode) for episode in played)

    def end(self, turn: Turn) -> Ending | None:
        """How the recorded action ended the game; None if it did not."""
        outcome = end_of(self.game, turn, self.reward)
        return None if outcome is None else (outcome.rewards[turn.role], turn.turn)

    def action(self, turn: Turn, draw: int) -> str | None:
        """The action that was drawn, unless it ended the game."""
        said = self.found[Branch(turn, draw, None, range(1)).name(0)].utterances
        if not said or said[0].role != turn.role:  # a forfeit without a word
            return None
        ended = is_end(self.game, turn, self.reward, said[0].text)
        return None if ended else said[0].text

    def own(self, turn: Turn, end: Ending | None) -> list[Ending]:
        """How the continuations of the recorded action ended."""
        numbers = range(self.asked.settings.continuations)
        if end is not None:
            return [end for _ in numbers]
        branch = Branch(turn, RECORDED, turn.text, numbers)
        return [self._ending(turn, turn.turn, branch.name(number)) for number in numbers]

    def drawn(self, turn: Turn, draw: int) -> list[Ending]:
        """How the continuations of one drawn action ended."""
        numbers = range(self.asked.settings.draw_continuations)
        names = [Branch(turn, draw, None, numbers).name(number) for number in numbers]
        first = self._ending(turn, turn.turn - 1, names[0])
        further = [self._ending(turn, turn.turn, n) for n in names[1:] if n in self.found]
        return [first, *further] if further else [first for _ in numbers]

    def _ending(self, turn: Turn, before: int, name: str) -> Ending:
        """How one continuation ended, before which the role had so many turns.

        NOTHING where somebody without a reward broke it off. A turn without a word is one too.
        """
        episode, role = self.found[name], turn.role
        failure = episode.info["failure"]
        if failure is not None and failure["role"] not in episode.rewards:
            return NOTHING
        own = before + sum(utterance.role == role for utterance in episode.utterances)
        return episode.rewards[role], max(own, turn.turn)


def _warn_of_models(episodes: Sequence[Episode], asked: Question) -> None:
    """Say where another model goes on than has played, as far as names tell."""
    worn = f"{asked.model}+{asked.adapter}" if asked.adapter else asked.model
    own = {"policy": worn, "base": asked.model}
    players = [player for episode in episodes for player in episode.record.players.values()]
    for name, model in sorted({(p.name, p.model) for p in players if p.name and p.model}):
        if name in own and model != own[name]:
            logger.warning(
                "truth: %s was %s in the log and goes on as %s: see that it is the same model",
                *(name, model, own[name]),
            )


def _one(found: set[str], what: str) -> str:
    if len(found) > 1:
        raise AriaError(
            f"truth: a log of several {what} ({', '.join(sorted(found))}): measure them apart"
        )
    return found.pop()


def sampled_as(episodes: Sequence[Episode], settings: PlaySettings) -> PlaySettings:
    """`settings` with the temperature and top_p that the log's language models had.

    Raises:
        AriaError: one player had several.
    """
    own: dict[str, SamplingOverride] = dict(settings.sampling)
    seen: dict[str, Any] = {}
    for episode in episodes:
        record = episode.record
        for role, sampled in record.sampling.items():
            name = record.players[role].name or ""
            if seen.setdefault(name, sampled) != sampled:
                raise AriaError(
                    f"truth: {name} was sampled in several ways in the log: measure games of one "
                    "sampling at a time"
                )
            update = {"temperature": sampled.temperature, "top_p": sampled.top_p}
            own[name] = own.get(name, SamplingOverride()).model_copy(update=update)
    return settings.model_copy(update={"sampling": own})


def _frame(turns: Sequence[Turn], own: np.ndarray, drawn: np.ndarray, gamma: float) -> pd.DataFrame:
    """own: (n, N, 2) endings; drawn: (n, K, M, 2)."""
    import pandas as pd

    turn = np.array([t.turn for t in turns], dtype=np.int32)
    columns: dict[str, Any] = {
        "episode_id": [t.episode.episode_id for t in turns],
        "group_id": [t.episode.group_id for t in turns],
        "position": np.array([t.position for t in turns], dtype=np.int32),
        "role": [t.role for t in turns],
        "turn": turn,
        "action": [t.text for t in turns],
    }
    for prefix, discount in (("", gamma), ("plain_", 1.0)):
        returns = [_returns(own, turn[:, None], discount)]
        returns += [_returns(drawn, turn[:, None, None], discount)]
        found: Mapping[str, np.ndarray] = vars(values_of(*returns))
        columns |= {prefix + name: values for name, values in found.items()}
    return pd.DataFrame(columns)


def _returns(endings: np.ndarray, turn: np.ndarray, gamma: float) -> np.ndarray:
    """Discounted returns (paper sec. 3.3) of (..., 2) endings: gamma^(T - t) R."""
    reward, turns = endings[..., 0], endings[..., 1]
    return gamma ** (turns - turn) * reward


def _whole(table: pd.DataFrame) -> pd.DataFrame:
    """The turns of which every value is known, and a word on the others."""
    known = table.notna().all(axis=1)
    if not known.all():
        logger.warning(
            "truth: %d of %d turns are left out: too many of their continuations were broken off "
            "by the other side of the game",
            *(int((~known).sum()), len(table)),
        )
    return table[known].reset_index(drop=True)
