"""How DVC notices that a user's own log, or the adapter that plays, has changed.

A stage's dependencies are fixed in dvc.yaml, but `collect.<game>.source` may name any file, and
`collect.settings.adapter` any folder. So `collect` depends on the folder data/logs/<game>/, and
links the log or the adapter's files into it: DVC hashes what a link points to, after the run and
before the next one. What already lies in the folder needs no link.
"""

from __future__ import annotations

from pathlib import Path

from aria_dvc.errors import AriaError

LINK = "source"
ADAPTER_LINKS = "watched_adapter"


def watch(folder: Path, source: str | None, adapter: Path | None = None) -> None:
    """Make `folder` hold links to the log `source` and to the files of the LoRA folder `adapter`.

    Raises AriaError if the log does not exist.
    """
    (folder / LINK).unlink(missing_ok=True)
    for old in (folder / ADAPTER_LINKS).glob("*"):
        if old.is_symlink():
            old.unlink()
    if source is not None:
        log = Path(source)
        if not log.is_file():
            raise AriaError(
                f"collect.{folder.name}.source: no file {source}: give the path of a log, or play"
            )
        _link(folder, LINK, log)
    if adapter is not None:
        for file in (path for path in adapter.glob("*") if path.is_file()):
            _link(folder, f"{ADAPTER_LINKS}/{file.name}", file)


def _link(folder: Path, name: str, target: Path) -> None:
    """A link `name` in `folder` to a file outside it."""
    if folder.resolve() not in target.resolve().parents:
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target.resolve())
