"""The blocks of params.yaml: every field typed, bounded and described, once.

The comment of a line in params.yaml is the description here; a test compares the two. What has a
default may be left out of the file.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from aria_dvc.records.names import Anchor, PlayerKind, ProgressObjective

IN_PROCESS = "in_process"
TERMS = "terms"
BASE_MODEL = "data/base_model"
LANGUAGE_MODELS, SENTENCE_MODELS = "models/language/", "models/sentence/"
VANILLA = "vanilla"  # the variant that is the base model as it is
SECRET = "may_hold_a_secret"  # the kind of a problem whose value is not shown
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")

Precision = Literal["auto", "float32", "bfloat16"]
Tracker = Literal["tensorboard", "wandb", "trackio", "dvclive"]
CreditMethod = Literal[
    "aria",
    "aria_recent",
    "shrinkage",
    "kernel",
    "regression",
    "progress",
    "critic",
    "group",
    "gigpo",
    "gae",
    "belief",
    "prefix",
]
Decisions = Literal["worth", "share", "text"]
PlainReturn = Literal["discounted", "terminal"]  # what needs no aggregation
Estimated = Literal["estimator"]  # what the stage progress says, not aggregate
PolicyMethod = Literal[
    "reinforce",
    "behaviour_cloning",
    "ppo",
    "grpo",
    "gigpo",
    "spag",
    "trajectory_dpo",
    "step_dpo",
    "none",
]
CREDITED = frozenset({"reinforce", "ppo", "gigpo", "step_dpo"})  # methods that read policy.credit


class Block(BaseModel):
    """A block of params.yaml: unknown keys are refused, and values that its types cannot take."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _address(url: str) -> str:
    """A server's address without credentials, whose place is the environment."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise PydanticCustomError(SECRET, "must look like http://host:port/v1")
    if parts.username or parts.password or parts.query:
        hint = "carries credentials: name an environment variable that holds the key instead"
        raise PydanticCustomError(SECRET, hint)
    return url


def _variable(name: str | None) -> str | None:
    if name is not None and not _VARIABLE.fullmatch(name):
        hint = "must be the name of an environment variable in capitals, not the key itself"
        raise PydanticCustomError(SECRET, hint)
    return name


class Endpoint(Block):
    """An OpenAI-compatible server, named under `endpoints`; the key comes from the environment."""

    base_url: str = Field(description="where it listens")
    model: str = Field(description="the model's name on that server")
    api_key_env: str | None = Field(
        None,
        description="the environment variable that holds the key (never the key itself); leave "
        "out if none",
    )
    max_concurrency: int = Field(16, ge=1, description="requests under way at once")
    timeout_s: float = Field(
        60.0, gt=0, description="seconds until one request is given up and retried"
    )
    deadline_s: float = Field(
        600.0, gt=0, description="seconds without any success after which the run stops"
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="further fields of every request, e.g. reasoning_effort; null drops a field",
    )

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        return _address(url)

    @field_validator("api_key_env")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        return _variable(name)


class Pace(Block):
    """What suits a machine: it changes how fast results come, and results only by rounding."""

    processes: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto",
        description="processes that play side by side; auto = one a core, four at the most, where "
        "a model plays on the CPU, else 1; each loads the model",
    )
    in_flight: int = Field(
        ge=1, description="games that a process plays at once; more = faster, more memory"
    )
    cache_gib: float = Field(
        gt=0, description="memory for keys and values of the games in flight; too little = slower"
    )
    deadline_s: float = Field(
        gt=0, description="seconds without a finished episode or request until a stage gives up"
    )
    embed_batch: int = Field(ge=1, description="texts embedded at once; more = more memory")
    tokens_per_batch: int = Field(
        ge=64, description="training tokens per forward pass; more = faster, more memory"
    )
    checkpoint_every: int = Field(
        ge=1, description="optimiser steps between checkpoints, which make training resumable"
    )
    cache_limit_gib: float = Field(
        20.0,
        ge=0,
        description="the most that .aria_cache keeps on disk after a stage; what was used longest "
        "ago goes first",
    )
    precision: Precision = Field(
        description="auto = bfloat16 where the hardware multiplies it faster; or float32, bfloat16"
    )
    gradient_checkpointing: bool = Field(
        False,
        description="true computes activations anew in the backward pass: a third more time, much "
        "less memory",
    )


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
        "(negotiation); small16, small32 (guessing games); train, unseen, small, small_train "
        "(household); a folder (alfworld)",
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
        description="keep token ids and log-probabilities of our own policy in the log"
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


class PrepareParams(Block):
    max_chars: int = Field(
        ge=1,
        description="a longer utterance is refused (a broken log more often than a long speech)",
    )
    players: list[PlayerKind] = Field(
        min_length=1,
        description="kinds of player whose utterances get credit and train, in games that we "
        "played; of your own logs all",
    )
    decisions: Decisions = Field(
        description="what intentions of adversarial games are found in: worth (the parsed move, "
        "with the own part of what the deal would be worth to both at that moment), "
        "share (with the own share of the sum, or the price) or text (the words)"
    )


class EmbedParams(Block):
    source: str = Field(
        description="packaged model, sentence-transformers id, folder under models/sentence/, or "
        "endpoint:NAME (paper: text-embedding-3-small); @bfloat16 behind a model's name is faster "
        "and rounds (docs/stages/embed.md)"
    )
    use_log_vectors: bool = Field(
        description="a log that carries embeddings keeps them; false embeds its texts anew"
    )
    normalize: bool = Field(
        description="scale vectors to unit length, so that distance means angle"
    )


class ClusterParams(Block):
    k_max: int = Field(ge=2, le=100, description="finest cut of the tree (2..100)")
    linkage: Literal["ward", "average"] = Field(
        description="ward, or average (the paper's appendix D)"
    )
    exact_limit: int = Field(
        ge=2, description="above this many distinct utterances the near-exact tree is used"
    )


class SelectKParams(Block):
    method: Literal[
        "silhouette", "calinski_harabasz", "davies_bouldin", "split_score", "cross_validated"
    ] = Field(
        description="silhouette, calinski_harabasz, davies_bouldin, split_score (the paper's) or "
        "cross_validated"
    )
    per_role: bool = Field(description="true = every role has its own k")
    eps: float = Field(
        gt=0, description="split_score: largest mean change of the rewards that counts as stable"
    )
    tau: int = Field(ge=0, description="split_score: for how many further k it must stay stable")


class AggregateParams(Block):
    method: CreditMethod = Field(
        description="aria (cell means, the paper's), aria_recent, shrinkage, kernel, regression, "
        "progress, critic, group, gigpo, gae, belief (guessing games) or prefix"
    )
    further: list[CreditMethod] = Field(
        description="more of these methods, for variants that train on their credit"
    )
    history: int = Field(
        ge=0,
        description="aria_recent: so many last utterances make a cell; 2 = the action and what it "
        "answers (larger cells vary less and are more biased), 0 = by cross-validation",
    )
    objective: ProgressObjective = Field(
        "prefix",
        description="progress: sum (contributions sum to the outcome), spread (evenly over the "
        "turns) or prefix (so that the sum so far predicts it at every turn)",
    )
    anchor: Anchor = Field(
        "intentions",
        description="gigpo: steps compared have the same observation, state (all that was said) "
        "or recent intentions",
    )
    gamma: float = Field(
        gt=0, le=1, description="discount per own turn; lower = later turns matter more"
    )
    folds: int = Field(
        ge=2,
        description="parts, by whole groups of episodes, in which a held-out fit does not see what "
        "it judges: credits that are out of fold, cross_validated k, credit_quality",
    )


class Lora(Block):
    rank: int = Field(ge=1, description="size of the adapter (paper: 8)")
    alpha: float = Field(gt=0, description="strength of the adapter (paper: 16)")
    dropout: float = Field(ge=0, lt=1, description="dropout on the adapter's input")
    target_modules: list[str] = Field(
        min_length=1, description="projections that are adapted (paper: q, k, v)"
    )
    layers: int | None = Field(
        ge=1, description="adapt only so many layers nearest the output; null = all (paper: null)"
    )


class RewardModelParams(Block):
    train: Literal["used", "always"] = Field(
        description="used = only where online.credit asks for it; always = for its own sake too"
    )
    backbone: str = Field(
        description="base = data/base_model, or a Hugging Face id or a folder under "
        "models/language/"
    )
    learning_rate: float = Field(gt=0, description="step size (paper: 2e-5)")
    epochs: float = Field(gt=0, description="passes over the training actions (paper: 3)")
    max_episodes: int | None = Field(
        ge=1, description="episodes per log that are used at the most, drawn by seed; null = all"
    )
    batch_size: int = Field(ge=1, description="actions per step, by whole dialogues (paper: 64)")
    max_tokens: int = Field(ge=16, description="longest history + action (paper: 4096)")
    held_out: float = Field(
        gt=0, lt=1, description="share of episodes kept for the held-out metrics"
    )
    weighting: Literal["none", "cell_size"] = Field(
        description="none, or cell_size: actions of large cells weigh more"
    )
    lora: Lora | None = Field(
        description="null trains all weights; the stage progress adapts alike"
    )


class ProgressParams(Block):
    train: bool = Field(
        description="true trains the estimator, for variants with credit: estimator"
    )
    objective: ProgressObjective = Field(
        description="sum (contributions add up to the outcome; the paper's), spread (evenly over "
        "the turns too) or prefix (so that the sum so far predicts it at every turn)"
    )
    folds: int = Field(
        ge=2,
        description="models, each of which judges the episodes, by group, that it has not seen "
        "(paper: none, a single model judges those that it learned from)",
    )
    learning_rate: float = Field(gt=0, description="step size (paper: 3e-6)")
    epochs: float = Field(gt=0, description="passes over the episodes (paper: 1)")
    batch_size: int = Field(ge=1, description="dialogues per step, one an episode and role")
    max_tokens: int = Field(
        ge=16, description="longest dialogue; a longer one is refused, since none may be cut"
    )


class Clip(Block):
    """How far one iteration may take the probability of a token, seen from where it began."""

    low: float = Field(gt=0, lt=1, description="lower end: 1 - low (PPO, SPAG, GRPO: 0.2)")
    high: float = Field(gt=0, description="upper end: 1 + high (PPO, SPAG: 0.2, StarPO-S: 0.28)")


class PpoParams(Block):
    lam: float = Field(
        ge=0, le=1, description="lambda of GAE over a role's actions, whose gamma is 1 (SPA: 0.95)"
    )
    grounding: float = Field(
        ge=0, description="what a turn gets besides that the environment carried out (SPA: 0.5)"
    )


class GrpoParams(Block):
    keep: float = Field(
        gt=0, le=1, description="share of a log's groups that train, by spread (StarPO-S: 0.25)"
    )


class SpagParams(Block):
    decay: float = Field(
        gt=0, le=1, description="of the winner's reward from turn to turn backwards (paper: 0.8)"
    )
    beta: float = Field(ge=0, description="weight of log pi / pi_ref in the advantage (paper: 0.2)")
    sft: float = Field(ge=0, description="weight of the imitation of the same turns (paper: 0.5)")


class DpoParams(Block):
    beta: float = Field(
        gt=0, description="how sharply a pair is told apart; larger = nearer to the base (0.1)"
    )


class PolicyParams(Block):
    method: PolicyMethod = Field(
        description="reinforce, behaviour_cloning (imitate successful episodes), ppo (on credit: "
        "terminal, progress or estimator), grpo, gigpo (on credit: gigpo), spag, trajectory_dpo, "
        "step_dpo, or none (the base model as it is)"
    )
    credit: CreditMethod | PlainReturn | Estimated = Field(
        description="aggregate.method or one of aggregate.further; discounted (no aggregation) or "
        "terminal (no decay either); estimator (what the stage progress says)"
    )
    advantage: Literal["return", "centred", "group", "normalised", "value"] = Field(
        description="return (the paper's), centred (minus the state's value), group (minus also "
        "what other games of the same configuration brought), normalised, or value (q - v, both "
        "of the credit's method)"
    )
    placebo: bool = Field(
        False,
        description="true gives every advantage to another action of the same role, by seed: a "
        "control that can teach nothing",
    )
    kl: float = Field(ge=0, description="weight of the KL divergence to the base model; 0 = none")
    learning_rate: float = Field(gt=0, description="step size (paper: 2e-5)")
    epochs: float = Field(gt=0, description="passes over the episodes (paper: 3)")
    max_episodes: int | None = Field(
        ge=1, description="episodes per log that are used at the most, drawn by seed; null = all"
    )
    batch_size: int = Field(
        ge=1,
        description="episodes per optimiser step (paper: 32 adversarial, 16 single-agent)",
    )
    max_tokens: int = Field(
        ge=16, description="longest dialogue; older turns are cut (paper: 4096)"
    )
    gradient_batches: int = Field(
        ge=0, description="small batches for the metric gradient_variance_ratio; 0 skips it"
    )
    lora: Lora | None = Field(description="null trains all weights")
    clip: Clip = Field(description="ppo, grpo, gigpo, spag: the clipped ratio pi / pi_old")
    ppo: PpoParams
    grpo: GrpoParams
    spag: SpagParams
    dpo: DpoParams = Field(description="trajectory_dpo, step_dpo")


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
    batch_size: int = Field(ge=1, description="episodes per update (paper: 64)")
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
        "reward_model = its scores, refused where its held-out R2 is not above 0 (paper: "
        "reward_model)"
    )
    refresh_every: int = Field(
        ge=1, description="policy updates between refreshes of the reward model, where it is used"
    )
    replay: int = Field(
        ge=1, description="iterations whose games the updates draw on; 1 = only the newest"
    )
    rollouts: str | list[str] = Field(
        description="in_process, or endpoint:NAME (a vLLM server that reloads the adapter), or a "
        "list of such, to which games are dealt"
    )
    scorer: str = Field(
        pattern=r"^(in_process|https?://\S+)$",
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
        return url if url == IN_PROCESS else _address(url)

    @field_validator("scorer_api_key_env")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        return _variable(name)

    def course_of(self, category: str) -> OnlineParams:
        """These settings as they are for one category."""
        own = self.by_category.get(category, OnlineCourse()).model_dump(exclude_none=True)
        return self.model_copy(update={**own, "by_category": {}})

    @property
    def servers(self) -> list[str]:
        """The endpoints that play the policy, as endpoint:NAME; none if it plays in process."""
        named = [self.rollouts] if isinstance(self.rollouts, str) else self.rollouts
        return [name for name in named if name != IN_PROCESS]


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
    allow_training_opponents: bool = Field(
        description="false refuses opponents whose strategy also plays in training"
    )
    games: dict[str, GameEvaluation] = Field(description="one block a game that can be played")


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
