"""Text of logs as it is shown: it steers no terminal, and is no formula to a spreadsheet."""

from __future__ import annotations

import logging
import re

# Control characters, marks that turn the direction of writing, invisible ones, lone surrogates.
_STEERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # also in full width
_LINES = "\n\t"


def printable(text: str, keep: str = "") -> str:
    """`text` with what steers a terminal as escapes such as \\x1b; characters in `keep` stay."""

    def escaped(found: re.Match[str]) -> str:
        char = found.group()
        return char if char in keep else char.encode("unicode_escape", "surrogatepass").decode()

    return _STEERS.sub(escaped, text)


def brief(error: BaseException, width: int = 200) -> str:
    """What an error of a library says, on one line, cut with a mark after so many characters."""
    text = " ".join(str(error).split()).rstrip(".")
    return text if len(text) <= width else f"{text[:width].rstrip()} ..."


def cell(text: str) -> str:
    """`text` for a cell of a CSV file: spreadsheets take it as text, unless it is a number."""
    plain = printable(text)
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA) and not _is_number(plain) else plain


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Formatter(logging.Formatter):
    """Log lines of which only line ends and tabs are left as they are."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the traceback if there is one."""
        return printable(super().format(record), keep=_LINES)
