"""What a city is known for: topics, kinds of sights and names of sights in free text.

A claim is understood only if all its content words are covered by topics, names or neutral words
("famous", "vibrant", "in the world"). A restriction that is not understood leaves a False False
(who has no kite festival has no famous kite festival of blue kites) and makes a True unknown.
"""

# ruff: noqa: E501 - one pattern a line reads best

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from aria_dvc.oracles.city.facts import CityFacts, city_facts
from aria_dvc.oracles.city.lists import COMMON_NAMES, GENERIC_TOPICS, NEUTRAL, SIGHT_KINDS
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_yaml

_LEAD = re.compile(
    r"^(?:(?:known|famous|renowned|recognized|recognised|noted|popular|celebrated|notable|"
    r"associated|recognizable|reputed|distinguished|loved|remembered|important)"
    r" (?:for|as|with|by|because of|due to|worldwide for|globally for)|home to|"
    r"(?:have|has|had|having|feature|features|host|hosts|offer|contain|possess|boast|celebrate|"
    r"house|produce|hold)\b|known|famous|situated|located|considered(?: to be)?|associated with|"
    r"there|referred to as|called|nicknamed)\s+"
)
_ARTICLE = re.compile(
    r"^(?:(?:a|an|the|its|any|some|being|having|hosting|also|one of(?: the)?|own)\s+)+"
)
_TAIL = re.compile(
    r"(?:\s+(?:in|within|near|around|from|of|throughout|across|to|at) (?:CITY|COUNTRY|it|the world|the region|the area|"
    r"the country|the city)|\s+there|\s+nearby|\s+near it|\s+or not|\s+worldwide|\s+among (?:tourists|locals|visitors)|"
    r"\s+(?:that|which) (?:CITY|it|you|people) (?:is|are) (?:known|famous) for|"
    r"\s+(?:that|which) (?:attracts?|draws?|is popular among|are popular with|people visit)[a-z ]*|"
    r"\s+(?:associated|connected) with (?:CITY|it)|\s+(?:that|which) (?:is|are) (?:known|famous|recognized|popular|well known|visited)[a-z ]*)+$"
)
_EXAMPLES = re.compile(
    r",? (?:such as|including|like|for example|for instance|eg|ie|particularly|especially|specifically)\b ?"
)


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing that a city may be known for."""

    name: str
    pattern: re.Pattern[str]
    default: str
    yes: frozenset[str]
    no: frozenset[str]
    maybe: frozenset[str]


def _cities(cell: str) -> frozenset[str]:
    found: set[str] = set()
    for part in filter(None, cell.split("|")):
        if part == "%coast":
            found |= {name for name, facts in city_facts().items() if facts.coast == "yes"}
        elif part.startswith("@"):
            found |= {n for n, facts in city_facts().items() if facts.country.name == part[1:]}
        else:
            found.add(part)
    return frozenset(found)


@cache
def topics() -> tuple[Topic, ...]:
    """All topics of `data/topics.yaml`."""
    rows = read_yaml("aria_dvc.oracles.city", "topics.yaml")
    return tuple(
        Topic(
            name,
            re.compile(rf"\b(?:{row['ask']})(?:s|es)?\b"),
            row["default"],
            _cities(row.get("yes", "")),
            _cities(row.get("no", "")),
            _cities(row.get("maybe", "")),
        )
        for name, row in rows.items()
    )


@cache
def named_sights() -> dict[str, frozenset[str]]:
    """Folded names of sights with the cities that have them; everyday names are left out."""
    found: dict[str, set[str]] = {}
    for city, facts in city_facts().items():
        own = [f"{name} " for name in facts.city.names]
        for name in facts.sights.values():
            plain = fold(re.sub(r"\(.*?\)|,.*| nearby.*| in ancient.*| in the past.*", "", name))
            proper = name[:1].isupper() and plain not in COMMON_NAMES and len(plain) > 4
            if proper and not name.startswith("the ") and not any(p in f"{plain} " for p in own):
                found.setdefault(plain, set()).add(city)
    return {name: frozenset(where) for name, where in found.items() if len(where) <= 3}


@cache
def _sight_pattern() -> re.Pattern[str]:
    names = sorted(named_sights(), key=lambda name: (-len(name), name))
    return re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b")


class Topics:
    """Truth of "known for", "home to" and "have" claims about one city."""

    def __init__(self, facts: CityFacts) -> None:
        self.facts = facts

    def truth(self, claim: str) -> bool | None:
        """True, False, or None where the claim is not understood or not known."""
        text = strip_frame(claim)
        if not text:
            return None
        if "unesco" in claim and " or unesco" not in claim and not self._unesco():
            return self._unesco()
        head, *examples = _EXAMPLES.split(text, maxsplit=1)
        if examples and head:
            detail = self._any(re.split(r" or | and |,", examples[0]))
            if detail is not None:
                return detail and self._joined(head) is not False
            main = self._joined(head)
            return main if main is False else None
        return self._joined(text)

    def _unesco(self) -> bool | None:
        return self.value(next(topic for topic in topics() if topic.name == "unesco"))

    def near(self, name: str) -> bool | None:
        """Whether a sight of that name or a kind of it is in or by the city."""
        return self._part(strip_frame(name))

    def _joined(self, text: str) -> bool | None:
        if " or " in text:
            return self._any_or_whole(text)
        head, *details = re.split(r" with | featuring ", text, maxsplit=1)
        if details:
            return self._detailed(head, text)
        whole = self._part(text)
        if whole is not None:
            return whole
        parts = [part for part in re.split(r",? and |,", text) if part.strip()]
        if len(parts) < 2:
            return None
        values = [self._part(strip_frame(part)) for part in parts]
        if False in values:
            return False
        return True if all(values) else None

    def _detailed(self, head: str, text: str) -> bool | None:
        """`a cathedral with glass windows`: the detail alone makes nothing false."""
        main = self._part(head)
        return (self._part(text) or None) if main is not False else False

    def _any_or_whole(self, text: str) -> bool | None:
        """One true option is enough; what one topic covers as a whole counts too."""
        parts = re.split(r",? or |,", text)
        options = self._any(parts)
        if options and self._part(strip_frame(parts[0])) is False:
            firm = [part for part in parts[1:] if not _is_generic(strip_frame(part))]
            return self._any(firm) or None
        whole = self._part(text)
        return whole if options is None and whole else options

    def _any(self, parts: list[str]) -> bool | None:
        values = [self._and(strip_frame(part)) for part in parts if strip_frame(part)]
        if any(values):
            return True
        return None if None in values or not values else False

    def _and(self, text: str) -> bool | None:
        value = self._part(text)
        if value is not None or " and " not in text:
            return value
        values = [self._part(strip_frame(part)) for part in text.split(" and ")]
        return False if False in values else True if all(values) else None

    def _part(self, text: str) -> bool | None:
        """One phrase: the longest topics win, leftovers decide how far they can be trusted."""
        text = text.strip(" ,")
        names = _sight_pattern().findall(text)
        found: list[bool | None] = [self.facts.city.name in named_sights()[n] for n in names]
        rest = _sight_pattern().sub(" ", text)
        for topic, span in _longest(rest):
            found.append(self.value(topic))
            rest = rest.replace(span, " " * 3, 1)
        if not found:
            return self._kind(text)
        if any(value is False for value in found):
            return False
        left = [word for word in re.findall(r"[a-zA-Z0-9']+", rest) if word not in NEUTRAL]
        return True if all(found) and not left else None

    def _kind(self, text: str) -> bool | None:
        """`a famous clock tower`: True if such a sight is listed, else unknown."""
        words = [word for word in text.split() if word not in NEUTRAL]
        kind = " ".join(words)
        listed = SIGHT_KINDS.get(kind) or SIGHT_KINDS.get(kind.removesuffix("s"), ())
        return True if any(part in self.facts.sights for part in listed) else None

    def value(self, topic: Topic) -> bool | None:
        """What is known about one topic."""
        name = self.facts.city.name
        for listed, value in ((topic.maybe, None), (topic.yes, True), (topic.no, False)):
            if name in listed and not (value is None and (name in topic.yes)):
                return value
        if topic.default == "rivers":
            return True if self.facts.rivers.sure else None
        if topic.default == "lakes":
            return True if self.facts.lakes.sure else None
        if topic.default == "capital":
            national = self.facts.city.names and set(self.facts.city.names) & set(
                self.facts.country.capital
            )
            return True if national else None
        return {"yes": True, "no": False}.get(topic.default)

    def sight(self, kind: str) -> str | None:
        """The name of the best known sight of a kind such as `river` or `art museum`."""
        for part in SIGHT_KINDS.get(kind, ()):
            if part in self.facts.sights:
                return self.facts.sights[part]
        return None


def _is_generic(text: str) -> bool:
    """`heritage` in "indigenous culture or heritage" says nothing without the adjective."""
    return all(topic.name in GENERIC_TOPICS for topic, _ in _longest(text))


def strip_frame(claim: str) -> str:
    """Drops "known for its", "home to a", "in the world" around the content of a claim."""
    text = claim.strip(" ,")
    before = None
    while text != before:
        before = text
        text = _TAIL.sub("", _ARTICLE.sub("", _LEAD.sub("", text))).strip(" ,")
    return text


def _longest(text: str) -> list[tuple[Topic, str]]:
    """The topics named in `text`, longest match first, without overlaps."""
    matches = [
        (match.end() - match.start(), -order, match.start(), topic, match.group())
        for order, topic in enumerate(topics())
        for match in topic.pattern.finditer(text)
    ]
    matches.sort(key=lambda item: (-item[0], item[1]))
    taken: list[tuple[int, int]] = []
    chosen = []
    for length, _, start, topic, span in matches:
        end = start + length
        if all(end <= a or start >= b for a, b in taken):
            taken.append((start, end))
            chosen.append((topic, span))
    return chosen
