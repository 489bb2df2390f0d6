"""Credit of questions by how much their answers told of the target (IGPO, Wang et al. 2025).

    q_t = r_t + gamma q_(t+1),   r_t = p(target after the answer) - p(target before),   r_T = R

IGPO asks the policy how probable the target is; here it is the belief of the packaged oracles (see
answers.py), which every policy and every log has. IGPO takes the mean of a group's r from each and
divides by their deviation before it adds them up; here v is what the others of the group got from
the same turn on, and nothing is divided, so that q stays on the scale of a return.
"""

from __future__ import annotations

import numpy as np

from aria_dvc.credit.methods.answers import beliefs, places_of_targets
from aria_dvc.credit.methods.base import Values
from aria_dvc.credit.methods.group import without_own
from aria_dvc.credit.methods.turn_index import OfFittedEpisodes
from aria_dvc.credit.methods.units import discounts, units_of
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log


class InformationGainCredit(OfFittedEpisodes):
    """Gains to come and the outcome, less those of the group's others at the same own turn.

    In sample: q holds the answer to the action, what became of the game, and its target. A turn
    that none of the group's others reached is compared with all others of the role at that turn, or
    at any. Of an episode that was not fitted both are the mean return of its role and turn, since
    neither its target nor its answers are looked at.
    """

    uses_labels = False

    def of_fitted(self, data: Log) -> Values:
        units = units_of(data)
        following = units.following()
        q, before = data.outcomes.astype(np.float64), known_before(data)
        gamma = discounts(data, following)
        for action in units.order[::-1]:
            if (later := following[action]) >= 0:
                q[action] = before[later] - before[action] + gamma[action] * q[later]
        return Values(q, _of_others(q, data))


def known_before(data: Log) -> np.ndarray:
    """(A,) float64 probability of the episode's own target before each action.

    Raises:
        AriaError: the game has no packaged oracles, or they do not know an episode's target.
    """
    place = places_of_targets(data)
    strange = np.flatnonzero(place < 0)
    if len(strange):
        which = "" if data.episode_ids is None else f", first in {data.episode_ids[strange[0]]}"
        raise AriaError(
            f"credit method information_gain: {len(strange)} of {data.episodes} episodes name no "
            f"target of {data.game}{which}: info.config.target must say it; or "
            "choose another method, such as belief"
        )
    episode = data.episode[data.actions]
    found: np.ndarray = beliefs(data)[np.arange(len(episode)), place[episode]]
    return found


def _of_others(q: np.ndarray, data: Log) -> np.ndarray:
    """(A,) mean q of other episodes of the group, of the same role and own turn."""
    role, turn = data.role_codes[data.actions], data.turn[data.actions]
    by_turn = np.unique(np.stack([role, turn]), axis=1, return_inverse=True)[1]
    others = without_own(by_turn, q, without_own(role, q, q))
    if data.group is None:
        return others
    group = data.group[data.episode[data.actions]]
    cell = np.unique(np.stack([by_turn, group]), axis=1, return_inverse=True)[1]
    return without_own(cell, q, others)
