"""Tables that come with the package: the files of a sub-package's folder `data`."""

from __future__ import annotations

import csv
from importlib import resources
from typing import Any

import yaml


def read_text(package: str, name: str) -> str:
    """The text of `data/<name>` beside the modules of `package`, e.g. "aria_dvc.oracles.city"."""
    return resources.files(package).joinpath("data", name).read_text("utf-8")


def read_rows(package: str, name: str) -> list[dict[str, str]]:
    """The rows of a CSV file by column."""
    return list(csv.DictReader(read_text(package, name).splitlines()))


def read_text_yaml(package: str, name: str) -> Any:
    """A YAML file in which every scalar stays text (`no`, `1`)."""
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    return yaml.load(read_text(package, name), Loader=loader)


def read_lines(package: str, name: str) -> list[str]:
    """The lines of a text file without those that are empty or start with `#`."""
    lines = map(str.strip, read_text(package, name).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def split(cell: str) -> tuple[str, ...]:
    """The parts of a cell that holds a list, written `a|b|c`; none for an empty one."""
    return tuple(filter(None, map(str.strip, cell.split("|"))))
