"""What a city is known for: topics, kinds of sights and names of sights in free text.

A claim is understood only if all its content words are covered by topics, names or neutral words
("famous", "vibrant", "in the world"). A restriction that is not understood leaves a False False
(who has no kite festival has no famous kite festival of blue kites) and makes a True unknown.
"""

# ruff: noqa: E501 - one pattern a line reads best

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from aria_dvc.oracles.city.facts import CityFacts, city_facts
from aria_dvc.oracles.city.lists import (
    COMMON_NAMES,
    GENERIC_TOPICS,
    NEUTRAL,
    SHARED_NAMES,
    SIGHT_KINDS,
)
from aria_dvc.oracles.city.logic import all_of, any_of
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_text_yaml

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
_ONE = re.compile(r"\b(?:an?|any) ")
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
    rows = read_text_yaml("aria_dvc.oracles.city", "topics.yaml")
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


class Phrase:
    """A piece of a claim in plain form, the same for every city: read once, when asked for.

    `any_one` tells that it stood after "a": what has that name in one city is meant as a kind.
    """

    def __init__(self, text: str, any_one: bool = False) -> None:
        self.text = text
        self.any_one = any_one

    @cached_property
    def content(self) -> Phrase:
        """The phrase without "known for its" and the like."""
        bare = strip_frame(self.text)
        any_one = any(self.text.startswith(bare, a.end()) for a in _ONE.finditer(self.text))
        return Phrase(bare, self.any_one or any_one)

    @cached_property
    def examples(self) -> tuple[Phrase, tuple[Phrase, ...]] | None:
        """What stands before "such as", and the examples behind it."""
        head, *rest = _EXAMPLES.split(self.text, maxsplit=1)
        if not rest or not head:
            return None
        return Phrase(head, self.any_one), _contents(re.split(r" or | and |,", rest[0]))

    @cached_property
    def options(self) -> tuple[Phrase, ...]:
        """The parts that "or" joins; none without an "or"."""
        parts = re.split(r",? or |,", self.text) if " or " in self.text else ()
        return _contents(parts, self.any_one)

    @cached_property
    def bare(self) -> Phrase | None:
        """The phrase without the detail that "with" adds to it."""
        head, *details = re.split(r" with | featuring ", self.text, maxsplit=1)
        return Phrase(head, self.any_one) if details else None

    @cached_property
    def members(self) -> tuple[Phrase, ...]:
        """The parts that "and" and commas join."""
        parts = re.split(r",? and |,", self.text)
        return _contents((part for part in parts if part.strip()), self.any_one)

    @cached_property
    def pair(self) -> tuple[Phrase, ...]:
        """The parts that "and" alone joins; none without an "and"."""
        parts = self.text.split(" and ") if " and " in self.text else ()
        return _contents(parts, self.any_one)

    @cached_property
    def named(self) -> Named:
        """The topics and sights in it."""
        return _named(self.text.strip(" ,"))

    @cached_property
    def shared(self) -> bool:
        """Whether other cities may have something of the name of its sight, too."""
        names = _sight_pattern().findall(self.text)
        return bool(names) and (self.any_one or not SHARED_NAMES.isdisjoint(names))

    @cached_property
    def kind(self) -> Named:
        """The topics in it, no word taken for the name of a sight."""
        return _with_topics((), self.text.strip(" ,"))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of sight that it asks for: `a famous clock tower`."""
        words = [word for word in self.text.strip(" ,").split() if word not in NEUTRAL]
        kind = " ".join(words)
        return tuple(SIGHT_KINDS.get(kind) or SIGHT_KINDS.get(kind.removesuffix("s"), ()))

    @cached_property
    def generic(self) -> bool:
        """`heritage` in "indigenous culture or heritage" says nothing without the adjective."""
        return all(topic.name in GENERIC_TOPICS for topic, _ in _longest(self.text))


def _contents(parts: Iterable[str], any_one: bool = False) -> tuple[Phrase, ...]:
    return tuple(Phrase(part, any_one).content for part in parts)


@dataclass(frozen=True, slots=True)
class Named:
    """The topics of a phrase, the cities of each sight in it, and whether other words are left."""

    topics: tuple[Topic, ...]
    sights: tuple[frozenset[str], ...]
    left: bool


def _named(text: str) -> Named:
    """One phrase: the longest topics win, leftovers decide how far they can be trusted."""
    sights = tuple(named_sights()[name] for name in _sight_pattern().findall(text))
    return _with_topics(sights, _sight_pattern().sub(" ", text))


def _with_topics(sights: tuple[frozenset[str], ...], rest: str) -> Named:
    chosen = _longest(rest)
    for _, span in chosen:
        rest = rest.replace(span, " " * 3, 1)
    left = any(word not in NEUTRAL for word in re.findall(r"[a-zA-Z0-9']+", rest))
    return Named(tuple(topic for topic, _ in chosen), sights, left)


class Topics:
    """Truth of "known for", "home to" and "have" claims about one city."""

    def __init__(self, facts: CityFacts) -> None:
        self.facts = facts

    def truth(self, claim: Phrase) -> bool | None:
        """True, False, or None where the claim is not understood or not known."""
        phrase = claim.content
        if not phrase.text:
            return None
        if "unesco" in claim.text and " or unesco" not in claim.text and not self._unesco():
            return self._unesco()
        if phrase.examples:
            head, examples = phrase.examples
            detail, main = self._any(examples), self._joined(head)
            if detail is not None:
                return detail and main is not False
            return main if main is False else None
        return self._joined(phrase)

    def _unesco(self) -> bool | None:
        return self.value(next(topic for topic in topics() if topic.name == "unesco"))

    def near(self, name: Phrase) -> bool | None:
        """Whether a sight of that name or a kind of it is in or by the city."""
        return self._part(name.content)

    def _joined(self, phrase: Phrase) -> bool | None:
        if phrase.options:
            return self._any_or_whole(phrase)
        if phrase.bare:
            return self._detailed(phrase.bare, phrase)
        whole = self._part(phrase)
        if whole is not None or len(phrase.members) < 2:
            return whole
        return all_of([self._part(part) for part in phrase.members])

    def _detailed(self, head: Phrase, phrase: Phrase) -> bool | None:
        """`a cathedral with glass windows`: the detail alone makes nothing false."""
        main = self._part(head)
        return (self._part(phrase) or None) if main is not False else False

    def _any_or_whole(self, phrase: Phrase) -> bool | None:
        """One true option is enough; what one topic covers as a whole counts too."""
        first, *others = phrase.options
        options = self._any(phrase.options)
        if options and self._part(first) is False:
            return self._any([part for part in others if not part.generic]) or None
        whole = self._part(phrase)
        return whole if options is None and whole else options

    def _any(self, parts: Sequence[Phrase]) -> bool | None:
        return any_of([self._and(part) for part in parts if part.text])

    def _and(self, phrase: Phrase) -> bool | None:
        value = self._part(phrase)
        if value is not None or not phrase.pair:
            return value
        return all_of([self._part(part) for part in phrase.pair])

    def _part(self, phrase: Phrase) -> bool | None:
        named = phrase.named
        own = [self.facts.city.name in cities for cities in named.sights]
        if phrase.shared and not all(own):
            named, own = phrase.kind, []
        found: list[bool | None] = [*own]
        found += map(self.value, named.topics)
        if not found:  # `a famous clock tower`: True if such a sight is listed, else unknown
            return True if any(kind in self.facts.sights for kind in phrase.kinds) else None
        if any(value is False for value in found):
            return False
        return True if all(found) and not named.left else None

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
