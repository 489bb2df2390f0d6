"""The warnings of a run, in words, as metrics/details/health.json has them."""

from __future__ import annotations

from typing import Any

from aria_dvc.errors import AriaError


def warnings_in(health: Any, where: str) -> list[str]:
    """The warnings in the value of a health.json; none where there is no such file (None).

    Args:
        health: a mapping whose `findings` have level, about and words; only those of the level
            `warning` are told.

    Raises:
        AriaError: it is something else.
    """
    if health is None:
        return []
    try:
        warnings = [one for one in health["findings"] if one["level"] == "warning"]
        return [f"{one['about']}: {one['words']}" for one in warnings]
    except (KeyError, TypeError):
        raise AriaError(f"{where} has no warnings in words: run `dvc repro report`") from None
