"""Numbers in digits and in words."""

from __future__ import annotations

import re

from text_to_num import text2num


def number(text: str) -> float | None:
    """`12`, `2.5`, `twelve`, `a hundred`, `half a` or `twenty five`; None for other words."""
    if text in {"half", "half a", "half an"}:
        return 0.5
    for read in (float, _spoken):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _spoken(text: str) -> float:
    return float(text2num(re.sub(r"^an?\b", "one", text), "en"))
