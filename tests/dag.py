"""A private copy of the repository in which the real commands are run on tiny sizes."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
WORDS = tuple(
    "large small red alive round heavy common useful edible old new soft hard wet fast blue thin "
    "sharp loud cheap".split()
)


class Workspace:
    """A Git and DVC repository with this project's files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "GIT_AUTHOR_NAME": "t",
            "GIT_AUTHOR_EMAIL": "t@t",
            "GIT_COMMITTER_NAME": "t",
            "GIT_COMMITTER_EMAIL": "t@t",
        }
        self.env.pop("PYTHONPATH", None)

    @classmethod
    def copy_of_project(cls, folder: Path) -> Workspace:
        """The files of the working tree that Git would track, committed as one commit."""
        listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode()
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        workspace = cls(folder)
        (folder / "dvc.lock").unlink(missing_ok=True)
        workspace.run("git", "init", "-q", "-b", "main")
        workspace.commit("start")
        return workspace

    def commit(self, message: str) -> None:
        self.run("git", "add", "-A")
        self.run("git", "commit", "-q", "-m", message)

    def run(self, *command: str, check: bool = True, timeout: float = 900) -> str:
        """Standard output and error of a command, together."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
        )
        assert done.returncode == 0 or not check, f"{command} failed:\n{done.stdout[-4000:]}"
        return done.stdout

    def repro(self, *args: str) -> tuple[set[str], set[str]]:
        """Stages that `dvc repro` ran, and those it took from the run cache."""
        return stages_in(self.run("dvc", "repro", *args))

    def set_params(self, changes: dict[str, Any]) -> None:
        """Change params.yaml at dotted keys, keeping its comments."""
        yaml, path = YAML(), self.folder / "params.yaml"
        document = yaml.load(path)
        for key, value in changes.items():
            node = document
            *parents, last = key.split(".")
            for part in parents:
                node = node[part]
            node[last] = value
        yaml.dump(document, path)

    def hashes(self) -> dict[str, str]:
        """Content hash of every stage output in dvc.lock."""
        lock = YAML(typ="safe").load((self.folder / "dvc.lock").read_text())
        return {
            out["path"]: out["md5"]
            for stage in lock["stages"].values()
            for out in stage.get("outs", [])
        }

    def read_json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


def stages_in(output: str) -> tuple[set[str], set[str]]:
    ran = set(re.findall(r"Running stage '([^']+)'", output))
    cached = set(re.findall(r"Stage '([^']+)' is cached", output))
    return ran, cached


def guessing_log(path: Path, episodes: int, seed: int) -> None:
    """A log of made-up guessing games in the published single-agent layout."""
    rng = random.Random(seed)
    rows = []
    for index in range(episodes):
        words = rng.sample(WORDS, rng.randint(2, 5))
        actions = [f"Is it {word}?" for word in words[:-1]] + [f"Is it the {words[-1]} one?"]
        rows.append(
            {
                "episode_id": f"e{index}",
                "actions": actions,
                "obs": [rng.choice(["Yes.", "No."]) for _ in actions],
                "reward": -rng.randint(0, 1),
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
