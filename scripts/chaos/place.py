"""The real pipeline on tiny sizes in a folder of its own, and what it leaves undisturbed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dag import ROOT, Workspace
from learning_tiny import tiny_model, tiny_tokenizer
from ruamel.yaml import YAML

from aria_dvc.files import read_json, write_json

CONTEXT = 8192  # tokens of a byte each
PLAYERS = {"policy": 0.5, "scripted:varied": 0.5}
TINY: dict[str, Any] = {
    "categories": ["adversarial"],
    "logs": {
        "bargaining": {
            "source": "data/base_model",
            "category": "adversarial",
            "episodes": 16,
            "grid": "glee48",
            "repeats": 2,
            "players": {"alice": PLAYERS, "bob": PLAYERS},
        }
    },
    "rewards": {"bargaining": "margin"},
    "pace.processes": 2,
    "pace.precision": "float32",
    "pace.tokens_per_batch": 16384,
    "base_model.source": "models/language/tiny",
    "base_model.games": ["bargaining"],
    "base_model.warm_start_settings.episodes": 12,
    "base_model.warm_start_settings.by_game": {},
    "base_model.warm_start_settings.max_tokens": CONTEXT,
    "collect.max_new_tokens": 12,
    "prepare.players": ["policy", "scripted"],
    "cluster.k_max": 10,
    "reward_model.train": "always",
    "reward_model.max_tokens": CONTEXT,
    "reward_model.batch_size": 8,
    "policy.max_tokens": CONTEXT,
    "policy.batch_size": 4,
    "policy.gradient_batches": 2,
    "online.iterations": 2,
    "online.games": 8,
    "online.repeats": 2,
    "online.updates": 2,
    "online.batch_size": 4,
    "online.by_category": {},
    "online.weights": {},
    "evaluate.max_new_tokens": 12,
    "evaluate.games": {
        "bargaining": {
            "episodes": 4,
            "grid": "glee48",
            "opponents": {"alice": ["scripted:fair"], "bob": ["scripted:fair"]},
        }
    },
    "report.umap": False,
}

LESSONS = "base_model.warm_start_settings"
TAUGHT = {
    f"{LESSONS}.episodes": 24,
    f"{LESSONS}.epochs": 4,
    f"{LESSONS}.learning_rate": 0.01,
    "pace.checkpoint_every": 1000,
}
BRIEF = {f"{LESSONS}.epochs": 1, f"{LESSONS}.learning_rate": 0.0003, "pace.checkpoint_every": 1}


@dataclass(frozen=True)
class Stage:
    """One stage as DVC names it, with its script, what it writes, and how long that took."""

    name: str
    command: str
    outs: tuple[str, ...]
    seconds: float = 0.0
    written: int = 0  # bytes, in blocks of 4096

    @property
    def kind(self) -> str:
        """collect for collect@bargaining."""
        return self.name.partition("@")[0]

    @property
    def script(self) -> list[str]:
        """Without the part that sets PYTHONPATH, which `Place.env` does."""
        return self.command.partition(" ")[2].split()


class Place:
    """Below `folder`: work (the project), cache, and undisturbed (what `work` then held)."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work, self.cache = folder, folder / "work", folder / "cache"
        self.undisturbed, self.output = folder / "undisturbed", folder / "output.txt"

    @cached_property
    def workspace(self) -> Workspace:
        found = Workspace(self.work)
        found.env |= {"ARIA_CACHE": str(self.cache), "PYTHONPATH": "src"}
        return found

    def prepare(self) -> list[Stage]:
        """Make the project and run it undisturbed, unless that is done; its stages in order."""
        noted = self.folder / "stages.json"
        if not noted.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.work.mkdir(parents=True)
            Workspace.copy_of_project(self.work)
            save_model(self.work / "models/language/tiny")
            self.workspace.set_params({**TINY, **TAUGHT})
            self._teach()
            self.workspace.set_params({**TINY, **BRIEF})
            self.workspace.commit("tiny sizes")
            write_json(noted, [vars(stage) for stage in self._measured(self._run_undisturbed())])
        return [Stage(**{**one, "outs": tuple(one["outs"])}) for one in read_json(noted)]

    def _teach(self) -> None:
        """Teach the model enough of the game that some of its moves are legal: only then do its
        actions bring something, and online training has something to learn."""
        self.workspace.run("python", "stages/base_model.py")
        for file in (self.work / "data/base_model").glob("*.safetensors"):
            copy(file, self.work / "models/language/tiny" / file.name)
        remove(self.work / "data/base_model")
        remove(self.cache)

    def _run_undisturbed(self) -> list[Stage]:
        output = self.workspace.run("dvc", "repro")
        online = read_json(self.work / "data/policy/adversarial/aria/online/metrics.json")
        assert online["final_loss"] is not None, "online training had nothing to learn from"
        for name in ("data", "metrics", "dvc.lock"):
            copy(self.work / name, self.undisturbed / name)
        lock = read_lock(self.work)["stages"]
        order = [line.split("'")[1] for line in output.splitlines() if "Running stage" in line]
        return [
            Stage(name, lock[name]["cmd"], tuple(out["path"] for out in lock[name]["outs"]))
            for name in order
        ]

    def _measured(self, stages: list[Stage]) -> list[Stage]:
        """Every stage once more on its own: how long it takes, and how much it writes."""
        found = []
        for stage in stages:
            self.restore(without=stage)
            started = time.monotonic()
            self.workspace.run(*stage.script)
            seconds = time.monotonic() - started
            written = sum(blocks(self.work / out) for out in stage.outs) + blocks(self.cache)
            found.append(Stage(stage.name, stage.command, stage.outs, seconds, written))
        return found

    def restore(self, without: Stage | None) -> None:
        """What the undisturbed run left, but nothing of one stage (None: of all), nor any cache."""
        for folder in (self.cache, self.work / ".dvc/cache", self.work / "data"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.work / "metrics", ignore_errors=True)
        (self.work / "dvc.lock").unlink(missing_ok=True)
        if without is None:
            self.workspace.run("git", "checkout", "-q", "--", "data", "metrics", check=False)
            return
        for name in ("data", "metrics"):
            copy(self.undisturbed / name, self.work / name)
        for out in without.outs:
            remove(self.work / out)
        lock = read_lock(self.undisturbed)
        del lock["stages"][without.name]
        with (self.work / "dvc.lock").open("w") as file:
            YAML(typ="safe").dump(lock, file)


def save_model(folder: Path) -> None:
    """A model of random weights in which long dialogues of bytes have room."""
    model = tiny_model()
    model.config.max_position_embeddings = CONTEXT
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)


def read_lock(folder: Path) -> dict[str, Any]:
    return YAML(typ="safe").load((folder / "dvc.lock").read_text())


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def blocks(path: Path) -> int:
    """Bytes of a file or of all files of a folder, in blocks of 4096."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(-(-file.stat().st_size // 4096) * 4096 for file in files)


def code_of_project() -> str:
    """A name for what is put to the test: results of other code do not count for it."""
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z", "src", "stages"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    files = sorted({*names, b"params.yaml", b"dvc.yaml", b"scripts/chaos/place.py"} - {b""})
    state = hashlib.sha256()
    for name in files:
        file = ROOT / name.decode()
        state.update(name + (file.read_bytes() if file.is_file() else b""))
    return state.hexdigest()[:12]
