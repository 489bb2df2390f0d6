"""Keys of servers: read from the environment, and never shown."""

from __future__ import annotations

import os
from urllib.parse import quote

from aria_dvc.errors import AriaError

SHORTEST_KEY = (
    8  # shorter ones are dummies for servers that want any; their letters are in any text
)


def read_key(variable: str | None, where: str) -> str:
    """The key in the environment variable, or "" without a variable.

    Args:
        where: the setting that names the variable, for the complaint.

    Raises:
        AriaError: the variable is not set, or holds what no HTTP header can carry.
    """
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise AriaError(
            f"{where}: the environment variable {variable} is not set: export it before the run"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise AriaError(f"{where}: the key in {variable} has characters no key can have")
    return key


def redact(text: str, key: str) -> str:
    """`text` with *** wherever it has the key, also as JSON or an address would write it."""
    forms = (key, key.replace("/", "\\/"), quote(key, safe="")) if key else ()
    for form in forms:
        text = text.replace(form, "***")
    return text
