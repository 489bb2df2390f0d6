"""Games against a server of which three answers in ten fail, in a stage that is killed."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import time
from pathlib import Path
from typing import Any

from fault_server import FaultServer, serve
from scripts.chaos.killing import LOOK_S, end, started
from scripts.chaos.place import Place, copy

from aria_dvc.cache.lines import CheckedLines

RATE = 0.3
OPTIONS = {"timeout_s": 1.5, "max_concurrency": 64, "deadline_s": 120}
GAMES_S = 900.0
RAW = "data/raw/adversarial/bargaining.jsonl"
STAGE = ["python", "stages/collect.py", "bargaining"]


def answer(body: dict[str, Any]) -> str:
    """An offer or an answer to one, which follows from the messages alone."""
    messages = json.dumps(body["messages"], sort_keys=True)
    drawn = random.Random(hashlib.sha256(messages.encode()).digest())
    money = re.search(r"Sum: \$([\d,]+)", messages)
    total = int(money[1].replace(",", "")) if money else 100
    if drawn.random() < 0.4:
        return "I accept."
    return f"I keep {round(total * drawn.choice((0.4, 0.5, 0.6, 0.7)))}."


def survive(place: Place, games: int, kills: int, seed: int) -> dict[str, Any]:
    """Play all games undisturbed, and again among faults and kills; how that ended."""
    began, server = time.monotonic(), FaultServer(seed=seed)
    server.say = answer
    with serve(server) as url:
        served = _place(place, games, url)
        problem = _play(served, None)
        undisturbed = (served.work / RAW).read_bytes() if not problem else b""
        shutil.rmtree(served.cache, ignore_errors=True)
        (served.work / RAW).unlink(missing_ok=True)
        server.rate, before = RATE, server.served.copy()
        rng, done = random.Random(seed), 0
        for count in sorted(rng.sample(range(1, games), kills)):
            problem = problem or _play(served, count)
            done += not problem
        problem = problem or _play(served, None)
        faults = server.served - before
    found = (served.work / RAW).read_bytes() if not problem else b""
    ids = [entry["episode_id"] for entry in _journal(served)]
    return {
        "games": games,
        "kills": done,
        "requests": faults.total() - faults["gone"],
        "faults": faults.total() - faults["ok"] - faults["gone"],
        "once": len(ids) == len(set(ids)) == games,
        "equal": bool(found) and found == undisturbed,
        "problem": problem,
        "seconds": round(time.monotonic() - began, 1),
    }


def _place(place: Place, games: int, url: str) -> Place:
    """A second project in which the server plays Alice."""
    served = Place(place.folder / "served")
    shutil.rmtree(served.folder, ignore_errors=True)
    copy(place.work, served.work)
    copy(place.undisturbed / "data/base_model", served.work / "data/base_model")
    shutil.rmtree(served.work / "data/raw", ignore_errors=True)
    served.workspace.set_params(
        {
            "endpoints": {"local": {"base_url": url, "model": "m", **OPTIONS}},
            "prepare.players": ["endpoint"],
            "online.variants": [],
            "logs.bargaining.episodes": games,
            "logs.bargaining.players": {"alice": "endpoint:local", "bob": "scripted:varied"},
        }
    )
    return served


def _play(served: Place, count: int | None) -> str:
    """Run the stage, killed once so many games are in the journal; what went wrong, if it did."""
    process, until = started(served, STAGE), time.monotonic() + GAMES_S
    while process.poll() is None:
        if time.monotonic() > until:
            end(process)
            return f"not finished within {GAMES_S:.0f} s"
        if count is not None and _lines(served) >= count:
            end(process)
            return ""
        time.sleep(LOOK_S)
    if process.returncode or count is not None:
        said = served.output.read_text(errors="replace")[-1500:]
        return f"ended with {process.returncode} before {count} games: {said}"
    return ""


def _lines(served: Place) -> int:
    return sum(file.read_bytes().count(b"\n") for file in _journals(served))


def _journals(served: Place) -> list[Path]:
    return list(served.cache.glob("collect/*/episodes.jsonl"))


def _journal(served: Place) -> list[dict[str, Any]]:
    return [entry for file in _journals(served) for entry in CheckedLines(file).read()]
