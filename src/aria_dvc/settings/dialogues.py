"""Where dialogues come from: logs, the model that plays, how it is sampled."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from aria_dvc.settings.block import Block

BASE_MODEL = "data/base_model"
LANGUAGE_MODELS, SENTENCE_MODELS = "models/language/", "models/sentence/"


class LogSource(Block):
    """One log by name: a game that is played, or a log of the user's own."""

    source: str = Field(
        description="data/base_model: played with that model; or the path of your own log"
    )
    category: str = Field(
        description="whose reward model and policy learn from it; one not listed trains nothing"
    )
    episodes: int = Field(0, ge=0, description="games to play (paper: 1000)")
    grid: str = Field(
        "default",
        description="configurations: default; glee48, glee_full (bargaining, negotiation); surplus "
        "(negotiation); these with _unrated, where no offer is rated for its hearer; "
        "small16, small32 (guessing games); train, unseen, small, small_train (household); a "
        "folder (alfworld)",
    )
    repeats: int = Field(
        1, ge=1, description="games in a row that share a configuration: a group, for baselines"
    )
    players: dict[str, str | dict[str, float]] = Field(
        default_factory=dict,
        description="who plays each role: policy, base, embedded, scripted:NAME or endpoint:NAME, "
        "or several, dealt by weight",
    )

    agent: str | list[str] | None = Field(
        None,
        description="own logs: who is credited and trained, by role or name, e.g. assistant; null "
        "= every role with a reward",
    )
    group_by: str | None = Field(
        None,
        description="own logs: the field whose value is an episode's group, e.g. info.scenario; "
        "null = what the log has",
    )
    outcome: Literal["win_test", "recorded"] = Field(
        "win_test",
        description="own Guess My City dialogues: paid by the game's own test for a win, or as "
        "recorded",
    )
    moves: bool = Field(
        True, description="own logs: false leaves buttons (CaSiNo's) out of credit and training"
    )

    @property
    def agents(self) -> tuple[str, ...]:
        """Who is credited; empty for every role with a reward."""
        return (self.agent,) if isinstance(self.agent, str) else tuple(self.agent or ())

    @property
    def is_played(self) -> bool:
        """Whether the dialogues come from playing; otherwise `source` is a log."""
        return self.source == BASE_MODEL or self.source.startswith(LANGUAGE_MODELS)


class Lessons(Block):
    """What one game has otherwise in the warm start; without `episodes` the settings' number."""

    episodes: int | None = Field(None, ge=1)
    grid: str = "default"


class WarmStart(Block):
    episodes: int = Field(
        ge=1, description="scripted dialogues per game; more = better play, longer start"
    )
    by_game: dict[str, Lessons] = Field(
        description="own episodes, and grid that they run over evenly, of a game by its name"
    )
    epochs: int = Field(
        ge=1, description="passes over them; new dialogues teach more than a second pass"
    )
    learning_rate: float = Field(gt=0, description="step size; too high forgets English")
    batch_size: int = Field(ge=1, description="dialogues per optimiser step")
    max_tokens: int = Field(ge=16, description="longer dialogues are left out")
    layers: int | None = Field(
        ge=1, description="train only so many layers nearest the output; null = all"
    )

    def lessons(self, game: str) -> tuple[int, str]:
        """(number of dialogues, grid) of `game`."""
        own = self.by_game.get(game, Lessons())
        return own.episodes or self.episodes, own.grid


class BaseModelParams(Block):
    source: str = Field(
        description="packaged weights, a Hugging Face id or a folder under "
        "models/language/ (paper: meta-llama/Meta-Llama-3-8B-Instruct)"
    )
    trust_remote_code: bool = Field(
        description="true lets a model's own Python code run: only for sources that you trust"
    )
    warm_start: bool = Field(
        description="teach the model the games' language on scripted dialogues first (paper: "
        "false; tiny models cannot play without)"
    )
    games: list[str] = Field(description="the games whose language it is taught")
    warm_start_settings: WarmStart


class SamplingOverride(Block):
    """What one player does otherwise than the settings; empty fields follow them."""

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    max_new_tokens: int | None = Field(None, ge=1)


class PlaySettings(Block):
    """How language models are sampled and games are run; shared by collect and evaluate."""

    temperature: float = Field(
        ge=0, description="sampling temperature of language models; 0 = greedy"
    )
    top_p: float = Field(gt=0, le=1, description="nucleus sampling: share of probability kept")
    max_new_tokens: int = Field(ge=1, description="longest utterance in tokens")
    max_reasks: int = Field(
        ge=0,
        description="times a player is asked again after an illegal move, before it forfeits and "
        "that text is its last action, worth 0; what is said after a re-ask trains no policy",
    )
    sampling: dict[str, SamplingOverride] = Field(
        description="own sampling of a player by its name, e.g. endpoint:local with temperature"
    )

    def of(self, spec: str) -> PlaySettings:
        """The settings of the player `spec`."""
        own = self.sampling.get(spec, SamplingOverride())
        return self.model_copy(update=own.model_dump(exclude_none=True))


class CollectParams(PlaySettings):
    record_logprobs: bool = Field(
        description="keep token ids and log-probabilities of our own policy in the log, those of "
        "the model itself: at temperature 1, without top_p"
    )


class TruthParams(Block):
    """How true values of actions are measured (see truth/): halves share nothing, so even."""

    turns: int = Field(
        ge=0,
        description="turns of each log whose true value is measured by playing on from there; 0 = "
        "none, since few say nothing and each costs continuations + draws * draw_continuations "
        "ends of games",
    )
    continuations: int = Field(
        ge=2, multiple_of=2, description="games that go on with the action that was taken; even"
    )
    draws: int = Field(
        ge=2,
        multiple_of=2,
        description="actions drawn anew at the same turn, whose mean is the state's value; even",
    )
    draw_continuations: int = Field(
        ge=1,
        description="games that go on with each of those; at equal cost more draws tell more",
    )
