"""Did you mean: the nearest known name, for messages about unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`; None if none is much like it."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' (did you mean X?)' for the nearest known name, else the list of known names."""
    known = sorted(known)
    near = nearest(name, known)
    return f" (did you mean {near}?)" if near else f" (known: {', '.join(known) or 'none'})"
