"""YAML files, read as YAML 1.2: DVC writes `1e-06`, which is a number there and text in 1.1."""

from __future__ import annotations

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
        return YAML(typ="safe", pure=True).load(path.read_text("utf-8"))
    except FileNotFoundError:
        raise AriaError(f"{path} is missing: run from the repository's root") from None
    except OSError as error:
        raise AriaError(f"{path} cannot be read ({error.strerror}): check the path") from None
    except RecursionError:
        raise AriaError(f"{path} is nested too deep: write it flatter") from None
    except (YAMLError, ValueError, TypeError, OverflowError) as error:  # a date 2001-99-99, too
        raise AriaError(f"{path} is not valid YAML: {error}") from None
