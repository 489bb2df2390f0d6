"""A small log with vectors that has gone through the stages up to `aggregate`, in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import stages.aggregate
import stages.cluster
import stages.collect
import stages.embed
import stages.prepare
import stages.select_k

from aria_dvc.params import Params, load_params
from aria_dvc.pipeline.paths import LogFiles, files_of
from aria_dvc.settings.dialogues import LogSource

ROOT = Path(__file__).parent.parent
STAGES: dict[str, ModuleType] = {
    "collect": stages.collect,
    "prepare": stages.prepare,
    "embed": stages.embed,
    "cluster": stages.cluster,
    "select_k": stages.select_k,
    "aggregate": stages.aggregate,
}
NAME = "own"
WORDS = ["who pays?", "half each", "take it", "leave it", "never", "all mine", "fine", "no"]


def entries(count: int = 12, broken: tuple[int, ...] = ()) -> list[dict]:
    """Games of two; the numbers in `broken` were broken off by a judge who has no reward."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(count):
        said = rng.integers(0, len(WORDS), 4)
        messages = [
            {
                "role": ("alice", "bob")[turn % 2],
                "content": f"{WORDS[word]} ({number}.{turn})",
                "embedding": (np.eye(8)[word] + rng.normal(0, 0.01, 8)).round(4).tolist(),
            }
            for turn, word in enumerate(said)
        ]
        entry = {"episode_id": f"e{number}", "messages": messages}
        entry["rewards"] = {"alice": float(said[0] % 2), "bob": float(said[1] % 2)}
        if number in broken:
            entry["info"] = {"failure": {"role": "judge", "kind": "no_answer"}}
        found.append(entry)
    return found


def params_of(source: Path, name: str = NAME) -> Params:
    """The shipped parameters with one log, the user's own."""
    shipped = load_params(ROOT / "params.yaml")
    own = LogSource.model_validate({"source": str(source), "category": "adversarial"})
    cluster = shipped.cluster.model_copy(update={"k_max": 6})
    return shipped.model_copy(update={"logs": {name: own}, "cluster": cluster})


def run_to(stage: str, source: Path, log: str = NAME) -> LogFiles:
    """Run the stages up to `stage` in the current folder."""
    params = params_of(source, log)
    for name, module in STAGES.items():
        module.main(params, log)
        if name == stage:
            break
    return files_of(params, log)


def write_entries(path: Path, found: list[dict]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in found), "utf-8")
    return path
