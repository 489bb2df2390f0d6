"""The corpus of malformed inputs (tests/data/malformed): each with the line that it gets."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from aria_dvc.errors import AriaError
from aria_dvc.params import load_params

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "data" / "malformed"


def cases(name: str) -> dict[str, dict[str, Any]]:
    """The entries of a file of the corpus by their names."""
    entries = YAML(typ="safe").load((CORPUS / f"{name}.yaml").read_text("utf-8"))
    found = {entry["name"]: entry for entry in entries}
    assert len(found) == len(entries), f"{name}: a name twice"
    return found


def content(entry: dict[str, Any], key: str) -> bytes:
    """The bytes of a file of an entry: under `key` as text, or under `bytes` one by one."""
    if "bytes" in entry:
        return str(entry["bytes"]).encode("latin-1")
    return str(entry[key]).encode()


def load_changed(entry: dict[str, Any], path: Path) -> str | None:
    """Write a changed params.yaml to `path` and load it: the error's line, or None."""
    path.write_bytes(_changed(entry))
    try:
        load_params(path)
    except AriaError as error:
        return str(error).replace(str(path), "PARAMS")
    return None


def _changed(entry: dict[str, Any]) -> bytes:
    if "yaml" in entry or "bytes" in entry:
        return content(entry, "yaml")
    raw = YAML(typ="safe").load((ROOT / "params.yaml").read_text("utf-8"))
    raw = copy.deepcopy(raw)
    for place, value in entry.get("set", {}).items():
        block, last = _block(raw, place)
        block[last] = value
    if "drop" in entry:
        block, last = _block(raw, entry["drop"])
        del block[last]
    return _dumped(raw)


def _block(raw: Any, place: str) -> tuple[Any, str]:
    """The mapping that a place like logs.bargaining.players is in, and its last part.

    Names may hold points: a part that is no key goes together with the next.
    """
    first, _, rest = place.partition(".")
    while rest and first not in raw:
        more, _, rest = rest.partition(".")
        first = f"{first}.{more}"
    return _block(raw[first], rest) if rest else (raw, first)


def _dumped(raw: Any) -> bytes:
    import io

    out = io.BytesIO()
    YAML(typ="safe").dump(raw, out)
    return out.getvalue()
