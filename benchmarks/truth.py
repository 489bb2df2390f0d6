"""How near every credit comes to the true advantages of a policy's actions.

    python benchmarks/truth.py --model data/base_model [--games NAME ...] [--turns 250] [--out FILE]
    python benchmarks/truth.py --scripted [--games NAME ...] [--episodes 1000] [--turns 1000]
    python benchmarks/truth.py --quick

Plays games as `logs` in params.yaml says, by the model of the stage `base_model`, fits every credit
on them, draws turns of the policy, and plays on from each to measure its true advantage (see
src/aria_dvc/truth). A table a game and role, over both roles too, has one row for every
`policy.credit` and `policy.advantage` that a policy can train on: correlations, signs and errors
against the truth (truth/scores.py), and the cosine of the policy's gradient with the one under the
true advantages, at the model with fresh adapters. A share is of what the measurement's noise leaves
reachable; intervals (95 %) draw whole groups; over both roles a credit is taken less its role's
mean, but in the cosine. What was played is kept in the cache, so a run that was stopped goes on,
also with more turns. --scripted: by scripted players, a thousand times as fast, in place of the
model; the gradient then needs --model. --quick: few games of these.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from aria_dvc.arena.sessions import collect_session
from aria_dvc.arena.side_by_side import play_side_by_side
from aria_dvc.chat import Renderer
from aria_dvc.credit.chain import labelled
from aria_dvc.credit.methods.base import fit_values
from aria_dvc.credit.methods.registry import make_method, method_names
from aria_dvc.errors import AriaError
from aria_dvc.files import written_aside
from aria_dvc.games.decided import tell_decisions
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.log import Log
from aria_dvc.learning.advantages import advantages
from aria_dvc.learning.examples import Key, LogFrames, with_values
from aria_dvc.learning.objective import policy_collate, selected_logits, weighted_nll
from aria_dvc.learning.own_actions import sampled_examples
from aria_dvc.models.hardware import inference_dtype, uses_bfloat16
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import add_lora, cast_by_autocast
from aria_dvc.models.source import ModelSource
from aria_dvc.params import Params, load_params
from aria_dvc.progress import log_to_stderr
from aria_dvc.records.episodes import Episode, without_broken_off
from aria_dvc.records.tables import episodes_table, turns_table
from aria_dvc.settings.dialogues import TruthParams
from aria_dvc.truth.scores import (
    CLEAR,
    KEY,
    Sample,
    Scores,
    all_scores,
    bootstrap,
    reliability,
)
from aria_dvc.truth.table import Question, truth_table

logger = logging.getLogger(__name__)
PARAMS = Path(__file__).resolve().parent.parent / "params.yaml"
STAND_INS = {"adversarial": "scripted:mixed", "single_agent": "scripted:casual"}  # for the policy
PLAIN, ARIA = ("discounted", "return"), ("aria", "return")  # what every credit is compared with
CONSTANT = "constant"  # the method that tells no actions apart
ADVANTAGES = ("return", "value", "group")
# Spearman as a share; that over plain returns and aria; the cosine over that of plain returns
TARGETS = {"bargaining": 0.6, "negotiation": 0.6, "twenty_questions": 0.5, "guess_my_city": 0.5}
ABOVE, TIMES = 0.2, 1.5
UNLIMITED = 1_000_000  # tokens, so that no history is cut
ALL = "all"
DIRECTIONS = ("cosine", "cosine_share", "cosine_over_plain", "cosine_times", "reachable")
COLUMNS = (
    "credit, advantage",
    *("pearson", "pearson_share", "spearman", "spearman_share", "over_plain", "over_aria"),
    *("sign", "sign_share", "rmse", "cosine", "cosine_share", "cosine_over_plain"),
)
Credit = tuple[str, str]  # policy.credit, policy.advantage


@dataclass(frozen=True)
class Measured:
    """One game's turns: the truth of n of them, what each credit gives them, their gradients.

    credits: (n,) float64 each. products: (n, n) scalar products of the gradients of log pi, or
    None where no model plays.
    """

    game: str
    truth: pd.DataFrame
    credits: dict[Credit, np.ndarray]
    products: np.ndarray | None


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    log_to_stderr()
    tell((report(measured(game, args), args) for game in args.games), args.out)


def tell(reports: Iterable[Iterable[str]], out: Path | None) -> None:
    """Print the lines of reports as they come; `out` has all so far after each report."""
    lines: list[str] = []
    for report_lines in reports:
        for line in report_lines:
            print(line, flush=True)
            lines.append(line)
        if out:
            with written_aside(out) as aside:
                aside.write_text("\n".join(lines), "utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="what plays, and has the gradient: data/base_model")
    parser.add_argument("--scripted", action="store_true", help="scripted players play")
    parser.add_argument("--quick", action="store_true", help="the same, small sizes")
    parser.add_argument("--games", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--episodes", type=int, default=144, help="games that are fitted")
    parser.add_argument("--repeats", type=int, default=4, help="of these share a configuration")
    parser.add_argument("--turns", type=int, default=250, help="whose truth is measured")
    parser.add_argument("--continuations", type=int, default=8, help="of each action")
    parser.add_argument("--draws", type=int, default=8, help="of other actions at each turn")
    parser.add_argument("--replicates", type=int, default=400, help="of the bootstrap")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    if args.quick:
        vars(args).update(scripted=True, episodes=16, repeats=2, turns=16, replicates=10)
    elif not args.model and not args.scripted:
        parser.error("--model: name the folder that base_model wrote, or give --scripted")
    return args


def measured(game: str, args: argparse.Namespace) -> Measured:
    """Play one game, and measure."""
    params = settings(game, args)
    gamma, players = params.aggregate.gamma, params.prepare.players
    (played,) = play_side_by_side(params, [collect_session(params, game)], f"collect {game}")
    episodes = without_broken_off(played)
    each = {"continuations": args.continuations, "draws": args.draws, "draw_continuations": 1}
    asked = TruthParams(turns=args.turns, **each)
    truth = truth_table(params, episodes, Question(asked, gamma, players, params.logs[game].source))
    turns, log = labelled_turns(episodes, params)
    frames = LogFrames(game, turns, episodes_table(episodes), log.action_frame())
    keys = [(game, str(name), int(at)) for name, at in truth[KEY[:2]].itertuples(index=False)]
    credits = dict(credits_of(frames, log, params, keys))
    products = gradient_products(args.model, frames, keys, params) if args.model else None
    return Measured(game, truth, credits, products)


def labelled_turns(episodes: list[Episode], params: Params) -> tuple[pd.DataFrame, Log]:
    """The table of turns of played games, and their log under the intentions of the chosen k."""
    tell_decisions(episodes, params.prepare.decisions)
    turns, embed = turns_table(episodes, params.prepare.players), params.embed
    texts = turns["embedded"].tolist()
    vectors = embed_texts(texts, embed.source, params.pace.embed_batch, embed.normalize, {})
    return turns, labelled(Log.of(turns, vectors, params.aggregate.gamma), params)


def settings(game: str, args: argparse.Namespace) -> Params:
    """params.yaml with the games that are asked for."""
    params = load_params(PARAMS)
    source, prepare = params.logs[game], params.prepare
    changed = {"episodes": args.episodes, "repeats": args.repeats, "source": args.model}
    if args.scripted:
        stand_in = STAND_INS[source.category]
        fixed = {role: pool for role, pool in source.players.items() if pool == "embedded"}
        changed["players"] = {**dict.fromkeys(source.players, stand_in), **fixed}
        changed["source"] = str(PARAMS)  # which nobody loads
        prepare = prepare.model_copy(update={"players": ["scripted"]})
    logs = {game: source.model_copy(update=changed)}
    return params.model_copy(update={"seed": args.seed, "logs": logs, "prepare": prepare})


def credits_of(
    frames: LogFrames, log: Log, params: Params, keys: list[Key]
) -> Iterator[tuple[Credit, np.ndarray]]:
    """(n,) advantages of the turns `keys` by every credit that knows the game."""
    plain = frames.rewards.assign(**{"return": log.targets})
    tables, settings = {PLAIN[0]: plain}, params.aggregate
    for name in (name for name in method_names() if name != CONSTANT):
        try:
            own = fit_values(make_method(name, settings), log, settings.folds, params.seed)
        except AriaError as error:  # belief, outside guessing games
            logger.warning("%s: no credit of %s: %s", frames.name, name, error)
            continue
        tables[name] = plain.assign(reward=own.q, value=own.v)
    for credit, rewards in tables.items():
        for how in ADVANTAGES if credit != PLAIN[0] else ("return", "group"):
            found = advantages(replace(frames, rewards=rewards), credit, how)
            yield (credit, how), np.array([found[key] for key in keys])


def fresh_policy(model: str, params: Params) -> tuple[Any, list[torch.nn.Parameter]]:
    """The model with new adapters, and of their weights those that have a gradient then: the second
    factors, which are 0."""
    torch.manual_seed(params.seed)
    loaded = load_model(ModelSource(model), dtype=inference_dtype(params.pace.precision))
    assert params.policy.lora, "the shipped settings train adapters"
    policy = cast_by_autocast(add_lora(loaded, params.policy.lora, "policy"))
    return policy, [weight for name, weight in policy.named_parameters() if "lora_B" in name]


def gradient_products(model: str, frames: LogFrames, keys: list[Key], params: Params) -> np.ndarray:
    """(n, n) float64 scalar products of the gradients of log pi of the actions `keys`.

    The gradient under any credit is a sum of these, so they are all that cosines need.
    """
    policy, weights = fresh_policy(model, params)
    tokenizer = load_tokenizer(ModelSource(model))
    collate = policy_collate(tokenizer.pad_token_id, keep_zero=True)
    examples = sampled_examples([frames], Renderer(tokenizer), UNLIMITED).items
    found: dict[Key, torch.Tensor] = {}
    for example, values in with_values(examples, dict.fromkeys(keys, 1.0)):
        inputs, known = collate([(example, values)], 1), np.flatnonzero(~np.isnan(values))
        action = torch.from_numpy(example.action[np.isin(example.action, known)])
        with torch.autocast("cpu", torch.bfloat16, enabled=uses_bfloat16(params.pace.precision)):
            logits = selected_logits(policy, inputs)
        for place in known.tolist():
            loss = weighted_nll(logits, {**inputs, "weights": (action == place).float()})
            parts = torch.autograd.grad(-loss, weights, retain_graph=True)
            found[example.keys[place]] = torch.cat([part.flatten().float() for part in parts])
    flat = torch.stack([found[key] for key in keys])
    return (flat @ flat.T).double().numpy()


def report(found: Measured, args: argparse.Namespace) -> Iterator[str]:
    """The tables of one game, and what was aimed at."""
    roles = found.truth["role"].to_numpy(str)
    asked = {role: roles == role for role in np.unique(roles).tolist()}
    for role, rows in {**asked, ALL: np.ones(len(roles), bool)}.items():
        if role == ALL and len(asked) == 1:
            continue
        scores = scores_of(found, rows, args)
        turns, reachable = found.truth[rows], scores[PLAIN]
        clear = (turns["advantage"].abs() > CLEAR * turns["se_advantage"]).sum()
        yield (
            f"{found.game}, {role}: {len(turns)} turns, {clear} with |A| above two standard errors,"
            f" {turns['group_id'].nunique()} groups, out of {args.episodes} games; reliability "
            f"{shown(reachable['reliability'])}, of ranks {shown(reachable['rank_reliability'])}; "
            f"reachable cosine {shown(reachable['reachable'])}; Pearson as a share of the "
            f"return less the state's true value {best_of_returns(found, rows):.2f}"
        )
        yield from ("", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS))
        for credit in sorted(scores, key=lambda of: -order(scores[of]["spearman_share"])):
            values = [shown(scores[credit][name]) for name in COLUMNS[1:]]
            yield "| " + " | ".join([", ".join(credit), *values]) + " |"
        yield ""
    yield from (targets(found, scores), "")


def best_of_returns(found: Measured, rows: np.ndarray) -> float:
    """Pearson's correlation with the true advantages, as a share, that the return has less the true
    value of the state: what no baseline can better.

    That difference is the advantage and luck that has nothing to do with it, so the share is the
    ratio of their standard deviations, both freed of the measurement's noise.
    """
    turns = found.truth[rows]
    over = found.credits[PLAIN][rows] - turns["v"].to_numpy(float)
    spread = {"over": over, "advantage": turns["advantage"].to_numpy(float)}
    role = turns["role"].to_numpy(str)
    within = pd.DataFrame(spread).groupby(role).transform(lambda of: of - of.mean()).var(ddof=0)
    share = reliability(turns["first"].to_numpy(float), turns["second"].to_numpy(float))
    noise = float((turns["se_v"] ** 2).mean())
    return float(np.sqrt(share * within["advantage"] / (within["over"] - noise)))


def scores_of(
    found: Measured, rows: np.ndarray, args: argparse.Namespace
) -> dict[Credit, dict[str, Any]]:
    """Every score of every credit on the turns `rows`, with its interval."""
    truth, credits = found.truth[rows], list(found.credits)
    columns = {"se": "se_advantage", **{name: name for name in ("advantage", "first", "second")}}
    sample: Sample = {name: truth[of].to_numpy(float) for name, of in columns.items()}
    weight = pd.DataFrame({at: found.credits[of][rows] for at, of in enumerate(credits)})
    mean = weight.groupby(truth["role"].to_numpy(str)).transform("mean")
    sample |= {"credit": (weight - mean).to_numpy(), "weight": weight.to_numpy()}
    sample["at"] = np.flatnonzero(rows)
    groups = np.unique(truth["group_id"].to_numpy(str), return_inverse=True)[1]
    scored = partial(scores_of_all, credits=credits, products=found.products)
    bounds = bootstrap(sample, groups, scored, args.replicates, args.seed)
    scores: dict[Credit, dict[str, Any]] = {credit: {} for credit in credits}
    for key, value in scored(sample).items():
        credit, advantage, name = key.split(" ")
        scores[credit, advantage][name] = {"value": value, **bounds[key]}
    return scores


def scores_of_all(sample: Sample, credits: list[Credit], products: np.ndarray | None) -> Scores:
    """Of each "credit advantage score" the value: those of `all_scores`, how far the share of
    Spearman's is above that of plain returns and of `aria`, and where the gradient points.

    sample: as `all_scores` takes it, but (n, C) credits, and as `weight` the same as they train.
    """
    found = {
        credit: all_scores({**sample, "credit": sample["credit"][:, at]})
        for at, credit in enumerate(credits)
    }
    plain, aria = (found[credit]["spearman_share"] for credit in (PLAIN, ARIA))
    pointing = directions(sample, credits.index(PLAIN), products)
    for at, scores in enumerate(found.values()):
        share = scores["spearman_share"]
        scores |= {"over_plain": share - plain, "over_aria": share - aria}
        scores |= {name: float(values[at]) for name, values in pointing.items()}
    return {" ".join([*credit, name]): of for credit in found for name, of in found[credit].items()}


def directions(sample: Sample, plain: int, products: np.ndarray | None) -> dict[str, np.ndarray]:
    """(C,) each: the cosine of the gradient with that under the measured advantages, as a share of
    what is reachable, over that of the credit `plain`, as a multiple of it; and what is reachable.

    The halves' noise is independent, so the scalar product of their gradients is, but for chance,
    the squared length of the true gradient: over the measured one's the squared reachable cosine.
    """
    weight, advantage = sample["weight"], sample["advantage"]
    if products is None:
        return dict.fromkeys(DIRECTIONS, np.full(weight.shape[1], np.nan))
    among = products[np.ix_(sample["at"], sample["at"])]
    with np.errstate(invalid="ignore", divide="ignore"):
        length = np.sqrt(advantage @ among @ advantage)
        own = np.sqrt((weight * (among @ weight)).sum(axis=0))
        cosine = advantage @ among @ weight / length / own
        reachable = np.sqrt(sample["first"] @ among @ sample["second"]) / length
        beside = cosine - cosine[plain], cosine / cosine[plain]
        values = (cosine, cosine / reachable, *beside, np.full_like(cosine, reachable))
    return dict(zip(DIRECTIONS, values, strict=True))


def targets(found: Measured, scores: dict[Credit, dict[str, Any]]) -> str:
    """What was aimed at, and the best of all credits, whose being the best flatters it."""
    near = max(scores, key=lambda of: order(scores[of]["spearman_share"]))
    steep = max(scores, key=lambda of: order(scores[of]["cosine"]))
    best = scores[near]
    return (
        f"Targets, {found.game}: Spearman as a share, best ({', '.join(near)}) "
        f"{shown(best['spearman_share'])} where {TARGETS[found.game]} was wanted; over plain "
        f"returns {shown(best['over_plain'])}, over aria {shown(best['over_aria'])} where {ABOVE} "
        f"was; cosine, best ({', '.join(steep)}), {shown(scores[steep]['cosine_times'])} times "
        f"that of plain returns where {TIMES} was"
    )


def order(score: dict[str, Any]) -> float:
    """A score to sort by; what is not defined comes last."""
    value = score["value"]
    return -np.inf if value is None or np.isnan(value) else value


def shown(score: dict[str, Any]) -> str:
    """A score with its interval."""
    value, low, high = (np.nan if score[of] is None else score[of] for of in score)
    return "-" if np.isnan(value) else f"{value:.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
