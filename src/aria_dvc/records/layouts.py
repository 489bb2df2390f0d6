"""The layouts of raw logs that are recognised; each has its file under formats/."""

from __future__ import annotations

from typing import Any

from aria_dvc.records.formats import (
    art,
    casino,
    guess_my_city,
    messages,
    published_logs,
    tau_bench,
    verifiers,
    verl,
)
from aria_dvc.records.formats.base import BadEntry, Layout

LAYOUTS = (
    published_logs.ADVERSARIAL,
    messages.LAYOUT,
    guess_my_city.LAYOUT,
    casino.LAYOUT,
    published_logs.SINGLE,
    tau_bench.LAYOUT,
    verl.LAYOUT,
    verifiers.LAYOUT,
    art.LAYOUT,
)


def layout_of(entry: dict[str, Any]) -> Layout:
    """The layout whose keys an entry has; of two, the one that asks for more.

    Raises BadEntry where none fits, or several that are not each other's special case.
    """
    fitting = [layout for layout in LAYOUTS if layout.keys <= entry.keys()]
    special = [one for one in fitting if not any(one.keys < other.keys for other in fitting)]
    if len(special) > 1:
        names = " and ".join(layout.name for layout in special)
        raise BadEntry(f"fits the layouts {names}: leave out the keys of all but one")
    if special:
        return special[0]
    best = max(LAYOUTS, key=lambda layout: len(layout.keys & entry.keys()))
    missing = ", ".join(sorted(best.keys - entry.keys()))
    known = "; ".join(f"{layout.name}: {', '.join(sorted(layout.keys))}" for layout in LAYOUTS)
    if best.keys & entry.keys():
        raise BadEntry(f"missing key {missing} of the {best.name} layout")
    raise BadEntry(f"unknown layout; an entry needs the keys of one of: {known}")
