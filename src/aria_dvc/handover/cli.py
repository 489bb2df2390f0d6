"""`aria card` and `aria merge`: a finished policy as a folder that stands alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.errors import AriaError

if TYPE_CHECKING:
    from huggingface_hub import ModelCard

    from aria_dvc.models.source import ModelSource

CARD_USAGE = """\
Writes the adapter of a finished policy with tokenizer, chat template and a model card (base, sums
of the data, settings, results with intervals, limits), readable by everybody. Run it in the
repository's root.

  aria card data/policy/adversarial/aria/online --out adapter --base me/base
  hf upload me/adapter adapter
"""
MERGE_USAGE = """\
Adds the adapter of a finished policy, or of a folder by `aria card`, to its base and writes one
model with tokenizer, chat template and model card, which needs nothing else.

  aria merge data/policy/adversarial/aria/online --out model
  vllm serve model
"""
DTYPES = ("float32", "bfloat16", "float16")


def add_card_parser(subparsers: Any) -> None:
    """Add the subcommand `card`; its parsed arguments carry the function to call as `run`."""
    parser = _parser(subparsers, "card", "an adapter that stands alone", CARD_USAGE)
    where = "what its base is called where it will be used: a Hugging Face id, or a folder"
    parser.add_argument("--base", metavar="NAME", help=f"{where}; default its absolute path")
    parser.set_defaults(run=run_card)


def add_merge_parser(subparsers: Any) -> None:
    """Add the subcommand `merge`; its parsed arguments carry the function to call as `run`."""
    parser = _parser(subparsers, "merge", "an adapter and its base as one model", MERGE_USAGE)
    rounding = "of the weights (%(default)s); in half precision much of a small update is lost"
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help=rounding)
    parser.set_defaults(run=run_merge)


def _parser(subparsers: Any, name: str, what: str, usage: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=what,
        description=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("policy", metavar="POLICY", type=Path, help="folder that policy or online has written")
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    defaults = "commit whose params.yaml has the default settings; default the newest tag v*"
    add("--against", metavar="REV", help=defaults)
    return parser


def run_card(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `finished` and `write_adapter`.
    """
    from aria_dvc.handover.card import make_card
    from aria_dvc.handover.finished import finished
    from aria_dvc.handover.folder import base_name, write_adapter

    source = _source(args.policy)
    known = finished(args.policy, args.against)
    base = base_name(source, args.base) if source.is_adapter else ""
    card = make_card(known, base, is_merged=False, is_adapter=source.is_adapter)
    write_adapter(source, args.out, base, card)
    print(f"{args.out}: on the base {base}")
    if Path(base).is_absolute():
        print("that is a folder of this machine: upload it too, and name it by --base, to share")


def run_merge(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: `--against` with a folder whose card is made; see `finished` and `write_merged`.
    """
    from aria_dvc.handover.folder import write_merged

    source = _source(args.policy)
    write_merged(source, args.out, args.dtype, _card_of_merged(source, args.against))
    print(f"{args.out}: {args.policy} as one model in {args.dtype}")


def _card_of_merged(source: ModelSource, version: str | None) -> ModelCard:
    """A card that the adapter brings stays true of the merged model, but for how to load it."""
    from huggingface_hub import ModelCard

    from aria_dvc.handover.card import make_card, without_peft
    from aria_dvc.handover.finished import finished
    from aria_dvc.handover.folder import CARD, base_name

    own = source.folder / CARD
    if own.is_file():
        if version is not None:
            raise AriaError(f"--against: {own} names its settings already: leave it out")
        return without_peft(ModelCard(own.read_text("utf-8")))
    base = base_name(source) if source.is_adapter else ""
    known = finished(source.folder, version)
    return make_card(known, base, is_merged=source.is_adapter, is_adapter=source.is_adapter)


def _source(folder: Path) -> ModelSource:
    from aria_dvc.models.source import ModelSource

    return ModelSource(folder)
