"""Stages that ran between two commits, and why, by their entries in dvc.lock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from aria_dvc.errors import AriaError

LOCK = "dvc.lock"
CODE = "data/code/"  # fingerprints of the code of the stages
NEW, GONE, SAME = "new", "removed", "nothing changed for it"
Entry = Mapping[str, Any]
Lock = dict[str, Entry]


@dataclass(frozen=True)
class Ran:
    """A stage, of which `instances` ran.

    because: what had changed for them: code, params, inputs, command; NEW or GONE where only one
        commit has it; SAME where only the outputs differ, as on another machine.
    instances: what stands behind @ in their names; none of a stage that is one alone.
    """

    stage: str
    instances: tuple[str, ...]
    because: tuple[str, ...]
    other_outputs: bool


def read_lock(content: bytes | None, where: str) -> Lock:
    """The entries of a dvc.lock by stage; none where there is no such file.

    Raises:
        AriaError: it is no lock file.
    """
    try:
        found = yaml.load(content or b"{}", Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        stages = found.get("stages", {}).items()
        return {name: {**entry} for name, entry in stages}
    except (yaml.YAMLError, AttributeError, TypeError, ValueError):
        raise AriaError(f"{where} is no lock file: take one that `dvc repro` wrote") from None


def ran(before: Lock, after: Lock) -> list[Ran]:
    """Every stage whose entry differs, in the order of the newer lock."""
    groups: dict[str, list[str]] = defaultdict(list)
    for full in [*after, *(name for name in before if name not in after)]:
        if before.get(full) != after.get(full):
            groups[full.partition("@")[0]].append(full)
    return [_ran(stage, names, before, after) for stage, names in groups.items()]


def _ran(stage: str, names: list[str], before: Lock, after: Lock) -> Ran:
    reasons = [why for name in names for why in _reasons(before.get(name), after.get(name))]
    return Ran(
        stage,
        tuple(name.partition("@")[2] for name in names if "@" in name),
        tuple(dict.fromkeys(reasons)),
        any(_sums(before.get(name), "outs") != _sums(after.get(name), "outs") for name in names),
    )


def _reasons(before: Entry | None, after: Entry | None) -> Iterator[str]:
    if before is None or after is None:
        yield NEW if before is None else GONE
        return
    deps = [_sums(entry, "deps") for entry in (before, after)]
    differ = {path for path in {*deps[0], *deps[1]} if deps[0].get(path) != deps[1].get(path)}
    found = {
        "code": any(path.startswith(CODE) for path in differ),
        "params": before.get("params") != after.get("params"),
        "inputs": any(not path.startswith(CODE) for path in differ),
        "command": before.get("cmd") != after.get("cmd"),
    }
    yield from [why for why, is_so in found.items() if is_so] or [SAME]


def _sums(entry: Entry | None, block: str) -> dict[str, str]:
    """Path -> checksum of the files in a block, `deps` or `outs`."""
    return {str(file["path"]): str(file.get("md5")) for file in (entry or {}).get(block, [])}
