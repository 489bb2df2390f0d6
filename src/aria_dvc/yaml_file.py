"""YAML files, read as YAML 1.2: DVC writes `1e-06`, which is a number there and text in 1.1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from aria_dvc.errors import AriaError


def read_yaml(path: Path) -> Any:
    """What a YAML file holds.

    Raises:
        AriaError: the file is missing, cannot be read, or is not YAML.
    """
    try:
        return load_yaml(path.read_text("utf-8"), str(path))
    except FileNotFoundError:
        raise AriaError(f"{path} is missing: run from the repository's root") from None
    except OSError as error:
        raise AriaError(f"{path} cannot be read ({error.strerror}): check the path") from None
    except ValueError as error:  # not UTF-8
        raise AriaError(f"{path} is not valid YAML: {error}") from None


def load_yaml(text: str, where: str) -> Any:
    """What a text in YAML says.

    Raises:
        AriaError: it is not YAML.
    """
    try:
        return YAML(typ="safe", pure=True).load(text)
    except RecursionError:
        raise AriaError(f"{where} is nested too deep: write it flatter") from None
    except (YAMLError, ValueError, TypeError, OverflowError) as error:  # a date 2001-99-99, too
        raise AriaError(f"{where} is not valid YAML: {error}") from None


def taken_for_numbers(raw: Any, read: Any, where: str = "") -> Iterator[str]:
    """Where a file says true or false and its reader took 1 or 0.

    raw, read: the same values, as the file has them and as they are used.
    """
    if isinstance(raw, bool) and not isinstance(read, bool) and isinstance(read, int | float):
        yield f"{where}: input should be a number (got {raw})"
    elif isinstance(raw, dict) and isinstance(read, dict):
        for key in raw.keys() & read.keys():
            yield from taken_for_numbers(raw[key], read[key], f"{where}.{key}".lstrip("."))
    elif isinstance(raw, list) and isinstance(read, list):
        for number, (one, other) in enumerate(zip(raw, read, strict=False)):
            yield from taken_for_numbers(one, other, f"{where}.{number}")
