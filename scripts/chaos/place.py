"""The real pipeline on tiny sizes in a folder of its own, and what it leaves undisturbed."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from string import printable
from typing import Any

import torch
from dag import ROOT, Workspace
from learning_tiny import tiny_model, tiny_tokenizer
from ruamel.yaml import YAML

from aria_dvc.files import read_json, write_json

Command = list[str]
LOOK_S = 0.01
LONGEST = 90_000  # looks: no clock counts, since a machine may sleep
CONTEXT = 8192  # tokens of a byte each
MOVES = ("I accept.", "I keep 40%.", "I keep 60%.", "I keep 80%.")
STEPS = 400
PLAYERS = {"policy": 0.5, "scripted:varied": 0.5}
LESSONS = "base_model.warm_start_settings"
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
    "pace.checkpoint_every": 1,
    "pace.deadline_s": 86400,
    "base_model.source": "models/language/tiny",
    "base_model.games": ["bargaining"],
    f"{LESSONS}.episodes": 12,
    f"{LESSONS}.by_game": {},
    f"{LESSONS}.max_tokens": CONTEXT,
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


@dataclass(frozen=True)
class Stage:
    """One stage as DVC names it, what it writes, and how long `dvc repro` of it takes."""

    name: str
    command: str
    outs: list[str]
    seconds: float
    written: int  # bytes, in blocks of 4096

    @property
    def kind(self) -> str:
        """collect for collect@bargaining."""
        return self.name.partition("@")[0]

    @property
    def script(self) -> Command:
        """Without the part that sets PYTHONPATH, which a Place does."""
        return self.command.partition(" ")[2].split()


class Place:
    """Below `folder`: work (the project), cache, and undisturbed (what `work` then held)."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work, self.cache = folder, folder / "work", folder / "cache"
        self.undisturbed, self.output = folder / "undisturbed", folder / "output.txt"
        self.waited = 0.0  # seconds that the last command ran
        self.workspace = Workspace(self.work)
        self.workspace.env |= {"ARIA_CACHE": str(self.cache), "PYTHONPATH": "src"}

    def prepare(self) -> list[Stage]:
        """Make the project and run it undisturbed, unless that is done; its stages in order."""
        noted = self.folder / "stages.json"
        if not noted.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.work.mkdir(parents=True)
            Workspace.copy_of_project(self.work)
            _save_model(self.work / "models/language/tiny")
            self.workspace.set_params(TINY)
            self.workspace.commit("tiny sizes")
            write_json(noted, [vars(stage) for stage in self._run_undisturbed()])
        return [Stage(**one) for one in read_json(noted)]

    def _run_undisturbed(self) -> list[Stage]:
        names = self.workspace.run("dvc", "stage", "list", "--name-only").split()
        stages = [self._measured(name) for name in names]
        assert "up to date" in self.workspace.run("dvc", "repro")
        online = read_json(self.work / "data/policy/adversarial/aria/online/metrics.json")
        assert online["final_loss"] is not None, "online training had nothing to learn from"
        for name in ("data", "metrics", "dvc.lock"):
            copy(self.work / name, self.undisturbed / name)
        return stages

    def _measured(self, name: str) -> Stage:
        """Run a stage, and note how long it took and how much it wrote."""
        before = blocks(self.cache)
        code, said = self.run(["dvc", "repro", "-s", name])
        assert code == 0, said
        noted = read_lock(self.work)["stages"][name]
        outs = [out["path"] for out in noted["outs"]]
        written = sum(blocks(self.work / out) for out in outs) + blocks(self.cache) - before
        return Stage(name, noted["cmd"], outs, self.waited, written)

    def restore(self, without: Stage | None) -> None:
        """What the undisturbed run left, but nothing of one stage (None: of all), nor any cache."""
        for path in (self.cache, *(self.work / name for name in (".dvc/cache", "data", "metrics"))):
            remove(path)
        remove(self.work / "dvc.lock")
        if without is None:
            self.workspace.run("git", "checkout", "-q", "--", "data", "metrics")
            return
        for name in ("data", "metrics"):
            copy(self.undisturbed / name, self.work / name)
        for out in without.outs:
            remove(self.work / out)
        lock = read_lock(self.undisturbed)
        del lock["stages"][without.name]
        with (self.work / "dvc.lock").open("w") as file:
            YAML(typ="safe").dump(lock, file)

    def start(self, command: Command) -> subprocess.Popen[bytes]:
        """Start it in a process group of its own, with its output in a file."""
        with self.output.open("wb") as output:
            return subprocess.Popen(
                command,
                cwd=self.work,
                env=self.workspace.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def run(self, command: Command) -> tuple[int, str]:
        """Run it to its end: exit status and output."""
        process = self.start(command)
        for looks in range(LONGEST):
            self.waited = looks * LOOK_S
            if process.poll() is not None:
                break
            time.sleep(LOOK_S)
        else:
            end(process)
        return process.returncode, self.said()

    def said(self) -> str:
        """What the last command has said."""
        return self.output.read_text(errors="replace")


def end(process: subprocess.Popen[bytes], alone: bool = False) -> None:
    """SIGKILL: to the process alone, or to all of its group."""
    if alone:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _save_model(folder: Path) -> None:
    """A model with room for long dialogues of bytes, which knows some moves by heart: from moves
    of which none is legal, online training would have nothing to learn."""
    model, tokenizer, rng = tiny_model(), tiny_tokenizer(), random.Random(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        before, move = "".join(rng.choices(printable, k=rng.randrange(400))), rng.choice(MOVES)
        text = f"{before}<|im_start|>assistant\n{move}<|im_end|>"
        tokens = tokenizer(text, return_tensors="pt").input_ids
        labels = tokens.clone()
        labels[:, : -len(move) - 1] = -100  # what torch passes over
        model(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.config.max_position_embeddings = CONTEXT
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def read_lock(folder: Path) -> dict[str, Any]:
    return YAML(typ="safe").load((folder / "dvc.lock").read_text())


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
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
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("stages/*.py"), Path(__file__)]
    files += [ROOT / "params.yaml", ROOT / "dvc.yaml"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:12]
