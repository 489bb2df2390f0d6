"""What is known of a policy's folder: how it was trained, from what, and how well it plays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.pipeline import paths
from aria_dvc.records.names import PLAYABLE
from aria_dvc.review.commits import Commits, commits, git, git_text
from aria_dvc.review.freshness import dvc_status
from aria_dvc.review.health import warnings_in
from aria_dvc.review.locks import CODE, LOCK, Entry, Lock, read_lock
from aria_dvc.settings.dialogues import BASE_MODEL
from aria_dvc.yaml_file import load_yaml

STAGES = ("policy@", "online@")
REPORT = "report"  # the stage that writes the figures
PARAMS = "params.yaml"
TRAIN = "dvc repro in a clone of the project"
ADDRESSES = "endpoints"  # of servers, which are nobody else's business


@dataclass(frozen=True)
class Finished:
    """A trained policy.

    settings: the blocks of params.yaml that its stage read, as dvc.lock has them, without the
        addresses of servers. base: the block `base_model` of its base.
    commit, is_committed: the newest commit here, and whether its dvc.lock has this very policy.
    off_default: (knob, default, value) of every setting that differs from params.yaml of
        `version`; None without a version.
    sums: path -> MD5 sum of its dialogues, of what it was trained from, and of itself.
    evaluation: game -> its block of metrics/details/evaluation.json; none if this policy was not
        evaluated, or was trained further before it was.
    """

    folder: Path
    variant: str
    category: str
    settings: dict[str, Any]
    base: dict[str, Any]
    version: str | None
    off_default: list[tuple[str, Any, Any]]
    sums: dict[str, str]
    commit: str
    is_committed: bool
    evaluation: dict[str, Any]
    warnings: list[str]


def finished(folder: Path, version: str | None = None) -> Finished:
    """What dvc.lock and metrics/ say of a policy's folder. Call it in the repository's root.

    Args:
        version: commit whose params.yaml has the defaults; None for the newest tag `v*`, if any.

    Raises:
        AriaError: the folder is not what a policy or online stage wrote last, or holds no weights;
            or the figures in metrics/ are of another policy.
    """
    file = Path(LOCK)
    lock = read_lock(file.read_bytes() if file.exists() else None, str(file))
    path = _inside(folder)
    stage, entry = _stage_of(path, lock)
    here = commits("HEAD")
    category, variant, part = Path(path).parts[-3:]
    settings = {key: value for key, value in _params(entry).items() if key != ADDRESSES}
    version = version or _newest_version()
    known = {} if _trained_further(part, category, variant, lock) else _evaluation()
    if known:
        _check_evaluated(path, category, variant, lock)
    return Finished(
        folder=folder,
        variant=variant,
        category=category,
        settings=settings,
        base=_params(lock.get("base_model", {})).get("base_model", {}),
        version=version,
        off_default=list(_off_default(settings, version)) if version else [],
        sums=_sums(stage, category, lock),
        commit=here.head,
        is_committed=_is_committed(here, stage, entry),
        evaluation={
            game: numbers
            for game, numbers in known.items()
            if PLAYABLE.get(game) == category and variant in numbers["all"]
        },
        warnings=_warnings(),
    )


def _is_committed(here: Commits, stage: str, entry: Entry) -> bool:
    return read_lock(here.read(here.head, LOCK), f"{LOCK} of HEAD").get(stage) == entry


def _params(entry: Entry) -> dict[str, Any]:
    return dict(entry.get("params", {}).get(PARAMS, {}))


def _inside(folder: Path) -> str:
    try:
        return folder.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        raise AriaError(f"{folder} lies outside: run in the repository's root") from None


def _stage_of(path: str, lock: Lock) -> tuple[str, Entry]:
    """The stage that wrote a policy, once DVC has found that nothing else has touched it."""
    for stage, entry in lock.items():
        if stage.startswith(STAGES) and path in (out["path"] for out in entry.get("outs", [])):
            break
    else:
        known = [out["path"] for s, e in lock.items() if s.startswith(STAGES) for out in e["outs"]]
        remedy = f"name one of {', '.join(known)}" if known else f"train one first ({TRAIN})"
        raise AriaError(f"{path} is no policy in {LOCK}: {remedy}")
    status = dvc_status(Path.cwd(), stage)
    if "modified" in _changed(status, "outs").values():
        raise AriaError(f"{path} is not what {LOCK} says: run `dvc checkout {path}` first")
    if _changed(status, "deps").get(BASE_MODEL) == "modified":
        raise AriaError(f"{BASE_MODEL} is another one than {path} was trained on: run `dvc repro`")
    if not any(Path(path).glob("*.safetensors")):
        raise AriaError(f"{path} holds no weights: run `dvc pull`, or name a variant that trains")
    return stage, entry


def _trained_further(part: str, category: str, variant: str, lock: Lock) -> bool:
    online = paths.online(variant, category).as_posix()
    outs = (out["path"] for entry in lock.values() for out in entry.get("outs", []))
    return part == paths.policy(variant, category).name and online in outs


def _check_evaluated(path: str, category: str, variant: str, lock: Lock) -> None:
    """Refuse figures that are older than the policy, or than its games."""
    table, whole = paths.evaluation(variant, category), Path(path).parent
    stages = [
        stage
        for stage, entry in lock.items()
        if stage == REPORT or table.as_posix() in (out["path"] for out in entry.get("outs", []))
    ]
    changed = _changed(dvc_status(Path.cwd(), *stages) if stages else {}, "deps")
    if "modified" in map(changed.get, (whole.as_posix(), table.parent.parent.as_posix())):
        where = (paths.DETAILS / "evaluation.json").as_posix()
        raise AriaError(f"{where} is older than {path}: run `dvc repro {REPORT}` first")


def _changed(status: Mapping[str, list[Any]], block: str) -> dict[str, str]:
    """Path -> how it changed, of what DVC says of the `deps` or `outs` of some stages."""
    changes = [change for found in status.values() for change in found if isinstance(change, dict)]
    return {path: how for one in changes for path, how in one.get(f"changed {block}", {}).items()}


def _evaluation() -> dict[str, Any]:
    file = paths.DETAILS / "evaluation.json"
    return dict(read_json(file)) if file.exists() else {}


def _warnings() -> list[str]:
    file = paths.DETAILS / "health.json"
    return warnings_in(read_json(file) if file.exists() else None, str(file))


def _sums(stage: str, category: str, lock: Lock) -> dict[str, str]:
    raw = f"{paths.DATA.as_posix()}/raw/{category}/"
    logs = [out for entry in lock.values() for out in entry.get("outs", [])]
    files = [file for file in logs if str(file["path"]).startswith(raw)]
    files += [file for file in lock[stage]["deps"] if not str(file["path"]).startswith(CODE)]
    return {str(file["path"]): str(file["md5"]) for file in [*files, *lock[stage]["outs"]]}


def _newest_version() -> str | None:
    tags = git_text("tag", "--merged", "HEAD", "--sort=-creatordate", "--list", "v*")
    return tags.splitlines()[0] if tags else None


def _off_default(settings: Mapping[str, Any], version: str) -> Iterator[tuple[str, Any, Any]]:
    """(knob, default, value) wherever a setting is not what it was in `version`."""
    where = f"{PARAMS} of {version}"
    default = dict(_flat(load_yaml(git("show", f"{version}:{PARAMS}").decode(), where)))
    for knob, value in _flat(settings):
        if default.get(knob) != value:
            yield knob, default.get(knob), value


def _flat(values: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """(a.b.c, value) of nested mappings; lists and empty mappings are values."""
    if isinstance(values, Mapping) and values:
        for key, inner in values.items():
            yield from _flat(inner, f"{place}.{key}" if place else str(key))
    else:
        yield place, values
