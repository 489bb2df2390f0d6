"""Online training: play, score, update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, field_validator

from aria_dvc.settings.block import Block, address, variable
from aria_dvc.settings.machine import IN_PROCESS, Rollouts, servers_of


class OnlineCourse(Block):
    """What one category has otherwise in online training; what is left out is as for all."""

    iterations: int | None = Field(None, ge=1)
    games: int | None = Field(None, ge=1)
    repeats: int | None = Field(None, ge=1)
    updates: int | None = Field(None, ge=1)
    batch_size: int | None = Field(None, ge=1)


class OnlineParams(Block):
    variants: list[str] = Field(
        description="variants that go on with play, score, update after `policy`; none = no "
        "online training"
    )
    iterations: int = Field(ge=1, description="rounds of play, score, update (paper: 150)")
    games: int = Field(ge=1, description="games per iteration (paper: 32)")
    repeats: int = Field(
        ge=1, description="of these so many in a row share a configuration: a group, for baselines"
    )
    updates: int = Field(ge=1, description="policy updates per iteration (paper: 10)")
    batch_size: int = Field(
        ge=1,
        description="dialogues per update, one an episode and trained role (paper: 64 episodes)",
    )
    by_category: dict[str, OnlineCourse] = Field(
        default_factory=dict,
        description="own iterations, games, repeats, updates or batch_size of a category by name",
    )
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict,
        description="how many times the games of others a log gets, by its name; 1 if not listed",
    )
    learning_rate: float = Field(gt=0, description="step size (paper: 3e-6)")
    schedule: Literal["constant", "linear"] = Field(
        description="constant, or linear: the step size falls to 0 over all iterations"
    )
    credit: Literal["games", "reward_model"] = Field(
        description="games = the variant's own credit, computed anew on the fresh games; "
        "reward_model = its scores, refused unless the interval of its held-out R2 is above 0 "
        "(paper: reward_model)"
    )
    refresh_every: int = Field(
        ge=1, description="policy updates between refreshes of the reward model, where it is used"
    )
    replay: int = Field(
        ge=1, description="iterations whose games the updates draw on; 1 = only the newest"
    )
    rollouts: Rollouts
    scorer: str = Field(
        description="in_process, or the URL of `aria serve-reward-model` on another machine, "
        "whose business the refresh then is",
    )
    scorer_api_key_env: str | None = Field(
        None,
        description="the environment variable that holds the scorer's key; leave out if none",
    )

    @field_validator("scorer")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if url == IN_PROCESS:
            return url
        return address(url, f"http://host:port, or be {IN_PROCESS}")

    @field_validator("scorer_api_key_env")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        return variable(name)

    def course_of(self, category: str) -> OnlineParams:
        """These settings as they are for one category."""
        own = self.by_category.get(category, OnlineCourse()).model_dump(exclude_none=True)
        return self.model_copy(update={**own, "by_category": {}})

    def weights_of(self, logs: Sequence[str]) -> dict[str, float]:
        """How many times the games of others each of the logs gets."""
        return {name: self.weights.get(name, 1.0) for name in logs}

    def dealt(self, logs: Sequence[str]) -> dict[str, int]:
        """How many of an iteration's games each of the logs gets (see the function `dealt`)."""
        counts = dealt(self.games, self.repeats, list(self.weights_of(logs).values()))
        return dict(zip(logs, counts, strict=True))

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the endpoints that play the policy; none if it plays in process."""
        return servers_of(self.rollouts)


def dealt(games: int, repeats: int, weights: Sequence[float]) -> list[int]:
    """`games` in numbers that are as near to `weights` as whole groups of `repeats` allow.

    What is left of a last group goes to the part whose turn it is.
    """
    groups, rest = divmod(games, repeats)
    exact = [groups * weight / sum(weights) for weight in weights]
    counts = [int(share) for share in exact]
    turns = sorted(range(len(weights)), key=lambda part: counts[part] - exact[part])
    left = groups - sum(counts)
    for part in turns[:left]:
        counts[part] += 1
    counts = [repeats * count for count in counts]
    if weights:
        counts[turns[left % len(turns)]] += rest
    return counts
