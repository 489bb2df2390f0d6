"""What is wrong with a run, in words: figures that mean nothing, and what would mend them.

Every check reads what other functions of this package have measured and yields findings. A
`warning` says that a part of the run did nothing or cannot be believed, a `note` how far a figure
reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aria_dvc.report.intervals import SIGNIFICANT, is_shown
from aria_dvc.report.metrics import gradient_ratio
from aria_dvc.settings.training import VANILLA

IDLE_CELLS = 0.8
MANY_FAILURES = 0.25
MANY_ZEROS = 0.9
BY_VALUES = "a variant with credit: gae, advantage: value (aggregate.further: [gae])"
"""What tells actions apart best by the truth (docs/credit.md), as params.yaml says it."""
NO_REPLY = frozenset({"context_full", "request_refused", "no_answer"})
"""Kinds of failure without any text; the others are of texts that were no legal move."""
CHECKS = (
    "no_success",
    "equal_outcomes",
    "refused_moves",
    "no_step",
    "unequal_training",
    "worse",
    "worse_somewhere",
    "utility_falls",
    "losing_deals",
    "not_after_correction",
    "reward_model_constant",
    "reward_model_undefined",
    "progress_constant",
    "credit_no_better_than_mean",
    "aggregation_idle",
    "zero_advantages",
    "k_at_edge",
    "undecided",
    "several_differences",
    "not_trained",
    "r2_undefined",
    "ratio_undefined",
)
"""The checks, what spoils a result most first."""
PARTS = {"by_pairing": "as {}", "by_role": "as {}", "by_opponent": "against {}"}
BY_CELLS = ("aria", "aria_recent", "prefix")
"""Methods whose credit of a turn that is alone in its cell is that turn's own return."""


@dataclass(frozen=True)
class Finding:
    """One thing to know before a figure is believed.

    about: the log, category or game, with the variant if it is one's. check: which check it was.
    words: what was found. remedy: what to try; may be empty.
    """

    about: str
    check: str
    words: str
    remedy: str = ""
    level: Literal["warning", "note"] = "warning"

    def record(self) -> dict[str, str]:
        """As it stands in metrics/details/health.json."""
        return {
            "level": self.level,
            "about": self.about,
            "check": self.check,
            "words": self.words,
            "try": self.remedy,
        }

    @property
    def line(self) -> str:
        return f"{self.about}: {self.words}"


@dataclass(frozen=True)
class LogFacts:
    """What the checks look at besides the metrics of a log.

    k_range: the smallest and largest k that was tried. episodes: their number; failed: those that
    a role could not go on with, by kind. rewards: the smallest and largest final reward.
    """

    k_range: tuple[int, int]
    episodes: int
    failed: Mapping[str, int]
    rewards: tuple[float, float]


def health(
    credit: Mapping[str, Any],
    facts: Mapping[str, LogFacts],
    learning: Mapping[str, Any],
    evaluation: Mapping[str, Any],
) -> list[Finding]:
    """All findings of a run: warnings before notes, then in the order of CHECKS.

    Args:
        credit, learning, evaluation: what metrics/details/ has under these names.
        facts: by log.
    """
    found = [
        *(
            one
            for log, numbers in credit.items()
            for one in _log_findings(log, numbers, facts[log])
        ),
        *(one for name, of in learning.items() for one in _learning_findings(name, of)),
        *(one for game, of in evaluation.items() for one in _game_findings(game, of)),
        *_comparison_findings(evaluation),
    ]
    return sorted(found, key=lambda one: (one.level != "warning", CHECKS.index(one.check)))


def _log_findings(log: str, numbers: Mapping[str, Any], facts: LogFacts) -> Iterator[Finding]:
    yield from _outcomes(log, facts)
    yield from _choice_of_k(log, numbers["selection"], facts.k_range)
    quality = numbers["credit_quality"]
    if quality.get("method") in BY_CELLS and numbers["singleton_share"] >= IDLE_CELLS:
        yield Finding(
            log,
            "aggregation_idle",
            f"aggregation is idle: {_percent(numbers['singleton_share'])} of the turns are alone "
            "in their cell and keep their own return",
            f"{BY_VALUES}, or aggregate.method: aria_recent",
        )
    if "r2" in quality:
        yield from _held_out(log, quality["r2"].get("method"))


def _outcomes(log: str, facts: LogFacts) -> Iterator[Finding]:
    low, high = facts.rewards
    if high <= 0:
        words = f"no success in {facts.episodes} games: no reward is above {high + 0.0:g}"
        yield Finding(log, "no_success", words, "easier games or a better warm start (base_model)")
    elif low == high:
        words = (
            f"all {facts.episodes} games have the reward {low:g}: there is nothing to tell apart"
        )
        yield Finding(log, "equal_outcomes", words, "harder games, other opponents or rewards")
    yield from _failures(log, dict(facts.failed), facts.episodes)


def _choice_of_k(
    log: str, selection: Mapping[str, Any], k_range: tuple[int, int]
) -> Iterator[Finding]:
    k, distinct = selection["selected_k"], selection["distinct_utterances"]
    if selection["overridden"] or selection["per_role"]:
        return
    others = {n: v for n, v in selection["runners_up"].items() if v not in (None, k)}
    hint = ", ".join(f"{name}: {value}" for name, value in others.items())
    remedies = [f"another select_k.method ({hint})"] if others else []
    if k >= distinct:
        words = f"k = {k} merges nothing: no more different texts were embedded"
        yield Finding(log, "k_at_edge", words, ", or ".join([*remedies, "more games"]))
    elif k in k_range:
        side = "smallest" if k == k_range[0] else "largest"
        words = f"the chosen k = {k} is the {side} that was tried"
        yield Finding(log, "k_at_edge", words, [*remedies, "more games"][0])


def _held_out(log: str, r2: float | None) -> Iterator[Finding]:
    if r2 is None:
        words = "all returns are equal, so the credit has no R2"
        yield Finding(log, "r2_undefined", words, level="note")
    elif r2 <= 0:
        yield Finding(
            log,
            "credit_no_better_than_mean",
            f"the credit predicts unseen games no better than their mean (R2 {r2:.2f})",
            f"more games, or {BY_VALUES}",
        )


def _learning_findings(category: str, of: Mapping[str, Any]) -> Iterator[Finding]:
    model = of["reward_model"]
    if "r2" in model:
        yield from _reward_model(category, model)
    for log, progress in of["progress"].get("logs", {}).items():
        yield from _progress(log, progress["sum_r2"])
    online = of.get("online", {})
    for variant, policy in of["policy"].items():
        yield from _policy(f"{category}, {variant}", policy, online.get(variant, {}))
    offline = [name for name, policy in of["policy"].items() if policy.get("steps")]
    if alone := [name for name in offline if online and name not in online]:
        words = f"{', '.join(alone)} did not train online as {', '.join(online)} did: no fair race"
        remedy = f"online.variants: [{', '.join([*online, *alone])}]"
        yield Finding(category, "unequal_training", words, remedy)


def _reward_model(category: str, model: Mapping[str, Any]) -> Iterator[Finding]:
    about, low = f"{category}, reward model", model.get("r2_low")
    if model["r2"] is None:
        words = "its held-out returns are all equal, so it has no R2"
        yield Finding(about, "reward_model_undefined", words, "more games with other outcomes")
    elif model["r2"] <= 0 or (low is not None and low <= 0):
        reach = "" if low is None else f", from {low:.2f}"
        told = f"(R2 {model['r2']:.2f}{reach})"
        words = f"no better than the mean by role and turn on held-out games {told}"
        yield Finding(about, "reward_model_constant", words, "online.credit: games, or more games")


def _progress(log: str, r2: float | None) -> Iterator[Finding]:
    if r2 is not None and r2 <= 0:
        words = f"contributions add up to unseen outcomes no better than 0 does (R2 {r2:.2f})"
        yield Finding(f"{log}, progress", "progress_constant", words, "more games, progress.epochs")


def _policy(about: str, policy: Mapping[str, Any], online: Mapping[str, Any]) -> Iterator[Finding]:
    if reason := policy.get("not_trained"):
        yield Finding(about, "not_trained", f"was not trained: {reason}", level="note")
    elif policy.get("steps") == 0 and not online.get("updates"):
        words = "took no step, so it is the base model"
        yield Finding(about, "no_step", words, "games whose outcomes differ, or another credit")
    elif (policy.get("zero_advantages") or 0.0) >= MANY_ZEROS:
        words = f"{_percent(policy['zero_advantages'])} of its offline advantages are 0"
        yield Finding(about, "zero_advantages", words, "policy.advantage: centred, or more games")
    elif (online.get("zero_advantages") or 0.0) >= MANY_ZEROS:
        words = f"{_percent(online['zero_advantages'])} of its last online advantages are 0"
        yield Finding(about, "zero_advantages", words, "games whose outcomes still differ")
    if "gradient_variance_ratio" in policy and gradient_ratio(dict(policy)) is None:
        words = "its gradients do not vary or too few games are there, so they have no ratio"
        yield Finding(about, "ratio_undefined", words, level="note")


def _game_findings(game: str, of: Mapping[str, Any]) -> Iterator[Finding]:
    for variant, numbers in of["all"].items():
        about, count = f"{game}, {variant}", numbers["episodes"]
        if numbers["rate"] == 0:
            reach = _percent(numbers["high"])
            words = f"no success in {count} games (the true rate may be up to {reach})"
            yield Finding(about, "no_success", words, "more evaluate.games.*.episodes")
        broken = numbers["broken_off"]  # not among `count`
        yield from _failures(about, numbers["failures"] | broken, count + sum(broken.values()))
        if losing := 0 if variant == VANILLA else numbers.get("losing_deals", 0):
            words = f"{losing} of {count} games end in deals that are worth less to it than none"
            yield Finding(about, "losing_deals", words, _by_worth(game))
    for variant, gain in of["minus_vanilla"].items():
        yield from _difference(game, variant, gain)
        yield from _worse_somewhere(game, variant, of["differences"][VANILLA])


def _failures(about: str, kinds: Mapping[str, int], games: int) -> Iterator[Finding]:
    """Many games that a role could not go on with."""
    failed = sum(kinds.values())
    if not games or failed / games < MANY_FAILURES:
        return
    worst = ", ".join(f"{kind} {kinds[kind]}" for kind in sorted(kinds, key=kinds.__getitem__))
    words = f"{_percent(failed / games)} of {games} games ended by refused moves ({worst})"
    remedy = "a longer warm start (base_model), max_new_tokens, or max_reasks"
    if any(kind.partition(": ")[2] in NO_REPLY for kind in kinds):
        words = words.replace("by refused moves", "since a player could not go on")
        remedy = "a longer context or another endpoint where there was no reply; else " + remedy
    yield Finding(about, "refused_moves", words, remedy)


def _worse_somewhere(
    game: str, variant: str, families: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Iterator[Finding]:
    """Where the loss of own utility is greatest whose interval leaves out 0: in the games of a role
    against an opponent, or, where there is one role or opponent alone, of an opponent or role."""
    family = next((name for name in PARTS if len(families.get(name, ())) > 1), None)
    if family is None:
        return
    gains = {
        PARTS[family].format(part): of[variant]
        for part, of in families[family].items()
        if variant in of
    }
    losses = {
        where: gain["utility"]["mean"]
        for where, gain in gains.items()
        if gain.get("utility") and (gain["utility"]["high"] or 0) < 0
    }
    if losses:
        worst = min(losses, key=losses.__getitem__)
        words = f"{worst} its own utility falls by {-losses[worst]:.2f}"
        if gains[worst]["mean"] < 0:
            words += f", and it wins less often ({signed(gains[worst]['mean'])})"
        yield Finding(f"{game}, {variant}", "worse_somewhere", words, _by_worth(game))


def _difference(game: str, variant: str, gain: Mapping[str, Any]) -> Iterator[Finding]:
    about = f"{game}, {variant}"
    if is_shown(gain) and gain["high"] < 0:
        words = f"does worse than vanilla ({signed(gain['mean'])})"
        yield Finding(about, "worse", words, "a smaller learning rate, or another credit")
    utility, least = gain.get("utility"), gain["mean"] if gain["low"] is None else gain["low"]
    if utility and utility["high"] is not None and utility["high"] < 0 <= least:
        hides = "winning more often hides" if gain["mean"] > 0 else "its win rate does not show"
        words = f"its own utility falls by {-utility['mean']:.2f}, which {hides}"
        yield Finding(about, "utility_falls", words, _by_worth(game))
    if gain.get("undecided"):
        needed, words = gain["games_needed"], f"undecided after {gain['pairs']} pairs of games"
        more = "no number of games would decide" if gain["mean"] == 0 else f"{needed} would decide"
        if needed is not None or gain["mean"] == 0:
            words += f"; {more} a difference of this size"
        yield Finding(about, "undecided", words, "more evaluate.games.*.episodes", "note")
    p, adjusted = gain["p"], gain.get("p_holm")
    if p is not None and adjusted is not None and p < SIGNIFICANT <= adjusted:
        count = gain["comparisons"]
        words = f"p = {p:.3f} alone, but {adjusted:.2f} as one of {count} differences"
        yield Finding(about, "not_after_correction", words, "more games, or fewer comparisons")


def _comparison_findings(evaluation: Mapping[str, Any]) -> Iterator[Finding]:
    count = sum(len(of["minus_vanilla"]) for of in evaluation.values())
    if count > 1:
        words = (
            f"{count} differences are shown together; their intervals hold one by one, p is "
            "corrected for their number (Holm)"
        )
        yield Finding("evaluation", "several_differences", words, level="note")


def _by_worth(game: str) -> str:
    """The remedy where winning costs more than it brings."""
    return f"rewards.{game}: utility"


def signed(value: float) -> str:
    return f"{value:+.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
