"""From a log with embeddings to training rows: the pipeline's stages against plain scripts.

    python benchmarks/chain.py [--games 1000] [--dimensions 1536]

The stages run as `dvc repro` runs them, a process each; `credit` is the same without files in
between, in one process. The reference does what the method asks for with the usual tools, as a
chain of scripts that hand whole JSON logs on: SciPy's tree, fcluster at every k, and cells as a
dictionary of label strings at every k. It computes no index of selection and no quality of the
credit; the stages do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
from ruamel.yaml import YAML

from intentions import points

ROOT = Path(__file__).resolve().parent.parent
LOG = "two_party_log"
STAGES = ("collect", "prepare", "embed", "cluster", "select_k", "aggregate")
KS = range(2, 101)
GAMMA = 0.95
MB = 2**20


@dataclass(frozen=True)
class Cost:
    name: str
    seconds: float
    peak: float

    def __str__(self) -> str:
        return f"{self.name:10s}{self.seconds:8.1f} s{self.peak:8.0f} MB"


def write_log(path: Path, games: int, dimensions: int) -> int:
    """A log of `games` dialogues of 10 to 22 utterances; returns the number of utterances."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(10, 23, games)
    vectors = points(int(lengths.sum()), dimensions, "overlapping").astype(np.float64)
    at = 0
    with path.open("wb") as file:
        for game, length in enumerate(lengths):
            messages = [
                {
                    "role": ("alice", "bob")[turn % 2],
                    "content": f"In game {game} I say sentence number {turn} to you.",
                    "embedding": vectors[at + turn].round(8).tolist(),
                }
                for turn in range(length)
            ]
            at += length
            won = int(rng.integers(0, 2))
            rewards = {"alice": float(won), "bob": float(1 - won)}
            entry = {"episode_id": str(game), "messages": messages, "rewards": rewards}
            file.write(orjson.dumps(entry) + b"\n")
    return at


def measured(name: str, command: list[str], folder: Path, environment: dict) -> Cost:
    """Run a command to its end: its wall time and largest resident memory."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} failed with exit status {process.returncode}")
    cost = Cost(name, time.perf_counter() - start, usage.ru_maxrss / 1024)
    print(f"    {cost}", flush=True)
    return cost


def stages(folder: Path, log: Path) -> list[Cost]:
    """The stages from log to training rows, a process each, in a workspace of their own."""
    yaml = YAML()
    params = yaml.load(ROOT / "params.yaml")
    params["categories"] = ["adversarial"]
    params["logs"] = {LOG: {"source": str(log), "category": "adversarial"}}
    with (folder / "params.yaml").open("w") as file:
        yaml.dump(params, file)
    for name in ("src", "stages"):
        (folder / name).symlink_to(ROOT / name)
    environment = {**os.environ, "PYTHONPATH": "src"}
    return [
        measured(stage, [sys.executable, f"stages/{stage}.py", LOG], folder, environment)
        for stage in STAGES
    ]


def credit(folder: Path, log: Path) -> list[Cost]:
    """The command that takes a log and writes the credit of its actions."""
    out = ["--out", str(folder / "credit.parquet")]
    command = [sys.executable, "-m", "aria_dvc", "credit", str(log), "--method", "aria", *out]
    return [measured("credit", command, folder, {**os.environ, "PYTHONPATH": str(ROOT / "src")})]


def plain_scripts(folder: Path, log: Path) -> list[Cost]:
    """The reference, a process for each of its three scripts."""
    script = [sys.executable, str(Path(__file__).resolve()), "--script"]
    return [
        measured(step, [*script, step, str(folder), str(log)], folder, dict(os.environ))
        for step in ("tree", "labels", "rows")
    ]


def script(step: str, folder: Path, log: Path) -> None:
    if step == "tree":
        from scipy.cluster.hierarchy import linkage

        games = [json.loads(line) for line in log.open()]
        vectors = np.array([m["embedding"] for game in games for m in game["messages"]])
        np.save(folder / "tree.npy", linkage(vectors, "ward"))
    elif step == "labels":
        from scipy.cluster.hierarchy import fcluster

        games = [json.loads(line) for line in log.open()]
        tree = np.load(folder / "tree.npy")
        for game in games:
            for message in game["messages"]:
                del message["embedding"]
        for k in KS:
            names = iter(fcluster(tree, k, "maxclust").tolist())
            for game in games:
                game["labels"] = [next(names) for _ in game["messages"]]
            (folder / f"labels_{k}.json").write_text(json.dumps(games))
    else:
        for k in KS:
            games = json.loads((folder / f"labels_{k}.json").read_text())
            (folder / f"rows_{k}.json").write_text(json.dumps(training_rows(games)))


def training_rows(games: list[dict]) -> list[dict]:
    """One row per action, its reward the mean discounted return of its cell."""
    cells: dict[str, list[float]] = {}
    rows = []
    for game in games:
        roles = [message["role"] for message in game["messages"]]
        history, turn = "", dict.fromkeys(set(roles), 0)
        for role, label, message in zip(roles, game["labels"], game["messages"], strict=True):
            turn[role] += 1
            history += f"_{label}"
            left = roles.count(role) - turn[role]
            cells.setdefault(history, []).append(GAMMA**left * game["rewards"][role])
            rows.append({"cell": history, "role": role, "action": message["content"]})
    means = {cell: sum(values) / len(values) for cell, values in cells.items()}
    return [{**row, "reward": means[row["cell"]]} for row in rows]


def written(folder: Path) -> int:
    return sum(f.lstat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--dimensions", type=int, default=1536)
    parser.add_argument("--script", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.script:
        step, folder, log = options.script
        return script(step, Path(folder), Path(log))
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "2"
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""  # compiled modules are kept, as `make` has it
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log.jsonl")
        count = write_log(log, options.games, options.dimensions)
        size = log.stat().st_size
        print(f"{options.games} games, {count} utterances, a log of {size / MB:.0f} MB")
        seconds = []
        for run in (stages, credit, plain_scripts):
            folder = Path(scratch, run.__name__)
            folder.mkdir()
            print(f"  {run.__name__.replace('_', ' ')}")
            costs = run(folder, log)
            total = Cost("together", sum(c.seconds for c in costs), max(c.peak for c in costs))
            out = written(folder)
            print(f"    {total}; {out / MB:.0f} MB written, {out / size:.2f} of the log")
            seconds.append(total.seconds)
        ours = ", ".join(f"{seconds[-1] / mine:.1f}" for mine in seconds[:-1])
        print(f"  ratio of the plain scripts to the stages and to the command: {ours}")
    print("  [targets: 15 x, under 1 GB, at most 0.4 of the log written]")


if __name__ == "__main__":
    main()
