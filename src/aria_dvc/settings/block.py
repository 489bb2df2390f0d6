"""What blocks of params.yaml share: strict fields, and addresses and names that hold no secret."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
SECRET = "may_hold_a_secret"  # the kind of a problem whose value is not shown


class Block(BaseModel):
    """A block of params.yaml: unknown keys are refused, and values that its types cannot take."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def address(url: str, like: str) -> str:
    """A server's address without credentials, whose place is the environment.

    like: what it must look like, for who has given another.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # whose words hold what may be a password
        known = False
    if not known:
        raise PydanticCustomError(SECRET, "must look like {like}", {"like": like})
    if parts.username or parts.password or parts.query or parts.fragment:
        hint = "carries credentials: name an environment variable that holds the key instead"
        raise PydanticCustomError(SECRET, hint)
    return url


def variable(name: str | None) -> str | None:
    if name is not None and not _VARIABLE.fullmatch(name):
        hint = "must be the name of an environment variable in capitals, not the key itself"
        raise PydanticCustomError(SECRET, hint)
    return name
