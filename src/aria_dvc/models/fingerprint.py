"""What a model is, as a hash: equal weights, settings and tokenizers have equal fingerprints."""

from __future__ import annotations

import hashlib
import re
from functools import cache, lru_cache
from pathlib import Path

import orjson

from aria_dvc.cache.sums import MANIFEST
from aria_dvc.files import read_json
from aria_dvc.models.packaged import LANGUAGE_MODELS, SENTENCE_ENCODERS, packaged_path
from aria_dvc.models.source import ADAPTER_CONFIG, ModelSource
from aria_dvc.settings.dialogues import BASE_MODEL

SUFFIXES = frozenset({".safetensors", ".bin", ".json", ".jinja", ".model", ".txt", ".py"})
# Sums of the files, and notes on how the model was trained, which change nothing in it.
NOTES = frozenset({MANIFEST, "metrics.json", "trainer_state.json", "training_args.bin"})

REMEMBERED = 256  # files whose hash is kept
HUB_S = 10.0  # to tell a model's present revision
_HUB_ID = re.compile(r"\w[\w.-]*(/[\w.-]+)?")


def fingerprint(source: object) -> str:
    """Hash of all that decides how a model behaves.

    Args:
        source: a folder, packaged weights, or a Hugging Face id, which becomes `id@commit`: that
            of the revision which loading takes. A name that nobody knows stands for itself. Of an
            adapter's folder it is the adapter's alone, as a `ModelSource` that of its base too.

    Raises:
        AriaError: the package of packaged weights is not installed.
    """
    packaged = packaged_path(source, {**LANGUAGE_MODELS, **SENTENCE_ENCODERS})
    path = packaged or Path(str(source))
    if path.is_file():
        return _content(path).hex()
    if not path.is_dir():
        return _hub_commit(str(source))
    base = (
        fingerprint(source.base()) if isinstance(source, ModelSource) and source.is_adapter else ""
    )
    return _folder(path, base)


def _folder(folder: Path, base: str) -> str:
    state = hashlib.sha256(base.encode())
    for file in sorted(folder.rglob("*")):
        if file.suffix in SUFFIXES and file.name not in NOTES and file.is_file():
            state.update(file.relative_to(folder).as_posix().encode() + b"\0" + _content(file))
    return state.hexdigest()


@cache
def _hub_commit(name: str) -> str:
    """`name@commit` of the hub's present revision or, off line, of the one on this machine."""
    if not _HUB_ID.fullmatch(name) or name == BASE_MODEL:
        return name
    # sentence-transformers finds its own models by their last name alone
    repos = (name,) if "/" in name else (name, f"sentence-transformers/{name}")
    commits = (look(repo) for look in (_newest_commit, _cached_commit) for repo in repos)
    commit = next(filter(None, commits), None)
    return f"{name}@{commit}" if commit else name


def _newest_commit(repo: str) -> str | None:
    from huggingface_hub import HfApi

    try:
        return HfApi().model_info(repo, timeout=HUB_S).sha
    except Exception:  # no network, no such model, no right to it: its own kinds of errors vary
        return None


def _cached_commit(repo: str) -> str | None:
    from huggingface_hub import try_to_load_from_cache

    for file in ("config.json", "modules.json"):
        found = try_to_load_from_cache(repo, file)
        if isinstance(found, str):
            return Path(found).parent.name
    return None


def _content(file: Path) -> bytes:
    if file.name == ADAPTER_CONFIG:
        return _adapter_config(file)
    stat = file.stat()
    return _hashed(file.resolve(), stat.st_ino, stat.st_size, stat.st_mtime_ns)


@lru_cache(REMEMBERED)
def _hashed(file: Path, *written: int) -> bytes:
    """`written` tells one state of the file from another; many journals ask for the same model."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _adapter_config(file: Path) -> bytes:
    """Without where the base lies, and in one order: peft writes sets."""
    config = read_json(file)
    config.pop("base_model_name_or_path", None)
    ordered = {key: sorted(v, key=str) if isinstance(v, list) else v for key, v in config.items()}
    return hashlib.sha256(orjson.dumps(ordered, option=orjson.OPT_SORT_KEYS)).digest()
