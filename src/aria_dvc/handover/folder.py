"""Folders that load from anywhere: weights, tokenizer, chat template and card in one place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import yaml

from aria_dvc.aside import written_aside
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_json
from aria_dvc.handover.card import TAGS, is_hub_id
from aria_dvc.models.source import ADAPTER_CONFIG, ADAPTER_WEIGHTS, BASE, ModelSource
from aria_dvc.outputs import check_not_below_file, check_not_within, is_same

if TYPE_CHECKING:
    from huggingface_hub import ModelCard

CARD = "README.md"
MODEL_CONFIGS = (ADAPTER_CONFIG, "config.json")
READABLE, OPEN = 0o644, 0o755
Dtype = Literal["float32", "bfloat16", "float16"]


def base_name(source: ModelSource, given: str | None = None) -> str:
    """What an adapter's base is to be called in a folder that is used anywhere.

    A folder gets its absolute path: peft and transformers take a relative one from the folder in
    which they are run, not from the adapter's.

    Raises:
        AriaError: `given` is no folder, and no id of the hub either.
    """
    name = given or str(source.base())
    if Path(name).is_dir():
        return str(Path(name).resolve())
    if given and (not is_hub_id(given) or Path(given).parts[0] in _folders_here()):
        raise AriaError(
            f"--base: there is no folder {given}: name one, or an id of the hub (owner/name)"
        )
    return name


def _folders_here() -> set[str]:
    return {path.name for path in Path().iterdir() if path.is_dir()}


def write_adapter(source: ModelSource, out: Path, base: str, card: ModelCard) -> None:
    """Write an adapter that needs nothing of this repository but what `base` names.

    Raises:
        AriaError: `source` is no adapter; `out` is somebody else's.
    """
    if not source.is_adapter:
        raise AriaError(f"{source} holds no adapter, but a whole model: use `aria merge`")
    with _folder(source, out, card) as aside:
        aside.mkdir()
        shutil.copyfile(source.folder / ADAPTER_WEIGHTS, aside / ADAPTER_WEIGHTS)
        config = read_json(source.folder / ADAPTER_CONFIG)
        write_json(aside / ADAPTER_CONFIG, {**config, BASE: base})


def write_merged(source: ModelSource, out: Path, dtype: Dtype, card: ModelCard) -> None:
    """Write one model, its adapter (if it is one) added to its base in float32 and rounded once.

    Raises:
        AriaError: `source` cannot be loaded; `out` is somebody else's.
    """
    import torch

    from aria_dvc.models.loading import load_model
    from aria_dvc.models.saving import save_model

    with _folder(source, out, card) as aside:
        save_model(load_model(source, dtype=getattr(torch, dtype)), aside)


@contextmanager
def _folder(source: ModelSource, out: Path, card: ModelCard) -> Iterator[Path]:
    """A folder to put weights into; tokenizer, chat template, card and modes follow."""
    from aria_dvc.models.loading import load_tokenizer

    _check(source, out)
    tokenizer = load_tokenizer(source)
    with written_aside(out) as aside:
        yield aside
        tokenizer.save_pretrained(str(aside))
        (aside / CARD).write_text(str(card), "utf-8")
        for path in aside.rglob("*"):
            path.chmod(OPEN if path.is_dir() else READABLE)
        aside.chmod(OPEN)


def _check(source: ModelSource, out: Path) -> None:
    """Refuse what is read, an adapter's bases among it, and what somebody else wrote."""
    read = [source]
    while read[-1].is_adapter:
        read.append(read[-1].base())
    if any(each.folder.exists() and is_same(out, each.folder) for each in read):
        raise AriaError(f"--out: {out} is a folder that is read: name another one")
    for each in read:
        check_not_within("--out", out, each.folder)
    check_not_below_file("--out", out)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not _is_ours(out):
        raise AriaError(f"--out: {out} exists and is not what this command writes: name another")


def _is_ours(folder: Path) -> bool:
    """Whether it holds a model with a card whose tags are those that are written here."""
    card = folder / CARD
    if not card.is_file() or not any((folder / name).is_file() for name in MODEL_CONFIGS):
        return False
    parts = card.read_text("utf-8", errors="replace").split("---\n", 2)
    try:
        head = yaml.safe_load(parts[1]) if len(parts) == 3 and not parts[0] else None
    except yaml.YAMLError:
        return False
    return isinstance(head, dict) and TAGS[0] in (head.get("tags") or ())
