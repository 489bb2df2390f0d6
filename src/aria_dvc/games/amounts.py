"""Amounts of money in a text: exact, in plain digits, percent, thousands and millions.

A dot before exactly three digits is a thousands separator where the sum is a thousand or more
(`600.000` of a million), since nobody counts tenths of a cent there; elsewhere it is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from aria_dvc.games.base import IllegalMove

MAX_DIGITS = 15
MAX_DECIMALS = 4
SMALLEST_GROUPED = 1_000
"""From this sum on, a dot before three digits separates thousands."""

_NUMBER = re.compile(
    r"(?P<sign>(?:(?<=\s)|^)[-−])?(?:(?:(?:\bus)?[$€£]|\busd\b)\s?(?P<minus>[-−])?)?"
    r"(?<![\w.])(?P<body>[0-9][0-9.,]*[0-9]|[0-9])(?P<tail>[a-z0-9]*)"
    r"(?P<unit> ?(?:%|percent\b|per cent\b|thousand\b|million\b))?"
    r"(?P<word> ?(?:dollars?|usd|bucks|\$))?"
)
_DOTTED = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+")
# The first group may be longer, as small models write it (`1100,000`): three digits follow each
# comma, so there is one reading.
_BODY = re.compile(r"(?:[0-9]+(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
_ROUNDS = re.compile(r"\brounds? (?:number )?[0-9]+\b|\b[0-9]+ (?:more )?(?:rounds?|turns?)\b")
_SCALE = {"k": 1000, "m": 1_000_000, "thousand": 1000, "million": 1_000_000}


@dataclass(frozen=True)
class Amount:
    """A number in a text; `percent` means `value` is in hundredths of the whole."""

    value: Fraction
    percent: bool = False

    def of(self, whole: Fraction) -> Fraction:
        return self.value * whole / 100 if self.percent else self.value


def mark_amounts(plain_text: str, whole: Fraction) -> tuple[str, list[Amount]]:
    """Replace every amount by `<i>`, the position in the returned list.

    Numbers of rounds and ordinals (2nd) are words, not amounts. `whole` is the sum that the
    amounts are about; from it follows what a dot before three digits means.

    Raises:
        IllegalMove: a number is negative, too long, unclear or not in plain digits.
    """
    if any(char.isnumeric() and not char.isascii() for char in plain_text):
        raise IllegalMove("absurd_number", "Write amounts in plain digits, such as 1,500.")
    amounts: list[Amount] = []

    def mark(match: re.Match[str]) -> str:
        if match["tail"] in ("st", "nd", "rd", "th"):
            return " nth "
        amounts.append(_amount(match, whole))
        return f" <{len(amounts) - 1}> "

    text = _NUMBER.sub(mark, _ROUNDS.sub(" rounds ", plain_text))
    return " ".join(text.split()), amounts


def positions(segment: str) -> list[int]:
    """The positions of the amounts marked in a segment."""
    return [int(number) for number in re.findall(r"<(\d+)>", segment)]


def _amount(match: re.Match[str], whole: Fraction) -> Amount:
    if match["sign"] or match["minus"]:
        raise IllegalMove("negative_amount", "Amounts must not be negative.")
    unit = (match["unit"] or "").strip()
    percent = unit in ("%", "percent", "per cent")
    body = match["body"]
    if _DOTTED.fullmatch(body) and not percent:
        body = _without_dots(body, whole, scaled=bool(match["tail"] or unit))
    if match["tail"] not in ("", "k", "m") or not _BODY.fullmatch(body):
        raise IllegalMove("absurd_number", "Write amounts in plain digits, such as 1,500.")
    value = exact_number(body.replace(",", ""))
    return Amount(value * _SCALE.get(match["tail"], 1) * _SCALE.get(unit, 1), percent)


def _without_dots(body: str, whole: Fraction, scaled: bool) -> str:
    """`600.000` as 600000 where that can only mean thousands.

    Raises:
        IllegalMove: one dot that may as well be a decimal point.
    """
    if whole >= SMALLEST_GROUPED and not scaled and body[0] != "0":
        return body.replace(".", "")
    if body.count(".") == 1:
        raise IllegalMove("unclear_number", "Write thousands with a comma, such as 1,500.")
    return body


def exact_number(digits: str) -> Fraction:
    """Plain digits with an optional decimal part as an exact number.

    Raises:
        IllegalMove: too many digits, an exponent, a sign, nan or infinity.
    """
    whole, _, decimals = digits.partition(".")
    plain_digits = re.fullmatch(r"[0-9]+(\.[0-9]+)?", digits)
    if not plain_digits or len(whole) > MAX_DIGITS or len(decimals.rstrip("0")) > MAX_DECIMALS:
        raise IllegalMove("absurd_number", "Write amounts in plain digits, such as 1,500.")
    return Fraction(digits)
