"""The two commits that are compared, read by Git: nothing is checked out."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from aria_dvc.errors import AriaError

SHORT = 10  # hexadecimal digits of a commit in a text
# The port of ssh is none of the web's; that of https is.
_HOSTED = re.compile(
    r"(?:https://(?:[^@/]+@)?(?P<web>[^/@]+)/|ssh://(?:[^@/]+@)?(?P<ssh>[^/:@]+)(?::\d+)?/"
    r"|[^@/:]+@(?P<scp>[^/:@]+):)(?P<path>.+?)(?:\.git)?/?"
)


@dataclass(frozen=True)
class Commits:
    """base: the last commit that both sides share. head: the newest of the branch. Full hashes.

    root: the repository's folder.
    """

    root: Path
    base: str
    head: str

    @property
    def both(self) -> tuple[str, str]:
        return self.base, self.head

    def read(self, commit: str, path: str) -> bytes | None:
        """The content of a file in a commit; None where it has no such file."""
        if not self.names(commit, path):
            return None
        return git("show", f"{commit}:{path}", cwd=self.root)

    def read_json(self, commit: str, path: str) -> Any:
        """The value of a JSON file in a commit; None where it has no such file.

        Raises:
            AriaError: it is not JSON.
        """
        content = self.read(commit, path)
        try:
            return None if content is None else orjson.loads(content)
        except orjson.JSONDecodeError as error:
            where = f"{path} of commit {commit[:SHORT]}"
            raise AriaError(f"{where} is no JSON ({error}): run `dvc repro report`") from None

    def names(self, commit: str, path: str) -> list[str]:
        """The files at or, where it ends in a slash, directly below a path."""
        listed = git("ls-tree", "-z", "--name-only", commit, "--", path, cwd=self.root)
        return listed.decode().split("\0")[:-1]

    def changed(self, folder: str) -> dict[str, str]:
        """Path -> A (added), D (deleted) or M (modified) of every file below a folder."""
        arguments = ("diff", "-z", "--no-renames", "--name-status", *self.both, "--", folder)
        parts = git(*arguments, cwd=self.root).decode().split("\0")[:-1]
        return dict(zip(parts[1::2], parts[::2], strict=True))

    def is_dirty(self) -> bool:
        """Whether tracked files differ from the newest commit."""
        return bool(git("status", "--porcelain", "--untracked-files=no", cwd=self.root))


def commits(base: str) -> Commits:
    """The newest commit here, and the last one that it shares with `base`.

    Args:
        base: a branch, a tag or a hash.

    Raises:
        AriaError: this is no Git repository, or `base` no commit of it with a shared history.
    """
    root = Path(git_text("rev-parse", "--show-toplevel"))
    head = git_text("rev-parse", "--verify", "HEAD^{commit}")
    try:
        tip = git_text("rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}")
        shared = git_text("merge-base", tip, head)
    except AriaError:
        raise AriaError(
            f"{base or 'an empty name'} is no commit here with which this branch shares one: name "
            "a branch, and in a shallow clone run `git fetch --unshallow` first"
        ) from None
    return Commits(root, shared, head)


def web_address() -> str | None:
    """Where the repository is shown: GitHub's variables in a workflow, else the remote `origin`."""
    server, name = (os.environ.get(f"GITHUB_{key}") for key in ("SERVER_URL", "REPOSITORY"))
    if server and name:
        return f"{server}/{name}"
    try:
        found = _HOSTED.fullmatch(git_text("remote", "get-url", "origin"))
    except AriaError:
        return None
    if not found:
        return None
    host = found["web"] or found["ssh"] or found["scp"]
    return f"https://{host}/{found['path'].lstrip('/')}"


def git_text(*arguments: str) -> str:
    """Standard output of a Git command as text, without blanks around it."""
    return git(*arguments).decode().strip()


def git(*arguments: str, cwd: Path | None = None) -> bytes:
    """Standard output of a Git command.

    Raises:
        AriaError: it failed.
    """
    done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise AriaError(f"git {arguments[0]}: {said}: run in a clone of the project")
    return done.stdout
