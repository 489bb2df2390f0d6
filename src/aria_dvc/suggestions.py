"""Did you mean: the nearest known name, for messages about unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ALIKE = 0.6  # from 0 to 1, how like two names are that may be meant for one another


def nearest(name: str, known: Iterable[str], cutoff: float = ALIKE) -> str | None:
    """The known name that is most like `name`; None if none is as like it as `cutoff`."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' (did you mean X?)' for the nearest known name, else the list of known names."""
    known = sorted(known)
    near = nearest(name, known)
    return f" (did you mean {near}?)" if near else f" (known: {', '.join(known) or 'none'})"
