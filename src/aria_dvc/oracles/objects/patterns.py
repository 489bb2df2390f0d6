"""Patterns of the claims that questions make about the hidden object, in plain words."""

from __future__ import annotations

import re

from aria_dvc.oracles.objects.words import key

PEOPLE = (
    r"(?:you|we|i|one|people|someone|somebody|most people|many people|some people|humans?|a human|"
    r"a person|a normal person|(?:the|an) average person|persons?|everyone|everybody|anyone|"
    r"most humans|most households?)"
)
MOST = (
    r"(?:(?:almost |nearly )?(?:everyone|everybody)|(?:most|almost all|nearly all) "
    r"(?:people|humans|households?|homes|families)|(?:the|an) average person|every household)"
)
OWNED_BY_MOST = re.compile(
    rf"{MOST} (?:own|have|possess) (?:it|one)|it (?:being |be )?owned by {MOST}"
)
"""Subject and claim, or claim and owner: what nearly all have is less than what one can have."""
FORM = re.compile(rf"^(?P<aux>\w+) (?P<subject>it|there|{PEOPLE})(?= |$) ?(?P<rest>.*)$")
ONESELF = re.compile(r"^\w+ (?:you|we|i|one|someone|somebody|anyone|anybody|people|a person) ")
"""Questions of what one does with it; the verb is not the object's."""
SOFT = re.compile(
    r"\b(?:usually|typically|generally|commonly|normally|mostly|mainly|primarily|often|frequently|"
    r"considered(?: to be)?|classified as|categorized as|regarded as|known as|thought of as|"
    r"(?:a |an )?(?:kind|type|sort|form|piece|pair|variety) of|really|actually|perhaps|maybe|"
    r"probably|possibly|most commonly|also|just|simply|traditionally|in general|generally speaking|"
    r"most of the time|most often|in most cases|on average|for the most part|by any chance|at all|"
    r"basically|largely|naturally|regularly|itself|likely|purposely|specifically|originally|"
    r"currently|very|quite|rather|pretty|fairly|relatively|particularly|especially|extremely|"
    r"visibly)\b"
)
"""Words that soften a claim without changing what it is about."""
CHIEFLY = re.compile(
    r"\b(?:mostly|mainly|primarily|largely|predominantly|more(?: commonly| often)?|usually"
    r"|typically|generally|commonly|normally|traditionally|most commonly|most often)"
    r"(?=(?: \w+){0,2} (?:by|for) (?:wom[ae]n|girls|females|ladies|m[ae]n|boys|males)\b)"
)
"""What is worn by men need not be worn by them more than by women."""
POSSIBLE = re.compile(r"\b(?:sometimes|ever|occasionally|potentially|in some cases|at times)\b")
STRICT = re.compile(r"\b(?:always|only|exclusively|entirely|solely|completely|purely|never)\b")
MODAL = frozenset({"can", "could", "might", "may"})
BE = frozenset({"is", "are", "was", "were"})
CALLED = re.compile(r"^(?:consider|call|describe|classify|say) it (?:is |as |to be )?(.+)$")
PREPOSITION = (
    r"(?:in|at|on|inside|outside|near|around|under|by|within|next to|outside of|inside of|from|"
    r"beside|throughout|onto|into)"
)
PLACED = re.compile(
    rf"^(?:found|located|kept|stored|seen|placed|used|put|encountered|sold|bought|available|"
    rf"present|displayed|purchased|living|lives?)?(?: to be found)? ?"
    rf"(?P<prep>{PREPOSITION}) (?P<place>.+)$"
)
EACH_PLACE = re.compile(
    r"^(?:most|many|every|almost every|nearly every|each|someones?|somebodys|peoples?|typical|"
    r"average|normal|nearly all|all|lots of) "
)
RELATIVE = re.compile(
    r"^(?P<head>.+?) (?:(?:that|which|who)"
    r"(?: (?P<verb>is|are|was|has|have|can|could|does|do|would|might|will))? (?P<rest>.+)|"
    r"(?P<people>(?:you|people|we|someone|most people|many people|one|i|humans|everyone|a person))"
    r" (?P<act>.+)|with (?P<part>.+)|"
    r"(?P<participle>used|made|found|worn|played|eaten|kept|designed|meant|intended|powered|grown|"
    r"located|associated|driven|related|owned|sold|held|capable|able|for|to|in|on|from|native|"
    r"bigger|larger|smaller|taller|longer|shorter|heavier|lighter|cheaper) (?P<complement>.+))$"
)
PARTICIPLES = frozenset(
    "used worn played eaten kept held carried made found seen sold grown driven owned".split()
)
"""No things that could have a part: `used with your hands` has no hands."""
ALTERNATIVE = re.compile(
    r",? or (?:is|are|does|do|can|an?|it|the|some|something|rather|more|instead|not|just)\b"
)
"""What follows makes it a choice between two answers rather than one claim."""
TRAILING = re.compile(
    r" (?:by (?:people|humans|most people|you|a person|hand|players|athletes)|easily|for fun"
    r"|in general|at once|at a time|at night|while playing|when playing|in the ground|to play it"
    r"|when using it|to use it|regularly|during the day|in (?:your )?(?:daily|everyday) life)$"
)
"""Ends of a claim that may be left away when the table does not know the whole."""
LEADING = re.compile(r"^(?:easily|commonly|able to|usually) ")
ATTACHED = re.compile(
    r" (?:on|in|inside|to|attached to|around|at the end of|of|within|at) it$| attached$"
)
SOME = re.compile(r"^(?:a lot of|lots of|any|some|a|an|the|at least one) ")
VAGUE_END = re.compile(
    r" (?:things?|objects?|items?|something|stuff|purposes?|activit(?:y|ies)|tasks?)$"
)


def _compiled(pairs: tuple[tuple[str, str], ...]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern), frame) for pattern, frame in pairs]


DESCRIBED = _compiled(
    (
        (
            r"^(?:made|composed|constructed|built|crafted|manufactured|produced|comprised)"
            r"(?: up)?(?: out)? (?:of|from|with|using|in|by) (?P<rest>.+)$",
            "made",
        ),
        (
            r"^(?:worn|put|placed|used|carried)(?: by (?:men|women|people))? "
            r"(?:on|around|over|in|about|at|across|round) (?P<rest>.+)$",
            "worn",
        ),
        (
            r"^(?:used|useful|utilized|good|needed|necessary|meant|intended|designed|suitable|"
            r"suited|helpful|made|required|essential|important|employed|supposed|handy|ideal|great|"
            r"for|played|related|associated|connected|involved|linked|tied)"
            r"(?: by people| by humans| by you)? ?(?:as|for|to|in|with|when|while|during|at)? ?"
            r"(?:be used (?:for|in|to) |help (?:you |people |with )?|do |perform )?(?P<rest>.+)$",
            "use",
        ),
        (r"^(?:turned|made|processed|transformed|converted|baked) into (?P<rest>.+)$", "into"),
        (r"^(?:for|to) (?P<rest>.+)$", "use"),
        (r"^for (?P<rest>.+)$", "worn"),
        (
            r"^(?:used|played|worn|operated|eaten|owned|enjoyed|handled|needed|liked|played with|"
            r"popular|made|meant|intended|designed|driven|carried)? ?(?:for use )?"
            r"(?:by|with|among|for) (?P<rest>.+)$",
            "by",
        ),
        (r"^(?:able to|capable of|known to|known for) (?P<rest>.+)$", "do"),
        (r"^(?:\w+ )?enough to (?P<rest>.+)$", "do"),
        (r"^(?:\w+ )?enough (?:for (?:you|one|someone|a person) )?to (?P<rest>.+)$", "you"),
        (
            r"^(?P<rest>.+?)(?: in)? (?:color|colou?red|shape|shaped|in appearance|in nature|"
            r"in texture|to the touch|in taste|in size|sized|size)$",
            "is",
        ),
        (r"^(?:the |a )?(?:color|colou?r|shape) (?P<rest>.+)$", "is"),
    )
)
"""`is it ...`: pattern and the frame that `rest` is read in, tried in order."""
DONE_WITH = _compiled(
    (
        (
            r"^(?:use|need|want|utilize|have|require|play|employ) (?:it|one)? ?"
            r"(?:to|for|as|in order to|when|while|in|at|during|with|on) (?:be )?(?P<rest>.+)$",
            "use",
        ),
        (
            r"^(?:wear|put|use|place) (?:it)? ?(?:on|around|over|in|about|at|across) "
            r"(?P<rest>.+)$",
            "worn",
        ),
        (
            r"^(?:find|see|keep|store|use|place|put|have|encounter|buy|get|purchase|locate|need|"
            r"own|expect) (?:it|one)? ?(?:to find it )?(?P<rest>(?:in|at|on|inside|outside|near|"
            r"around|under|by|within|next to|from) .+|indoors|outdoors|outside|inside)$",
            "at",
        ),
        (r"^(?P<rest>\w+(?: \w+)*) (?:with|using) it$", "use"),
        (r"^(?P<rest>need .+) to (?:use|play|operate|enjoy) it$", "do"),
        (r"^make (?P<rest>.+ (?:with|from|out of) it)$", "use"),
    )
)
"""`do you ...`: pattern and the frame that `rest` is read in."""
ACTS = _compiled(
    (
        (
            r"^(?:have|contain|include|come with|feature|possess|use|require|need|consist of|has|"
            r"hold|got|carry) (?P<rest>.+)$",
            "has",
        ),
        (
            r"^(?:live|grow|go|belong|exist|sit|stay|appear|occur|reside|come|stand|lie) "
            r"(?P<rest>(?:in|on|at|near|inside|under|around|from|outside|next|by) .+)$",
            "at",
        ),
        (r"^(?:have|contain|use|consist of|involve) (?P<rest>.+)$", "made"),
        (
            r"^(?:help|serve|allow|enable|let|exist|function|work|serve a purpose)"
            r"(?: (?:you|people|us|one|someone|humans))? ?(?:to|with|in|as|for|by)? (?P<rest>.+)$",
            "use",
        ),
        (
            r"^(?:belong|relate|pertain|have to do|have something to do|have anything to do|"
            r"get used|involve|fall)(?: (?:to|with|in|into|for|under))?(?: the)?"
            r"(?: category| group| family| class)?(?: of)? (?P<rest>.+?)(?: category| family)?$",
            "about",
        ),
        (r"^(?:get|come|look|feel|appear|taste|seem) (?P<rest>.+)$", "be"),
    )
)
"""`does it ...`: pattern and the frame that `rest` is read in."""
USED_BY = re.compile(
    r"^(?P<head>.+?) (?:that |which )?(?P<who>(?:an? )?\w+) (?:would |might |could |can |often )?"
    r"(?:use|uses)$"
)
OTHERS_ACT = re.compile(
    r"^(?:do|does|would|can|could|might|will|did) (?P<who>.+?) "
    r"(?:often |usually |commonly |typically |normally |ever |sometimes )?"
    r"(?P<act>(?:use|wear|play|eat|need|like|have|own|live|enjoy|drive|carry|ride|grow|keep|buy)"
    r"\b.*)$"
)
ANYBODY = frozenset(map(key, ("child", "children", "kid", "small child", "adult")))
DEED_BY = re.compile(r"^(?P<deed>worn|eaten|driven|ridden|read) by (?P<who>.+)$")
PLAIN_USE = frozenset({"use it", "like it", "need it", "enjoy it", "own it", "have it"})
PART_OF_IT = re.compile(
    r"^(?:is|are) (?:its|the|most of it) (?:colou?r of it|color|colour|shape|surface|outside|"
    r"exterior|skin|size|texture|main color|primary color|inside) (.+)$"
)


def base_form(act: str) -> str:
    """`grows on trees` -> `grow on trees`."""
    return re.sub(r"^(?!has )(\w+?)(?:(?<=sh|ch|ss)es|s) ", r"\1 ", f"{act} ").strip()


def with_object(act: str) -> str:
    """`wear on your head` -> `wear it on your head`, as in a main clause."""
    following = r"to|for|on|in|at|with|as|when|around|inside|outside"
    return re.sub(rf"^(\w+) (?=(?:{following})\b)", r"\1 it ", act)
