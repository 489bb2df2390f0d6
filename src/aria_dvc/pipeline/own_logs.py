"""How DVC notices that a user's own log has changed.

A stage's dependencies are fixed in dvc.yaml, but `collect.<game>.source` may name any file. So
`collect` depends on the folder data/logs/<game>/, and links the log into it: DVC hashes what the
link points to, after the run and before the next one. A log that already lies in the folder
needs no link.
"""

from __future__ import annotations

from pathlib import Path

from aria_dvc.errors import AriaError

LINK = "source"


def watch(folder: Path, source: str | None) -> None:
    """Make `folder` hold a link to `source`, or none.

    Raises AriaError if the log does not exist.
    """
    link = folder / LINK
    link.unlink(missing_ok=True)
    if source is None:
        return
    log = Path(source)
    if not log.is_file():
        raise AriaError(
            f"collect.{folder.name}.source: no file {source}: give the path of a log, or play"
        )
    if folder.resolve() not in log.resolve().parents:
        folder.mkdir(parents=True, exist_ok=True)
        link.symlink_to(log.resolve())
