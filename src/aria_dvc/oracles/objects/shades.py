"""Colours by name and their shades: `orange`, `bright orange`, `orange on the outside`."""

from __future__ import annotations

import re

from aria_dvc.oracles.objects.table import Extent, look_up, written

_SHADE = re.compile(
    r"^(?:(?P<shade>bright|vivid|light|dark|deep|pale) )?(?P<word>\w+)(?: on the outside)?$"
)


def shade(text: str, possible: bool) -> Extent | None:
    """The extent of a colour; of a dark or a light one only the lack is known."""
    match = _SHADE.match(text)
    found = look_up("is", match["word"], possible) if match else None
    if not match or found is None or match["word"] not in written("is"):
        return None
    sure = match["shade"] in {None, "bright", "vivid"}
    return found if sure else Extent(frozenset(), found.no)
