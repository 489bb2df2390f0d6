"""The final rewards of an episode: whose they are, and whether they are such."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

from aria_dvc.records.episodes import Episode
from aria_dvc.records.formats.base import LARGEST, THE_AGENT, BadEntry, Layout, is_number
from aria_dvc.records.formats.openai import ASSISTANT
from aria_dvc.records.reading import Outcome, Reading, described
from aria_dvc.suggestions import did_you_mean

logger = logging.getLogger(__name__)
_NO_ACTION = "no action: a role with a reward must say something"


@dataclass
class Judged:
    """How many episodes of a log had a win test, and in how many it contradicts the log."""

    episodes: int = 0
    contradicted: int = 0

    def rewards(
        self, episode: Episode, layout: Layout, recorded: dict[str, Any], outcome: Outcome
    ) -> dict[str, Any]:
        """What is recorded, or what the game's own test says where there is one."""
        test = layout.judged(episode) if layout.judged is not None and recorded else None
        if test is None:
            return recorded
        self.episodes += 1
        self.contradicted += test != recorded
        return test if outcome == "win_test" else recorded

    def tell(self, log: str, outcome: Outcome) -> None:
        """A warning if there were contradictions."""
        if self.contradicted:
            logger.warning(
                "%s: %d of %d recorded outcomes contradict the game's own test for a win; outcome: "
                "%s is used (the other is %s)",
                log,
                self.contradicted,
                self.episodes,
                outcome,
                "recorded" if outcome == "win_test" else "win_test",
            )


def credited_rewards(
    episode: Episode, layout: Layout, entry: dict[str, Any], reading: Reading, judged: Judged
) -> dict[str, float]:
    """The checked final rewards of those who are credited; none instead of odd ones unless they
    are needed.

    Raises:
        BadEntry: no reward, none of those that `reading.agents` names, a reward that is no finite
            number or outside [0, 1], or of somebody who says nothing.
    """
    try:
        given = judged.rewards(episode, layout, layout.rewards(entry), reading.outcome)
        return _credited(episode, given, reading.agents)
    except BadEntry:
        if reading.need_rewards:
            raise
        return {}


def _credited(episode: Episode, given: dict[str, Any], agents: tuple[str, ...]) -> dict[str, float]:
    rewards = _of_speakers(episode, given, agents or (ASSISTANT,))
    bounded = episode.record.reward_rule != "utility"
    rewards = {role: _reward(role, reward, bounded) for role, reward in rewards.items()}
    if not rewards:
        raise BadEntry("no reward: give a final reward for at least one role")
    if agents:
        rewards = _of_agents(episode, rewards, agents)
    spoken = {utterance.role for utterance in episode.utterances}
    if not rewards.keys() & spoken:
        silent = _silent(agents or (ASSISTANT,), spoken)
        raise BadEntry(silent if THE_AGENT in given else _NO_ACTION)
    return rewards


def _silent(agents: tuple[str, ...], spoken: set[str]) -> str:
    who = " or ".join(agents) + did_you_mean(agents[0], spoken)
    return (
        f"no action of {who}, whose reward it is: say who is credited (--agent, agent of the log)"
    )


def _of_speakers(
    episode: Episode, given: dict[str, Any], agents: tuple[str, ...]
) -> dict[str, Any]:
    """Rewards by who speaks: that of a role is shared by all who speak in it under a name, and a
    single one that is nobody's by the agents."""
    if THE_AGENT in given:
        given = dict.fromkeys(agents, given[THE_AGENT])
    spoken = {utterance.role for utterance in episode.utterances}
    found = {}
    for role, reward in given.items():
        named = [name for name, of in episode.named.items() if of == role and name not in given]
        found.update(dict.fromkeys(named, reward))
        if role in spoken or not named:
            found[role] = reward
    return found


def _of_agents(
    episode: Episode, rewards: dict[str, float], agents: tuple[str, ...]
) -> dict[str, float]:
    """The rewards of those who are credited, by their names or the role they speak in."""
    kept = {r: v for r, v in rewards.items() if r in agents or episode.named.get(r) in agents}
    if not kept:
        known = sorted(rewards)
        hint = did_you_mean(agents[0], known)
        raise BadEntry(
            f"no reward of {' or '.join(agents)}, who is to be credited{hint}: the episode has "
            f"rewards of {', '.join(known)}"
        )
    return kept


def _reward(role: str, reward: Any, bounded: bool) -> float:
    """A final reward, in [0, 1]; only a utility recorded as such may be any finite number.

    That of a log in memory may be one of NumPy's: returned is a number as JSON takes it.
    """
    if not is_number(reward) or reward != reward or abs(reward) == math.inf:
        got = described(reward)
        raise BadEntry(f"reward of {role} is {got}: a finite number is needed")
    if abs(reward) > LARGEST:
        raise BadEntry(f"reward of {role} is beyond {LARGEST:g}: rescale, or remove it")
    if bounded and not 0.0 <= reward <= 1.0:
        raise BadEntry(f"reward of {role} is {reward}, outside [0, 1]: rescale the final rewards")
    return reward if isinstance(reward, int | float) else float(reward)
