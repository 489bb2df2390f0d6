"""What a plain question claims about the hidden object, as the set of objects it is true of.

A claim is read by its frame (what it is, has, is made of, is used for, where it is found, what one
does with it) and looked up in the property table; `and`, `or`, `not`, adjectives and relative
clauses are composed. A claim that the table does not cover is None or unknown, never guessed.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aria_dvc.oracles.objects import patterns
from aria_dvc.oracles.objects.compare import comparison
from aria_dvc.oracles.objects.compose import composed, negatable
from aria_dvc.oracles.objects.names import between_things, named
from aria_dvc.oracles.objects.question import read_question
from aria_dvc.oracles.objects.shades import shade
from aria_dvc.oracles.objects.spelling import spelling
from aria_dvc.oracles.objects.table import UNKNOWN, Extent, everything, extent, look_up, written
from aria_dvc.oracles.objects.words import GENERIC, IMITATING, JOINING, key

MAX_WORDS = 40
"""Longer sentences are no question that the table covers; it also bounds nested clauses."""


@lru_cache(maxsize=4096)
def meaning(question: str) -> Extent:
    """The objects of which the question is to be answered with yes, and those with no."""
    plain = _plain(question)
    found = spelling(plain) if plain else UNKNOWN
    return found if found is not None else _question(plain) or UNKNOWN


@lru_cache(maxsize=4096)
def said_to_be(question: str) -> str:
    """What the question says the object is, in plain words: `a pet cat`; "" for other claims."""
    match = patterns.FORM.match(_plain(question))
    rest = _bare(match["rest"]) if match else ""
    if not match or match["subject"] == "there":
        return ""
    if match["subject"] != "it":
        called = patterns.CALLED.match(rest)
        return called[1] if called else ""
    being = match["aux"] in patterns.BE or rest.startswith("be ")
    return rest.removeprefix("be ") if being else ""


@lru_cache(maxsize=4096)
def _plain(question: str) -> str:
    """The plain form of a question that is short enough to be read; else ""."""
    plain = read_question(question)
    return plain if plain.count(" ") < MAX_WORDS else ""


def _question(plain: str) -> Extent | None:
    match = patterns.FORM.match(plain)
    if not match:
        return _others(plain)
    rest = match["rest"]
    if not rest or "never" in rest:
        return None
    if match["subject"] == "there":
        return _has(rest, False)
    possible = match["aux"] in patterns.MODAL or bool(patterns.POSSIBLE.search(rest))
    found = _read(match["aux"], match["subject"], _bare(rest), possible)
    found = found if found is not None else _others(plain)
    if found is not None and patterns.STRICT.search(rest):
        return Extent(frozenset(), found.no)  # what is not so is not always so
    return found


def _read(aux: str, subject: str, rest: str, possible: bool) -> Extent | None:
    if patterns.OWNED_BY_MOST.fullmatch(f"{subject} {rest}"):
        return _owned_by_most()
    if subject != "it":
        return negatable(rest, lambda part: _you(part, possible))
    if aux in patterns.BE:
        return _be(rest, possible)
    if rest.startswith("be "):
        return _be(rest[3:], possible)
    if aux in {"has", "have"}:
        return negatable(rest, lambda part: _has(part, possible))
    return negatable(rest, lambda part: _act(part, possible))


def _owned_by_most() -> Extent | None:
    """True of what everybody uses, false of what no home has, unknown of all between."""
    used, kept = look_up("by", "most people"), look_up("at", "home", True)
    return Extent(used.yes, kept.no - used.yes) if used and kept else None


def _bare(rest: str) -> str:
    """Without `ever`, `only` and the words that soften a claim."""
    text = patterns.POSSIBLE.sub(" ", patterns.STRICT.sub(" ", rest))
    text = patterns.SOFT.sub(" ", patterns.CHIEFLY.sub("chiefly", text))
    return re.sub(r"\s+", " ", text).strip(" ,")


def _framed(frame: str, text: str, possible: bool) -> Extent | None:
    """Reads `text` within one frame; and/or may join several of the same kind."""
    return composed(text, lambda part: _in_frame(frame, part, possible))


def _in_frame(frame: str, text: str, possible: bool) -> Extent | None:
    readers = {
        "has": _has_one,
        "at": _place,
        "be": _be,
        "use": _used,
        "made": _made,
        "about": _about,
        "do": _can_do,
        "into": lambda part, can: look_up("use", f"make {part}", can),
    }
    if frame in readers:
        return readers[frame](text, possible)
    return look_up(frame, text, possible)


# --- is it ... ------------------------------------------------------------------------------------


def _be(text: str, possible: bool) -> Extent | None:
    text = re.sub(r"^(?:a|an|the) (?=(?:found|used|made|worn|not)\b)", "", text)
    if between_things(text):
        return None
    return negatable(text, lambda part: composed(part, lambda one: _be_one(one, possible)))


def _be_one(text: str, possible: bool) -> Extent | None:
    if text in written("is"):  # the colour: `is it orange`, not `is it an orange`
        return look_up("is", text, possible)
    found = shade(text, possible)
    found = found if found is not None else named(text)
    found = found if found is not None else comparison(text)
    for frame in (_be_table, _deed_by, _described, _placed, _passive, _twice_used, _noun_phrase):
        found = frame(text, possible) if found is None else found
    return found


def _be_table(text: str, possible: bool) -> Extent | None:
    found = look_up("is", text, possible)
    return found if found is not None else look_up("noun", text, possible)


def _deed_by(text: str, possible: bool) -> Extent | None:
    """`eaten by children`: they must use it, and it must be eaten; what doctors wear varies."""
    match = patterns.DEED_BY.match(text)
    if not match or not (key(match["who"]) in patterns.ANYBODY or match["deed"] == "worn"):
        return None
    users, done = look_up("by", match["who"], True), look_up("you", match["deed"], possible)
    if users is None or done is None:
        return None
    return users & done if key(match["who"]) in patterns.ANYBODY else Extent(frozenset(), done.no)


def _described(text: str, possible: bool) -> Extent | None:
    return _first_match(patterns.DESCRIBED, text, possible)


def _first_match(
    pairs: list[tuple[re.Pattern[str], str]], text: str, possible: bool
) -> Extent | None:
    for pattern, frame in pairs:
        match = pattern.match(text)
        found = _framed(frame, match["rest"], possible) if match else None
        if found is not None:
            return found
    return None


def _used(text: str, possible: bool) -> Extent | None:
    """Uses are also named by their place (`in the kitchen`) or by what one does (`sit on`)."""
    text = re.sub(r" (?:it|with it|on it|in it)$", "", text)
    trimmed = patterns.VAGUE_END.sub("", text)
    for frame in ("use", "you", "noun", "at"):
        found = look_up(frame, trimmed, possible)
        if found is not None and not (frame == "noun" and not found.yes):
            return found
    return _shortened("use", trimmed, possible)


def _made(text: str, possible: bool) -> Extent | None:
    text = re.sub(r"^(?:partly|mixture of|some kind of|parts? of) ", "", text)
    return look_up("made", re.sub(r" materials?$", "", text), possible)


def _placed(text: str, possible: bool) -> Extent | None:
    match = patterns.PLACED.match(text)
    if not match:
        return None
    frames = ("at", "worn") if match["prep"] in {"on", "around", "at"} else ("at",)

    def read(place: str) -> Extent | None:
        place = patterns.EACH_PLACE.sub("", place)
        for frame in frames:
            for phrase in (f"{match['prep']} {place}", place):
                found = look_up(frame, phrase, possible)
                if found is not None:
                    return found
        return None

    return composed(match["place"], read)


def _place(text: str, possible: bool) -> Extent | None:
    found = _placed(text, possible)
    return found if found is not None else look_up("at", text, possible)


def _twice_used(text: str, possible: bool) -> Extent | None:
    """`used in the kitchen for cooking`: both must hold."""
    match = re.match(r"^used (.+?) ((?:for|to|by) .+)$", text)
    parts = [_be_one(f"used {part}", possible) for part in match.groups()] if match else []
    return parts[0] & parts[1] if len(parts) == 2 and parts[0] and parts[1] else None


def _passive(text: str, possible: bool) -> Extent | None:
    found = look_up("you", text, possible)
    return found if found is not None else _shortened("you", text, possible)


def _shortened(frame: str, text: str, possible: bool) -> Extent | None:
    bare = patterns.LEADING.sub("", patterns.TRAILING.sub("", text))
    return look_up(frame, bare, possible) if bare != text else None


# --- does it ..., does it have ... ----------------------------------------------------------------


def _has(text: str, possible: bool) -> Extent | None:
    return _framed("has", patterns.ATTACHED.sub("", text), possible)


def _has_one(text: str, possible: bool) -> Extent | None:
    """A part; of an unknown kind of part (`a purple handle`) only the lack is known."""
    part = patterns.SOME.sub("", patterns.ATTACHED.sub("", text))
    found = look_up("has", part, possible)
    if found is None and re.search(" colou?r$", part):
        found = shade(part.rsplit(" ", 1)[0], possible)
    noun = part.split(" ")[-1]
    if found is not None or noun == part:
        return found
    head = look_up("has", noun, True)
    return None if head is None else Extent(frozenset(), head.no)


def _act(text: str, possible: bool) -> Extent | None:
    """What the object itself does or has: `have wheels`, `fly`, `need electricity`."""
    return composed(text, lambda part: _act_one(part, possible))


def _act_one(text: str, possible: bool) -> Extent | None:
    text = re.sub(
        r"^(?:be able to|happen to|tend to|seem to|have the ability to|get to) ", "", text
    )
    found = _can_do(text, possible)
    found = found if found is not None else _first_match(patterns.ACTS, text, possible)
    return found if found is not None else _shortened("do", text, possible)


def _can_do(text: str, possible: bool) -> Extent | None:
    found = comparison(text)
    found = found if found is not None else look_up("do", text, possible)
    part = re.match(r"^have (.+)$", text)
    if found is None or not part:
        return found
    return found | (look_up("has", part[1], possible) or found)


def _about(text: str, possible: bool) -> Extent | None:
    for found in (_used(text, possible), look_up("noun", text, possible)):
        if found is not None:
            return found
    return look_up("at", text, possible)


# --- do you ... -----------------------------------------------------------------------------------


def _you(text: str, possible: bool) -> Extent | None:
    return composed(text, lambda part: _you_one(part, possible))


def _you_one(text: str, possible: bool) -> Extent | None:
    text = re.sub(r"^(?:need to|have to|able to|want to|get to|be able to|like to) ", "", text)
    found = look_up("you", text, possible)
    fits = re.match(r"^(?:fit|put|carry|hold|place|keep) (?:it|one) ((?:in|inside) .+)$", text)
    if found is None and fits:
        found = comparison(f"fit {fits[1]}")
    if found is None:
        found = _first_match(patterns.DONE_WITH, text, possible)
    if found is None:
        found = _shortened("you", text, possible)
    called = patterns.CALLED.match(text)
    return _be(called[1], possible) if called and found is None else found


# --- noun phrases ---------------------------------------------------------------------------------


def _noun_phrase(text: str, possible: bool) -> Extent | None:
    match = patterns.RELATIVE.match(text)
    if match and not (match["part"] and match["head"] in patterns.PARTICIPLES):
        head, tail = _head(match["head"], possible), _relative(match, possible)
        if tail is not None and head is not None:
            return head & tail
    user = patterns.USED_BY.match(text)
    users = look_up("by", user["who"], possible) if user else None
    head = _head(user["head"], possible) if user and users is not None else None
    if users is not None and head is not None:
        return users & head
    return _modified(text, possible)


def _head(text: str, possible: bool) -> Extent | None:
    words = [word for word in text.split() if word not in {"a", "an", "the", "some"}]
    if len(words) <= 1 and GENERIC.issuperset(words):
        return extent(everything())
    for found in (_be_table(text, possible), named(text)):
        if found is not None:
            return found
    return _modified(text, possible)


def _relative(match: re.Match[str], possible: bool) -> Extent | None:
    if match["rest"]:
        return _clause(match["verb"] or "", match["rest"], possible)
    if match["act"]:
        act = re.sub(r"^(?:can|could|would|might|will|do|may) ", "", match["act"])
        possible = possible or match["act"] != act
        return negatable(act, lambda part: _you(patterns.with_object(part), possible))
    if match["part"]:
        return _has(match["part"], possible)
    return _be_one(f"{match['participle']} {match['complement']}", possible)


def _clause(verb: str, rest: str, possible: bool) -> Extent | None:
    """A relative clause: `that has wheels`, `which is round`, `that you can wear`."""
    person = re.match(rf"^{patterns.PEOPLE} (?:(can|could|would|might|will|do) )?(.+)$", rest)
    if person and not verb:
        possible = possible or person[1] in patterns.MODAL
        return negatable(person[2], lambda part: _you(patterns.with_object(part), possible))
    possible = possible or verb in patterns.MODAL
    if verb in {"is", "are", "was"} or rest.startswith("be "):
        return _be(rest.removeprefix("be "), possible)
    if verb in {"has", "have"}:
        return negatable(rest, lambda part: _has(part, possible))
    return negatable(rest, lambda part: _act(patterns.base_form(part), possible))


def _modified(text: str, possible: bool) -> Extent | None:
    """Adjectives before a noun: all must hold (`large farm animal`)."""
    words = [word for word in text.split() if word not in {"a", "an", "the", "some", "of"}]
    if not JOINING.isdisjoint(words):
        return None
    for cut in range(len(words)):
        noun = " ".join(words[cut:])
        known = _known_noun(noun, possible)
        if known is not None and cut:
            return known & _modifiers(words[:cut], possible)
        if known is not None:
            return None if noun in GENERIC else known
    return None


def _known_noun(noun: str, possible: bool) -> Extent | None:
    if noun in GENERIC:
        return extent(everything())
    found = look_up("noun", noun, possible)
    return found if found is not None else named(noun)


def _modifiers(words: list[str], possible: bool) -> Extent:
    """The longest known phrases among the words before a noun."""
    if not words:
        return extent(everything())
    for end in range(len(words), 0, -1):
        found = _modifier(" ".join(words[:end]), possible)
        if found is not None:
            return found & _modifiers(words[end:], possible)
    return UNKNOWN & _modifiers(words[1:], possible)


def _modifier(phrase: str, possible: bool) -> Extent | None:
    if phrase in IMITATING:
        made, found = look_up("is", "man made"), _described_as(phrase, possible)
        return made and found and made & found
    return _described_as(phrase, possible)


def _described_as(phrase: str, possible: bool) -> Extent | None:
    found = look_up("is", phrase, possible)
    for frame in ("made", "at", "use", "you", "by", "noun"):
        if found is None and phrase in written(frame):
            found = look_up(frame, phrase, possible)
    return found


# --- others ---------------------------------------------------------------------------------------


def _others(plain: str) -> Extent | None:
    """Questions about others: `do children play with it`, `do fish live in it`.

    What one does oneself (`can you cut it`) says nothing of what the object does.
    """
    found = None if patterns.ONESELF.match(plain) else _they_do(plain)
    match = patterns.OTHERS_ACT.match(plain)
    if match and found is None:
        found = _done_by(match["who"], match["act"])
    part = patterns.PART_OF_IT.match(plain)
    return _be(part[1], False) if part and found is None else found


def _they_do(plain: str) -> Extent | None:
    said = re.sub(r"^(?:do|does|would|can|could|might|will|did|is|are) ", "", plain)
    bare = re.sub(r"(?: (?:in|on|with|from|at))? (?:it|there)$", "", said)
    found = look_up("do", bare, True) if bare != said else None
    return found if found is not None else look_up("do", said, True)


def _done_by(who: str, act: str) -> Extent | None:
    users = _framed("by", who, True)
    usual = act.startswith(("use", "need", "play", "like", "own", "enjoy", "wear"))
    if users is None or not (usual or key(who) in patterns.ANYBODY):
        return None
    if act in patterns.PLAIN_USE:
        return users
    done = _you(act, True)
    return None if done is None else users & done
