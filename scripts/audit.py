"""Look the pinned requirements up in a database of known vulnerabilities: `make audit`.

Ends with 0 if there are none, 1 if there are some or a pin cannot be looked up, 2 if nothing was
asked or the database does not answer. One that is out of reach or empty must not pass for good
news: it is first asked for a release that is known to be vulnerable.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINNED = ("", "-torch", "-cuda", "-build", "-weights", "-tools")
VULNERABLE = "jinja2==2.10"  # CVE-2019-10906 and others
OFFLINE = f"""\
error: nothing was audited: the database of known vulnerabilities does not name {VULNERABLE}, which
is vulnerable: it is out of reach or empty. Run `make audit` where it answers, or ask another one:
make audit SERVICE=osv"""


def command(program: str, service: str, files: Sequence[Path]) -> list[str]:
    listed = [part for file in files for part in ("--requirement", str(file))]
    fixed = ["--strict", "--disable-pip", "--progress-spinner", "off"]
    return [program, *fixed, "--vulnerability-service", service, *listed]


def answers(program: str, service: str) -> bool:
    """Whether the database names a release that is known to be vulnerable."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "requirements.txt")
        asked.write_text(f"{VULNERABLE}\n", encoding="utf-8")
        ask = [*command(program, service, [asked]), "--no-deps", "--format", "json"]
        reply = subprocess.run(ask, capture_output=True, text=True)
    try:
        found = json.loads(reply.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError, TypeError):
        print(*reply.stderr.splitlines()[-1:], file=sys.stderr)
        return False
    return any(each.get("vulns") for each in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--program", default=str(Path(sys.executable).with_name("pip-audit")))
    parser.add_argument("--service", default="pypi", choices=("pypi", "osv"))
    args = parser.parse_args()
    if shutil.which(args.program) is None:
        print(f"error: nothing was audited: there is no program {args.program}", file=sys.stderr)
        return 2
    if not answers(args.program, args.service):
        print(OFFLINE, file=sys.stderr)
        return 2
    files = [ROOT / f"requirements{part}.txt" for part in PINNED]
    audited = [*command(args.program, args.service, files), "--require-hashes"]
    return subprocess.run(audited).returncode


if __name__ == "__main__":
    sys.exit(main())
