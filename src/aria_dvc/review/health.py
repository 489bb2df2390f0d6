"""The warnings of a run, in words, as metrics/details/health.json has them."""

from __future__ import annotations

from typing import Any

from aria_dvc.errors import AriaError


def warnings_in(health: Any, where: str) -> list[str]:
    """The warnings in the value of a health.json; none where there is no such file (None).

    Args:
        health: a list of texts, or a mapping whose `findings` have level, about and words; only
            those of the level `warning` are told.

    Raises:
        AriaError: it is neither.
    """
    if health is None:
        return []
    try:
        found = health if isinstance(health, list) else _told(health["findings"])
    except (KeyError, TypeError):
        found = [None]
    if not all(isinstance(text, str) for text in found):
        raise AriaError(f"{where} has no warnings in words: run `dvc repro report`")
    return list(found)


def _told(findings: list[dict[str, str]]) -> list[str]:
    return [f"{one['about']}: {one['words']}" for one in findings if one["level"] == "warning"]
