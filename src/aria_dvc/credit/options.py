"""The options that decide a credit, what they say, and where each of them acts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import get_args

from aria_dvc.credit.methods.registry import (
    ARGUMENTS,
    FOLDED,
    SEEDED,
    make_method,
    method_names,
)
from aria_dvc.credit.settings import EMBEDDER, METHOD, Aggregate, CreditSettings
from aria_dvc.errors import AriaError
from aria_dvc.records.names import PLAYABLE, Anchor, ProgressObjective

_AGGREGATE = ("method", "gamma", "folds", "objective", "anchor")
DECIDING = (*_AGGREGATE, "k", "seed", "embed")


def add_credit_options(parser: argparse.ArgumentParser, own_vectors: bool = True) -> None:
    """Add what decides the credit: --method, --k, --gamma, --folds, --embed, --game, --seed.

    Their values are None unless they were typed.

    own_vectors: whether the vectors of the logs are used where they have some.
    """
    vectors = f"the logs' own vectors, else {EMBEDDER}" if own_vectors else EMBEDDER
    default, settings = Aggregate(), CreditSettings()
    add = parser.add_argument
    add("--method", choices=method_names(), help=f"default: {METHOD}")
    add("--k", type=int, help="number of intentions; default by silhouette")
    add(
        "--objective",
        choices=get_args(ProgressObjective),
        help=f"of progress ({default.objective})",
    )
    add("--anchor", choices=get_args(Anchor), help=f"of gigpo ({default.anchor})")
    add("--gamma", type=float, help=f"discount per own turn ({default.gamma})")
    add("--folds", type=int, help=f"folds by group of episodes ({default.folds})")
    add("--embed", help=f"embedding model; default {vectors}")
    add("--game", choices=sorted(PLAYABLE), help="what the logs are of; default what they say")
    add("--seed", type=int, help=f"deals the folds ({settings.seed})")


def settings_of(args: argparse.Namespace) -> CreditSettings:
    """The options as settings.

    Raises AriaError for a number out of range.
    """
    typed = {name: getattr(args, name) for name in _AGGREGATE if is_typed(args, name)}
    seed = args.seed if is_typed(args, "seed") else CreditSettings.seed
    try:
        aggregate = Aggregate(**{"method": METHOD, **typed})
        return CreditSettings("auto" if args.k is None else args.k, seed, aggregate=aggregate)
    except AriaError as problem:
        raise AriaError(f"--{problem}") from None


def is_typed(args: argparse.Namespace, option: str) -> bool:
    return getattr(args, option) is not None and getattr(args, option) is not False


def check_credit_options(
    args: argparse.Namespace, one_fit: str = "", quality: bool = False
) -> None:
    """Refuse options that change nothing of this credit. --method, --gamma and --game always do.

    one_fit: what lets a single fit credit other dialogues ("with --score"), so that none is held
        out. quality: the fit is measured too.

    Raises:
        AriaError: one line, with where the option acts; a number out of range.
    """
    aggregate = settings_of(args).aggregate
    method = make_method(aggregate.method, aggregate)
    meaning = method.uses_labels or method.uses_vectors
    held_out = not (method.in_sample or one_fit)
    taken = ARGUMENTS.get(aggregate.method)
    by_fold, folds = "credit that holds out and for --quality", held_out or quality
    acts = {
        "objective": (_methods_with("objective"), taken == "objective"),
        "anchor": (_methods_with("anchor"), taken == "anchor"),
        "k": ("methods that look at intentions, such as aria", method.uses_labels),
        "embed": ("methods that look at meaning and for --quality", meaning or quality),
        "folds": (by_fold, folds or aggregate.method in FOLDED),
        "seed": (by_fold, folds or aggregate.method in SEEDED),
    }
    check_acts(args, acts, f"--method {aggregate.method} {one_fit}".rstrip())


def _methods_with(argument: str) -> str:
    return "--method " + " or ".join(name for name, of in ARGUMENTS.items() if of == argument)


def check_acts(args: argparse.Namespace, acts: Mapping[str, tuple[str, bool]], here: str) -> None:
    """Refuse options that were typed and have no effect.

    acts: by option where it acts, in words, and whether it does so here.

    Raises:
        AriaError: there is one.
    """
    for option, (where, does) in acts.items():
        if is_typed(args, option) and not does:
            raise AriaError(f"--{option} is for {where}, not {here}: leave it out")
