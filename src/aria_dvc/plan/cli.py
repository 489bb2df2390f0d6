"""`aria plan`: memory and time of every training method, for a model and a machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from aria_dvc.errors import AriaError
from aria_dvc.suggestions import did_you_mean

if TYPE_CHECKING:
    from aria_dvc.params import Params
    from aria_dvc.plan.estimate import Estimator, Machine, Method
    from aria_dvc.settings.machine import Pace
    from aria_dvc.settings.training import Lora, PolicyParams, ProgressParams, RewardModelParams

USAGE = """\
Estimates, for every method of training, the memory of a GPU at the peak of a step and the time of
all steps, before anything is loaded (docs/plan.md has the formulas). What is not given comes from
params.yaml. With --measure a few steps run on this machine, and the estimate stands beside them.

  aria plan                                      Llama-3-8B on eight GPUs of 80 GiB
  aria plan --model my/model --full --sharding fsdp --checkpointing --tokens 16384
  aria plan --model smollm2-135m --measure --methods reinforce ppo --dialogue 256

Only training is planned; playing is not.
"""
DEFAULT_MODEL = "llama-3-8b"
SHARDINGS = ("none", "fsdp", "zero3")
# Dense bfloat16 of an A100, and the share of it that training gets (docs/plan.md).
TFLOPS, UTILISATION = 312.0, 0.35
PLANNED = {"gpus": 8, "memory": 80.0, "reserve": 4.0, "sharding": "none"}
CPU_UTILISATION = 0.4


def add_plan_parser(subparsers: Any) -> None:
    """Add the subcommand `plan`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "plan",
        help="memory and time of training, before it starts",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_machine(parser.add_argument_group("model and machine"))
    _add_training(parser.add_argument_group("training"))
    parser.add_argument("--measure", action="store_true", help="run a few steps here; see above")
    default = Path("params.yaml")
    parser.add_argument("--params", type=Path, default=default, metavar="FILE", help="%(default)s")
    parser.set_defaults(run=run_plan)


def _add_machine(group: Any) -> None:
    add = group.add_argument
    shape = "llama-3-8b, smollm2-135m, a config.json or a folder with one (%(default)s)"
    add("--model", default=DEFAULT_MODEL, help=shape)
    add("--gpus", type=_positive(int), metavar="N", help=f"GPUs ({PLANNED['gpus']})")
    memory = f"of one ({PLANNED['memory']:g})"
    add("--memory", type=_positive(float), metavar="GIB", help=memory)
    reserve = f"left for the context, buffers and gaps of the allocator ({PLANNED['reserve']:g})"
    add("--reserve", type=_positive(float), metavar="GIB", help=reserve)
    shards = f"what is split over the GPUs: nothing (DDP), or all ({PLANNED['sharding']})"
    add("--sharding", choices=SHARDINGS, help=shards)
    peak = f"of one at its peak, in 10^12 a second ({TFLOPS:g}; with --measure what products reach)"
    add("--tflops", type=_positive(float), metavar="N", help=peak)
    share = f"share of the peak that training gets ({UTILISATION}; on a CPU {CPU_UTILISATION})"
    add("--utilisation", type=_share, metavar="U", help=share)


def _add_training(group: Any) -> None:
    from aria_dvc.settings.machine import Precision

    add = group.add_argument
    which = "of policy.method, reward_model or progress; all"
    add("--methods", nargs="+", metavar="METHOD", help=which)
    add("--precision", choices=get_args(Precision), help="pace.precision")
    checkpoints = "pace.gradient_checkpointing"
    add("--checkpointing", action=argparse.BooleanOptionalAction, default=None, help=checkpoints)
    add("--tokens", type=_positive(int), metavar="N", help="pace.tokens_per_batch")
    longest = "tokens of a dialogue; default max_tokens, the longest that is trained"
    add("--dialogue", type=_positive(int), metavar="N", help=longest)
    own = "share of a dialogue's tokens that are the policy's own (%(default)s)"
    add("--own", type=_share, metavar="S", default=0.25, help=own)
    add("--full", action="store_true", help="train all weights; default as the blocks' lora says")
    add("--rank", type=_positive(int), metavar="N", help="lora.rank")
    add("--modules", nargs="+", metavar="NAME", help="lora.target_modules, in all layers")
    episodes = "dialogues that are trained; default those of params.yaml, offline and online"
    add("--episodes", type=_positive(int), metavar="N", help=episodes)


def _positive(kind: type[int] | type[float]) -> Any:
    def number(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    number.__name__ = kind.__name__  # as argparse calls it where the text is none
    return number


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 0.9:
        raise argparse.ArgumentTypeError(f"{text} is outside 0..0.9")
    return value


_share.__name__ = "float"


def run_plan(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `load_params`, `shape_of` and `measure`; options that do not go together.
    """
    from aria_dvc.params import load_params
    from aria_dvc.plan.shapes import shape_of

    _settle(args)
    params, shape = load_params(args.params), shape_of(args.model)
    methods = chosen(args.methods)
    pace = pace_of(args, params.pace)
    machine = machine_of(args, pace)
    plans = [estimator(args, params, pace, machine, shape, method) for method in methods]
    if args.measure:
        _print_measured(plans, params, pace)
    else:
        _print_plans(plans, args, params)


def _settle(args: argparse.Namespace) -> None:
    """Fill in the machine that is planned for; --measure has this one and trains a few steps."""
    if args.measure:
        for option in (*PLANNED, "episodes"):
            if getattr(args, option) is not None:
                raise AriaError(
                    f"--measure: one process trains a few steps here, whatever --{option} says: "
                    "leave it out"
                )
    for option, value in PLANNED.items():
        if getattr(args, option) is None:
            setattr(args, option, value)


def chosen(names: Sequence[str] | None) -> list[Method]:
    """The methods of these names; of none given all.

    Raises:
        AriaError: there is no such method.
    """
    from aria_dvc.plan.estimate import METHODS

    for name in names or ():
        if name not in METHODS:
            raise AriaError(f"--methods: there is no {name}{did_you_mean(name, METHODS)}")
    return [METHODS[name] for name in names or METHODS]


def pace_of(args: argparse.Namespace, pace: Pace) -> Pace:
    """The block `pace` with what the options change of it."""
    given = {
        "precision": args.precision,
        "gradient_checkpointing": args.checkpointing,
        "tokens_per_batch": args.tokens,
    }
    return pace.model_copy(update={k: value for k, value in given.items() if value is not None})


def machine_of(args: argparse.Namespace, pace: Pace) -> Machine:
    """The machine that is planned for, or with --measure this one."""
    from aria_dvc.plan.estimate import GIB, Machine

    if not args.measure:
        tflops, share = args.tflops or TFLOPS, args.utilisation or UTILISATION
        return Machine(args.gpus, args.memory * GIB, tflops, share, args.sharding)
    from aria_dvc.models.hardware import best_device, uses_bfloat16
    from aria_dvc.plan.measured import multiplied_tflops

    on_cpu = best_device().type == "cpu"
    tflops = args.tflops or multiplied_tflops(uses_bfloat16(pace.precision))
    share = args.utilisation or (CPU_UTILISATION if on_cpu else UTILISATION)
    return Machine(1, args.memory * GIB, tflops, share, on_cpu=on_cpu)


def estimator(
    args: argparse.Namespace,
    params: Params,
    pace: Pace,
    machine: Machine,
    shape: Any,
    method: Method,
) -> Estimator:
    """What a method trains, on which micro-batches.

    Raises:
        AriaError: the model has no module of a name in lora.target_modules.
    """
    from aria_dvc.models.hardware import uses_bfloat16
    from aria_dvc.plan.batch import load_of
    from aria_dvc.plan.estimate import Estimator, Training

    length = args.dialogue or block_of(params, method).max_tokens
    lora = params.reward_model.lora if method.scores else params.policy.lora
    # `auto` asks the machine: this one only where it is the one that trains
    narrow = uses_bfloat16(pace.precision) if args.measure else pace.precision != "float32"
    training = Training(
        method,
        _lora(args, lora, shape.linear),
        narrow,
        pace.gradient_checkpointing,
        kl=params.policy.kl > 0,
    )
    load = load_of(pace.tokens_per_batch, length, args.own, pairs=method.pairs)
    return Estimator(shape, training, machine, load, load.reads())


def block_of(params: Params, method: Method) -> RewardModelParams | ProgressParams | PolicyParams:
    """The block of params.yaml that a method trains by."""
    from aria_dvc.plan.estimate import PROGRESS, REWARD_MODEL

    if method.name == REWARD_MODEL:
        return params.reward_model
    return params.progress if method.name == PROGRESS else params.policy


def _lora(args: argparse.Namespace, lora: Lora | None, known: Any) -> Lora | None:
    from aria_dvc.settings.training import Lora

    if args.full:
        if args.rank or args.modules:
            raise AriaError("--full trains all weights: leave out --rank and --modules")
        return None
    if lora is None and not args.rank:
        return None
    given = lora or Lora(
        rank=args.rank, alpha=2 * args.rank, dropout=0.0, layers=None, target_modules=list(known)
    )
    changes: dict[str, Any] = {"rank": args.rank} if args.rank else {}
    if args.modules:
        changes |= {"target_modules": list(dict.fromkeys(args.modules)), "layers": None}
    found = given.model_copy(update=changes)
    for name in found.target_modules:
        if name not in known:
            raise AriaError(
                f"lora.target_modules: the model has no {name}{did_you_mean(name, known)}"
            )
    return found


COLUMNS = (
    "method",
    "weights",
    "gradients",
    "optimiser",
    "activations",
    "logits",
    "reference",
    "step",
    "before",
    "fits",
    "tokens/s",
    "hours",
)


def _print_plans(plans: Sequence[Estimator], args: argparse.Namespace, params: Params) -> None:
    from aria_dvc.plan.estimate import GIB

    rows: list[Sequence[str]] = [COLUMNS]
    room = (args.memory - args.reserve) * GIB
    for plan in plans:
        memory, work = plan.memory(), work_of(params, plan, args.episodes)
        parts = [getattr(memory, name) for name in memory.__dataclass_fields__]
        sizes = [f"{part / GIB:.2f}" for part in (*parts, memory.total, plan.scoring())]
        speed = plan.tokens_per_second(work.read / work.trained if work.trained else 0.0)
        hours = work.trained * plan.load.length / speed / 3600
        fits = "yes" if plan.peak() <= room else "no"
        rows.append((plan.training.method.name, *sizes, fits, f"{speed:,.0f}", f"{hours:.2f}"))
    print("\n".join([*_heading(plans), "", *aligned(rows), "", *_notes(args)]))


def _heading(plans: Sequence[Estimator]) -> list[str]:
    first = plans[0]
    shape, machine = first.shape, first.machine
    split = {"none": "nothing sharded", "fsdp": "FSDP", "zero3": "ZeRO-3"}[machine.sharding]
    kind = "bfloat16" if first.training.bfloat16 else "float32"
    again = ", activations computed anew" if first.training.checkpointing else ""
    lines = [
        f"{shape.name}: {shape.parameters():,} parameters, {kind}{again}",
        f"{machine.gpus} x {machine.memory / 2**30:g} GiB, {split}, {machine.tflops:g} TFLOP/s "
        f"each, of which {machine.utilisation:.0%} are reached",
    ]
    for trains in dict.fromkeys(_trains(plan) for plan in plans):
        names = [p.training.method.name for p in plans if _trains(p) == trains]
        every = len(names) == len(plans)
        lines.append(f"{'' if every else ', '.join(names) + ': '}{trains}")
    return lines


def _trains(plan: Estimator) -> str:
    lora, load = plan.training.lora, plan.load
    what = "all weights"
    if lora:
        what = (
            f"LoRA of rank {lora.rank} on {', '.join(lora.target_modules)} in {plan.adapted} layers"
        )
    return f"{what}, {load.dialogues} x {load.length} tokens at once"


def _notes(args: argparse.Namespace) -> list[str]:
    return [
        "GiB of one GPU at the peak of a step; before: of the passes before the first step, for "
        "which each GPU",
        f"holds all weights. Fits: the larger of both leaves {args.reserve:g} GiB. Hours: of "
        "training, without playing.",
    ]


@dataclass(frozen=True)
class Work:
    """trained: dialogues in all steps; read: those that are read before steps."""

    trained: float
    read: float


def work_of(params: Params, plan: Estimator, episodes: int | None) -> Work:
    """How many dialogues (an episode as one role sees it) a method trains on, offline, and of a
    policy online too where `online.variants` names any.

    Raises:
        AriaError: without `episodes`, where dialogues are of a user's own log, which has as many as
            it has.
    """
    from aria_dvc.plan.estimate import PROGRESS, REWARD_MODEL
    from aria_dvc.records.names import ADVERSARIAL, PLAYABLE

    method = plan.training.method
    block = block_of(params, method)
    # each model of the progress estimator leaves out one fold
    times = (params.progress.folds - 1 if method.name == PROGRESS else 1) * block.epochs
    if episodes:
        return Work(episodes * times, episodes)
    roles = {log: 2 if PLAYABLE.get(log) == ADVERSARIAL else 1 for log in params.logs}
    most = getattr(block, "max_episodes", None) or float("inf")
    logs = [(n, log) for n, log in params.logs.items() if log.category in params.categories]
    if own := [name for name, log in logs if not log.is_played]:
        capped = "" if most == float("inf") else f", of each log {most} at the most"
        raise AriaError(
            f"logs.{own[0]} is a log of your own: say by --episodes how many dialogues are "
            f"trained{capped}"
        )
    once = sum(min(log.episodes, most) * roles[name] for name, log in logs)
    if method.name == REWARD_MODEL:
        return Work(once * (1 - params.reward_model.held_out) * times, 0.0)
    if method.name == PROGRESS:
        return Work(once * times, 0.0)
    trained, read = once * times, once
    for category in params.categories if params.online.variants else ():
        course = params.online.course_of(category)
        seen = max((roles[name] for name in params.logs_of(category)), default=1)
        trained += course.iterations * course.updates * course.batch_size
        read += course.iterations * course.games * seen
    return Work(trained, read)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _print_measured(plans: Sequence[Estimator], params: Params, pace: Pace) -> None:
    from aria_dvc.plan.estimate import GIB
    from aria_dvc.plan.measured import Case, cores, measure

    machine = plans[0].machine
    lines = _heading(plans)
    where = f"a CPU, {cores()} cores" if machine.on_cpu else "a GPU"
    lines[1] = f"this machine: {where}, {machine.tflops:.3g} TFLOP/s in products of matrices"
    print("\n".join([*lines, ""]), flush=True)
    rows = [("method", "estimate GiB", "measured", "ratio", "tokens/s", "measured", "utilisation")]
    for plan in plans:
        # checkpoints take time and memory of their own, which are the disk's; the estimate is of
        # one micro-batch at a time, as a GPU has it
        steady = pace.model_copy(update={"checkpoint_every": 1_000_000, "processes": 1})
        found = measure(Case(plan.shape, plan.training, plan.load, params.policy, steady))
        speed = plan.tokens_per_second(0.0)
        reached = found.tokens_per_second / speed * machine.utilisation
        rows.append(
            (
                plan.training.method.name,
                f"{plan.peak() / GIB:.2f}",
                f"{found.peak / GIB:.2f}",
                f"{plan.peak() / found.peak:.2f}",
                f"{speed:,.0f}",
                f"{found.tokens_per_second:,.0f}",
                f"{reached:.2f}",
            )
        )
    print("\n".join(aligned(rows)))
