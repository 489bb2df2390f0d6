"""Games against a server of which three answers in ten fail, in a stage that is killed."""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from pathlib import Path
from typing import Any

from fault_server import FaultServer, serve
from scripts.chaos.place import LOOK_S, TINY, Place, copy, end, remove

from aria_dvc.cache.lines import CheckedLines

RATE = 0.3
OPTIONS = {"timeout_s": 1.5, "max_concurrency": 64, "deadline_s": 86400}
PLAYERS = {"alice": "endpoint:local", "bob": "scripted:varied"}
RAW = "data/raw/adversarial/bargaining.jsonl"
SCRIPT = ["python", "stages/collect.py", "bargaining"]


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
    server = FaultServer(seed=seed)
    server.say = answer
    with serve(server) as url:
        served = _place(place, games, url)
        wrong = _play(served)
        undisturbed = _raw(served)
        for path in (served.cache, served.work / RAW):
            remove(path)
        server.rate, before = RATE, server.served.copy()
        for count in sorted(random.Random(seed).sample(range(1, games), kills)):
            wrong += _killed(served, count)
        wrong += _play(served)
        faults = server.served - before
    ids = [game["episode_id"] for file in _journals(served) for game in CheckedLines(file).read()]
    if not len(ids) == len(set(ids)) == games:
        wrong.append(f"{len(ids)} games in the journal, {len(set(ids))} of them different")
    if _raw(served) != undisturbed:
        wrong.append(f"{RAW} differs")
    failed, asked = faults.total() - faults["ok"] - faults["gone"], faults.total() - faults["gone"]
    what = f"{games:,} games, {failed:,} of {asked:,} requests failed, {kills} SIGKILLs"
    return {"what": what, "wrong": wrong, "left": []}


def _place(place: Place, games: int, url: str) -> Place:
    """A second project in which the server plays Alice."""
    served = Place(place.folder / "served")
    remove(served.folder)
    copy(place.work, served.work)
    remove(served.work / "data/base_model")
    copy(place.undisturbed / "data/base_model", served.work / "data/base_model")
    log = TINY["logs"]["bargaining"] | {"episodes": games, "players": PLAYERS}
    served.workspace.run("git", "checkout", "-q", "HEAD~1", "--", "params.yaml")
    served.workspace.set_params(
        {
            **TINY,
            "logs": {"bargaining": log},
            "endpoints": {"local": {"base_url": url, "model": "m", **OPTIONS}},
            "prepare.players": ["endpoint"],
            "online.variants": [],
        }
    )
    return served


def _play(served: Place) -> list[str]:
    code, said = served.run(SCRIPT)
    return [f"ended with {code}: {said[-1500:]}"] if code else []


def _killed(served: Place, count: int) -> list[str]:
    """Kill the stage once so many games are in the journal."""
    process = served.start(SCRIPT)
    while process.poll() is None:
        if sum(file.read_bytes().count(b"\n") for file in _journals(served)) >= count:
            end(process)
            return []
        time.sleep(LOOK_S)
    return [f"ended with {process.returncode} before {count} games: {served.said()[-1500:]}"]


def _raw(served: Place) -> bytes:
    file = served.work / RAW
    return file.read_bytes() if file.exists() else b""


def _journals(served: Place) -> list[Path]:
    return list(served.cache.glob("collect/*/episodes.jsonl"))
