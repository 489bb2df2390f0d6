"""Evaluation and report."""

from __future__ import annotations

from pydantic import Field

from aria_dvc.settings.block import Block
from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import IN_PROCESS, Rollouts, servers_of

TERMS = "terms"


class GameEvaluation(Block):
    """How one game is evaluated."""

    episodes: int = Field(
        ge=1,
        description="games per role and opponent of each policy (paper: 1200 adversarial, "
        "200 single-agent)",
    )
    grid: str = Field(description="configurations")
    opponents: dict[str, str | list[str]] = Field(
        description="who the policy meets, by the other's role, or a list of them: scripted:NAME, "
        "endpoint:NAME, embedded"
    )

    def facing(self, role: str) -> list[str]:
        """Every opponent that is named for `role`, each for `episodes` games."""
        named = self.opponents.get(role, [])
        return [named] if isinstance(named, str) else named


class EvaluateParams(PlaySettings):
    rollouts: Rollouts = IN_PROCESS
    allow_training_opponents: bool = Field(
        description="false refuses opponents whose strategy also plays in training"
    )
    games: dict[str, GameEvaluation] = Field(description="one block a game that can be played")

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the endpoints that play the policy; none if it plays in process."""
        return servers_of(self.rollouts)


class ReportParams(Block):
    names: str = Field(
        TERMS,
        pattern=rf"^({TERMS}|endpoint:.+)$",
        description="what an intention is called by: terms, or endpoint:NAME, whose language model "
        "is asked once an intention",
    )
    umap: bool = Field(description="draw the intention map (a picture only, nothing depends on it)")
    umap_points: int = Field(ge=10, description="utterances drawn at the most")
    baselines: list[str] = Field(
        description="variants that every other one is compared with in pairs of games"
    )
