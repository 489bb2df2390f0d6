"""What a plain question claims about the hidden object, as the set of objects it is true of.

A claim is read by its frame (what it is, has, is made of, is used for, where it is found, what one
does with it) and looked up in the property table; `and`, `or`, `not`, adjectives and relative
clauses are composed. A claim that the table does not cover is None or unknown, never guessed.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aria_dvc.oracles.object_compare import comparison
from aria_dvc.oracles.object_data import objects
from aria_dvc.oracles.object_names import named
from aria_dvc.oracles.object_question import read_question
from aria_dvc.oracles.object_spelling import spelling
from aria_dvc.oracles.object_table import UNKNOWN, Extent, extent, look_up, written
from aria_dvc.oracles.object_words import key

_PEOPLE = (
    r"(?:you|we|i|one|people|someone|somebody|most people|many people|humans?|a human|a person|everyone|"
    r"anyone|persons?|the average person|an average person|some people|a normal person|most humans|most households?|everybody)"
)
_FORM = re.compile(rf"^(?P<aux>\w+) (?P<subject>it|there|{_PEOPLE}) ?(?P<rest>.*)$")
_SOFT = re.compile(
    r"\b(?:usually|typically|generally|commonly|normally|mostly|mainly|primarily|often|frequently|"
    r"considered(?: to be)?|classified as|categorized as|regarded as|known as|thought of as|"
    r"(?:a |an )?(?:kind|type|sort|form|piece|pair|variety) of|really|actually|perhaps|maybe|probably|possibly|most commonly|"
    r"also|just|simply|traditionally|in general|generally speaking|most of the time|most often|"
    r"in most cases|on average|for the most part|by any chance|at all|basically|largely|naturally|regularly|"
    r"itself|likely|purposely|specifically|originally|currently|at times|very|quite|rather|pretty|fairly|relatively|particularly|especially|extremely|visibly)\b"
)
_POSSIBLE = re.compile(
    r"\b(?:sometimes|ever|occasionally|potentially|possible|in some cases|at times)\b"
)
_STRICT = re.compile(r"\b(?:always|only|exclusively|entirely|solely|completely|purely|never)\b")
_MODAL = frozenset({"can", "could", "might", "may"})
_GENERIC = frozenset(
    {
        "something",
        "anything",
        "thing",
        "object",
        "item",
        "one",
        "things",
        "objects",
        "items",
        "stuff",
    }
)
_PREPOSITION = r"(?:in|at|on|inside|outside|near|around|under|by|within|next to|outside of|inside of|from|beside|throughout|onto|into)"
_PLACED = re.compile(
    rf"^(?:found|located|kept|stored|seen|placed|used|put|encountered|located|sold|bought|available|"
    rf"present|displayed|purchased|things? found|living|lives?)?(?: to be found)? ?(?P<prep>{_PREPOSITION}) (?P<place>.+)$"
)
_RELATIVE = re.compile(
    r"^(?P<head>.+?) (?:(?:that|which|who)(?: (?P<verb>is|are|was|has|have|can|could|does|do|would|might|will))? (?P<rest>.+)|"
    r"(?P<people>(?:you|people|we|someone|one|i|humans)) (?P<act>.+)|"
    r"with (?P<part>.+)|"
    r"(?P<participle>used|made|found|worn|played|eaten|kept|designed|meant|intended|powered|grown|located|associated|driven|"
    r"related|owned|sold|held|capable|able|for|to|in|on|from|native|bigger|larger|smaller) (?P<complement>.+))$"
)
_ALTERNATIVE = re.compile(
    r",? or (?:is|are|does|do|can|an?|it|the|some|something|rather|more|instead|not|just)\b"
)
_ANTONYMS = [
    frozenset(map(key, pair))
    for pair in (
        ("living", "dead"), ("alive", "dead"), ("living", "nonliving"), ("living", "non living"), ("alive", "inanimate"),
        ("big", "small"), ("large", "small"), ("soft", "hard"), ("hot", "cold"), ("natural", "man made"),
        ("manmade", "natural"), ("natural", "artificial"), ("indoors", "outdoors"), ("inside", "outside"), ("heavy", "light"),
        ("bigger", "smaller"), ("larger", "smaller"), ("organic", "inorganic"), ("solid", "liquid"),
        ("animal", "plant"), ("animate", "inanimate"), ("wild", "domesticated"), ("old", "new"),
        ("cheap", "expensive"), ("young", "old"), ("sweet", "sour"), ("electronic", "mechanical"), ("indoor", "outdoor"),
        ("fruit", "vegetable"), ("male", "female"), ("vegetable", "mineral"), ("carnivore", "herbivore"),
    )
]  # fmt: skip


@lru_cache(maxsize=4096)
def meaning(question: str) -> Extent:
    """The objects of which the question is to be answered with yes, and those with no."""
    plain = read_question(question)
    if not plain:
        return UNKNOWN
    found = spelling(plain)
    return found if found is not None else _question(plain) or UNKNOWN


def _question(plain: str) -> Extent | None:
    match = _FORM.match(plain)
    if not match:
        return _others(plain)
    subject, aux, rest = match["subject"], match["aux"], match["rest"]
    if not rest:
        return None
    if subject == "there":
        return _has(re.sub(r" (?:in|on|inside) it$", "", rest), False)
    strict = bool(_STRICT.search(rest))
    possible = aux in _MODAL or bool(_POSSIBLE.search(rest))
    rest = _clean(_POSSIBLE.sub(" ", _STRICT.sub(" ", rest)))
    found = _read(aux, subject, rest, possible)
    if strict and found is not None and "never" not in plain:
        return Extent(frozenset(), found.no)
    return None if "never" in plain else found


def _read(aux: str, subject: str, rest: str, possible: bool) -> Extent | None:
    if subject != "it":
        return _negatable(rest, lambda part: _you(part, possible))
    if aux in {"is", "are", "was", "were"}:
        return _be(rest, possible)
    if rest.startswith("be "):
        return _be(rest[3:], possible)
    if aux in {"has", "have"}:
        return _negatable(rest, lambda part: _has(part, possible))
    return _negatable(rest, lambda part: _act(part, possible))


def _clean(text: str) -> str:
    return re.sub(r"\s+", " ", _SOFT.sub(" ", text)).strip(" ,")


def _negatable(text: str, read) -> Extent | None:  # type: ignore[no-untyped-def]
    """A literal `not` turns the claim around: `is it not alive` is true of a chair."""
    match = re.match(r"^(?:not|un) (.+)$", text)
    found = read(match[1] if match else text)
    return ~found if match and found is not None else found


# -- composition -----------------------------------------------------------------------------------


def _composed(text: str, read) -> Extent | None:  # type: ignore[no-untyped-def]
    """Reads the whole text, else the parts that `and`, `or` and commas join."""
    whole = read(text)
    if whole is not None:
        return whole
    if re.search(r"\bor\b", text):
        return _either(text, read)
    if re.search(r"\band\b|,", text):
        parts = [
            part.strip() for part in re.split(r",? and |, (?:but )?| but ", text) if part.strip()
        ]
        found = [read(part) for part in parts]
        if len(parts) < 2 or all(part is None for part in found):
            return None
        result = extent(frozenset(item.name for item in objects()))
        for part in found:
            result = result & (part or UNKNOWN)
        return result
    return None


def _either(text: str, read) -> Extent | None:  # type: ignore[no-untyped-def]
    if _ALTERNATIVE.search(text):
        return None
    parts = [part.strip() for part in re.split(r",? or |, ", text) if part.strip()]
    if any(
        pair <= set(" ".join(map(key, parts)).split()) | set(map(key, parts)) for pair in _ANTONYMS
    ):
        return None
    lead = re.match(r"^(.*\b(?:in|on|for|of|to|at|from|by|with)) ", parts[0])
    found = [read(parts[0])]
    for part in parts[1:]:
        value = read(f"{lead[1]} {part}") if lead else read(part)
        found.append(value if value is not None else read(part))
    if len(parts) > 1 and found[0] is None:
        tail = parts[-1].split(" ", 1)
        found[0] = read(f"{parts[0]} {tail[1]}") if len(tail) > 1 else None
    if all(value is None for value in found):
        return None
    result = found[0] or UNKNOWN
    for value in found[1:]:
        result = result | (value or UNKNOWN)
    return result


# -- frames ----------------------------------------------------------------------------------------


def _be(text: str, possible: bool) -> Extent | None:
    text = re.sub(r"^(?:a|an|the) (?=(?:found|used|made|worn|not)\b)", "", text)
    return _negatable(text, lambda part: _composed(part, lambda one: _be_one(one, possible)))


def _be_one(text: str, possible: bool) -> Extent | None:
    if not text or text.startswith("not "):
        return _negatable(text, lambda part: _be_one(part, possible)) if text else None
    if text in written("is"):  # the colour: `is it orange`, not `is it an orange`
        return look_up("is", text, possible)
    for frame in (_guess, _comparison, _be_table, _special, _placed, _passive):
        found = frame(text, possible)
        if found is not None:
            return found
    return _noun_phrase(text, possible)


def _guess(text: str, possible: bool) -> Extent | None:
    return named(text)


def _comparison(text: str, possible: bool) -> Extent | None:
    return comparison(text)


def _be_table(text: str, possible: bool) -> Extent | None:
    found = look_up("is", text, possible)
    return found if found is not None else look_up("noun", text, possible)


_SPECIAL = [
    (re.compile(pattern), frame)
    for pattern, frame in (
        (r"^(?:made|composed|constructed|built|crafted|manufactured|produced|comprised|consisting)(?: up)?(?: out)? (?:of|from|with|using|in|by) (?P<rest>.+)$", "made"),
        (r"^(?:worn|put|placed|used|carried)(?: by (?:men|women|people))? (?:on|around|over|in|about|at|above|under|near|below|across|inside|round) (?P<rest>.+)$", "worn"),
        (r"^(?:used|useful|utilized|good|needed|necessary|meant|intended|designed|suitable|suited|helpful|made|required|essential|important|employed|supposed|handy|ideal|great|for|played|related|associated|connected|involved|linked|tied)(?: by people| by humans| by you)? ?(?:as|for|to|in|with|when|while|during|at|specifically for) (?:be used (?:for|in|to) |help (?:you |people |with )?|do |perform )?(?P<rest>.+)$", "use"),
        (r"^(?:for|to) (?P<rest>.+)$", "use"),
        (r"^(?:used|played|worn|operated|eaten|owned|enjoyed|handled|needed|liked|played with|popular|made|popular among|meant|intended|designed|used mostly|driven|carried)? ?(?:for use )?(?:by|with|among|for) (?P<rest>.+)$", "by"),
        (r"^(?:able to|capable of|known to|known for) (?P<rest>.+)$", "do"),
        (r"^(?:\w+ )?enough to (?P<rest>.+)$", "do"),
        (r"^(?:\w+ )?enough (?:for (?:you|one|someone|a person) )?to (?P<rest>.+)$", "you"),
        (r"^(?P<rest>.+?)(?: in)? (?:color|colou?red|shape|shaped|in appearance|in nature|in texture|to the touch|in taste|in size|sized|size)$", "is"),
        (r"^(?:the |a )?(?:color|colou?r|shape) (?P<rest>.+)$", "is"),
    )
]  # fmt: skip


def _special(text: str, possible: bool) -> Extent | None:
    for pattern, frame in _SPECIAL:
        match = pattern.match(text)
        if match:
            found = _framed(frame, match["rest"], possible)
            if found is not None:
                return found
    return None


def _framed(frame: str, text: str, possible: bool) -> Extent | None:
    def read(part: str) -> Extent | None:
        found = look_up(frame, part, possible)
        if found is None and frame == "do":
            found = comparison(part)
        if found is None and frame == "use":
            found = _used(part, possible)
        if found is None and frame == "made":
            found = _made(part, possible)
        return found

    return _composed(text, read)


def _used(text: str, possible: bool) -> Extent | None:
    """Uses are also named by their place (`in the kitchen`) or by what one does (`sit on`)."""
    text = re.sub(r" (?:it|with it|them|on it|in it)$", "", text)
    trimmed = re.sub(
        r" (?:things?|objects?|items?|something|stuff|purposes?|activit(?:y|ies)|tasks?)$", "", text
    )
    for frame in ("use", "you", "noun", "at"):
        found = look_up(frame, trimmed, possible)
        if found is not None and not (frame == "noun" and not found.yes):
            return found
    return None


def _made(text: str, possible: bool) -> Extent | None:
    text = re.sub(
        r"^(?:mostly|mainly|partly|primarily|mixture of|some kind of|parts? of) ", "", text
    )
    return look_up("made", re.sub(r" materials?$", "", text), possible)


def _placed(text: str, possible: bool) -> Extent | None:
    match = _PLACED.match(text)
    if not match:
        return None
    whole = re.sub(r"^(?:found|located|kept|stored|seen|placed|used|put) ", "", text)

    def read(place: str) -> Extent | None:
        place = re.sub(
            r"^(?:most|many|every|almost every|nearly every|each|someones?|somebodys|peoples?|typical|average|normal|nearly all|all|lots of) ",
            "",
            place,
        )
        for frame in ("at", "worn") if match["prep"] in {"on", "around", "at"} else ("at",):
            found = look_up(frame, f"{match['prep']} {place}", possible)
            found = found if found is not None else look_up(frame, place, possible)
            if found is not None:
                return found
        return None

    found = read(re.sub(rf"^{_PREPOSITION} ", "", whole))
    return found if found is not None else _composed(match["place"], read)


def _passive(text: str, possible: bool) -> Extent | None:
    return look_up("you", text, possible) or _adverbs_dropped("you", text, possible)


def _adverbs_dropped(frame: str, text: str, possible: bool) -> Extent | None:
    bare = re.sub(
        r" (?:by (?:people|humans|most people|you|a person|hand)|easily|for fun|in general)$",
        "",
        text,
    )
    bare = re.sub(r"^(?:easily|commonly|able to|usually) ", "", bare)
    return look_up(frame, bare, possible) if bare != text else None


def _has(text: str, possible: bool) -> Extent | None:
    def read(part: str) -> Extent | None:
        part = re.sub(r"^(?:a lot of|lots of|any|some|a|an|the|at least one) ", "", part)
        found = look_up("has", part, possible)
        if found is not None:
            return found
        noun = part.split(" ")[-1]
        head = look_up("has", noun, True) if noun != part else None
        return None if head is None else Extent(frozenset(), head.no)

    text = re.sub(
        r" (?:on|in|inside|to|attached to|around|at the end of|of|within|at) (?:it|them)$| attached$",
        "",
        text,
    )
    return _composed(text, read)


def _act(text: str, possible: bool) -> Extent | None:
    """What the object itself does or has: `have wheels`, `fly`, `need electricity`."""
    return _composed(text, lambda part: _act_one(part, possible))


_ACTS = [
    (re.compile(pattern), reader)
    for pattern, reader in (
        (r"^(?:have|contain|include|come with|feature|possess|use|require|need|consist of|has|hold|got|carry) (?P<rest>.+)$", _has),
        (r"^(?:live|grow|go|belong|exist|sit|stay|appear|occur|reside|come|stand|lie) (?P<rest>(?:in|on|at|near|inside|under|around|from|outside|next|by) .+)$", _placed),
        (r"^(?:have|contain|use|consist of|involve) (?P<rest>.+)$", lambda text, possible: _framed("made", text, possible)),
        (r"^(?:help|serve|allow|enable|let|exist|function|work|serve a purpose)(?: (?:you|people|us|one|someone|humans))? ?(?:to|with|in|as|for|by)? (?P<rest>.+)$", lambda text, possible: _framed("use", text, possible)),
        (r"^(?:belong|relate|pertain|have to do|have something to do|have anything to do|get used|involve|fall)(?: (?:to|with|in|into|for|under))?(?: the)?(?: category| group| family| class)?(?: of)? (?P<rest>.+?)(?: category| family)?$", lambda text, possible: _framed("use", text, possible) or look_up("noun", text, possible) or _placed(f"in {text}", possible)),
        (r"^(?:get|come|look|feel|appear|taste|seem) (?P<rest>.+)$", lambda text, possible: _be(text, possible)),
    )
]  # fmt: skip


def _act_one(text: str, possible: bool) -> Extent | None:
    text = re.sub(
        r"^(?:be able to|happen to|tend to|seem to|have the ability to|get to) ", "", text
    )
    found = comparison(text)
    found = found if found is not None else look_up("do", text, possible)
    for pattern, reader in _ACTS:
        match = pattern.match(text) if found is None else None
        if match:
            found = reader(match["rest"], possible)
    return found if found is not None else _adverbs_dropped("do", text, possible)


_YOU = [
    (re.compile(pattern), frame)
    for pattern, frame in (
        (r"^(?:use|need|want|utilize|have|require|play|employ) (?:it|them|one|this|this object)? ?(?:to|for|as|in order to|when|while|in|at|during|with|on) (?:be )?(?P<rest>.+)$", "use"),
        (r"^(?:wear|put|use|place) (?:it|them)? ?(?:on|around|over|in|about|at|above|under|below|across) (?P<rest>.+)$", "worn"),
        (r"^(?:find|see|keep|store|use|place|put|have|encounter|buy|get|purchase|locate|need|own|expect) (?:it|them|one)? ?(?:to find it )?(?P<rest>(?:in|at|on|inside|outside|near|around|under|by|within|next to|from) .+|indoors|outdoors|outside|inside)$", "at"),
        (r"^(?P<rest>\w+(?: \w+)*) (?:with|using) (?:it|them)$", "use"),
        (r"^make (?P<rest>.+ (?:with|from|out of) it)$", "use"),
    )
]  # fmt: skip


def _you(text: str, possible: bool) -> Extent | None:
    return _composed(text, lambda part: _you_one(part, possible))


def _you_one(text: str, possible: bool) -> Extent | None:
    text = re.sub(
        r"^(?:usually|need to|have to|able to|want to|get to|be able to|like to) (?!be)", "", text
    )
    found = look_up("you", text, possible)
    fits = re.match(r"^(?:fit|put|carry|hold|place|keep) (?:it|one|them) (in .+|inside .+)$", text)
    if found is None and fits:
        found = comparison(f"fit {fits[1]}")
    for pattern, frame in _YOU:
        match = pattern.match(text) if found is None else None
        if match and frame == "at":
            found = _placed(match["rest"], possible) or look_up("at", match["rest"], possible)
        elif match:
            found = _framed(frame, match["rest"], possible)
    if found is None:
        found = _adverbs_dropped("you", text, possible)
    consider = re.match(
        r"^(?:consider|call|describe|classify|say) (?:it|them) (?:is |as |to be )?(.+)$", text
    )
    return _be(consider[1], possible) if consider and found is None else found


# -- noun phrases ----------------------------------------------------------------------------------


def _noun_phrase(text: str, possible: bool) -> Extent | None:
    match = _RELATIVE.match(text)
    if match:
        head, tail = _head(match["head"], possible), _relative(match, possible)
        if tail is not None and head is not None:
            return head & tail
    return _modified(text, possible)


def _head(text: str, possible: bool) -> Extent | None:
    words = [word for word in text.split() if word not in {"a", "an", "the", "some"}]
    if len(words) <= 1 and (not words or words[0] in _GENERIC):
        return extent(frozenset(item.name for item in objects()))
    return _be_table(text, possible) or named(text) or _modified(text, possible)


def _relative(match: re.Match[str], possible: bool) -> Extent | None:
    if match["rest"]:
        verb = match["verb"]
        rest = match["rest"]
        person = re.match(
            rf"^{_PEOPLE} (?:can |could |would |might |usually |will |do )?(.+)$", rest
        )
        if person and not verb:
            possible = possible or bool(re.search(r" (?:can|could) ", rest))
            return _you(_with_object(person[1]), possible)
        if verb in {"is", "are", "was"} or rest.startswith("be "):
            return _be(rest.removeprefix("be "), possible or verb in _MODAL)
        if verb in {"has", "have"}:
            return _has(rest, possible)
        if re.match(r"^(?:has|have) ", rest):
            return _has(rest.split(" ", 1)[1], possible)
        return _act(
            re.sub(r"^(\w+?)(?:es|s) ", r"\1 ", rest + " ").strip(), possible or verb in _MODAL
        )
    if match["act"]:
        act = re.sub(r"^(?:can|could|would|might|usually|will|do|may) ", "", match["act"])
        return _you(_with_object(act), possible or match["act"] != act)
    if match["part"]:
        return _has(match["part"], possible)
    return _be_one(f"{match['participle']} {match['complement']}", possible)


def _with_object(act: str) -> str:
    """`wear on your head` -> `wear it on your head`, as in a main clause."""
    return re.sub(
        r"^(\w+) (?=(?:to|for|on|in|at|with|as|when|around|inside|outside)\b)", r"\1 it ", act
    )


def _modified(text: str, possible: bool) -> Extent | None:
    words = [word for word in text.split() if word not in {"a", "an", "the", "some", "of"}]
    for cut in range(len(words)):
        noun = " ".join(words[cut:])
        known = (
            extent(frozenset(i.name for i in objects()))
            if noun in _GENERIC
            else _known_noun(noun, possible)
        )
        if known is not None:
            for word in words[:cut]:
                known = known & (_modifier(word, possible) or UNKNOWN)
            return known if cut or noun not in _GENERIC else None
    return None


def _known_noun(noun: str, possible: bool) -> Extent | None:
    found = look_up("noun", noun, possible)
    return found if found is not None else named(noun)


def _modifier(word: str, possible: bool) -> Extent | None:
    for frame in ("is", "made", "at", "use", "you", "by", "noun"):
        found = look_up(frame, word, possible)
        if found is not None:
            return found
    return None


def _others(plain: str) -> Extent | None:
    """Questions about others: `do children play with it`, `would a carpenter use it`."""
    said = re.sub(r"^(?:do|does|would|can|could|might|will|did|is|are) ", "", plain)
    whole = look_up(
        "do", re.sub(r"(?: (?:in|on|with|from|at))? (?:it|there|them)$", "", said), True
    )
    if whole is not None:
        return whole
    match = re.match(
        r"^(?:do|does|would|can|could|might|will|did) (?P<who>.+?) (?:often |usually |commonly |typically |normally |ever |sometimes )?(?P<act>(?:use|wear|play|eat|need|like|have|own|live|enjoy|drive|carry|ride|grow|keep|buy)\b.*)$",
        plain,
    )
    if match:
        users = _composed(match["who"], lambda part: look_up("by", part, True))
        act = (
            _you(match["act"], True)
            if match["act"] not in {"use it", "like it", "need it", "enjoy it", "own it", "have it"}
            else None
        )
        if users is not None and match["act"].startswith(
            ("use", "need", "play with", "like", "own", "enjoy", "wear")
        ):
            return users if act is None else users & act
    part = re.match(
        r"^(?:is|are) (?:its|the|most of it|it s) (?:color|colour|shape|surface|outside|exterior|skin|size|texture|main color|primary color|inside) (.+)$",
        plain,
    )
    return _be(part[1], False) if part else None
