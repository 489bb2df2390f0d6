"""How acceptances, rejections and exits are worded, and what takes them back: the patterns.

They match the plain, marked segments of `parsing` (lower case, no contractions, "<3>" for the
fourth amount of the text); `decisions` says which of them decides what.
"""

from __future__ import annotations

import re

from aria_dvc.games.doubts import CONDITION, NEGATION, OBJECTION, PROTEST

DOUBT = re.compile(rf"{NEGATION.pattern}|\b(?:doubt|doubts|hardly)\b")
SPEECH = re.compile(
    r"\b(?:say|says|said|saying|repeat|repeats|tell|tells|told|write|writes|wrote|type|quotation)\b"
)
RESERVATION = re.compile(
    r"\b(?:but|however|although|though|only|yet|instead|or|for now"
    r"|minus|plus|except|discount|extra|additional)\b"
)
CONCESSION = re.compile(
    r",? (?:although|though|even though|even if|albeit) (?:it|that|this|your offer|the price) is"
    r" (?:a (?:bit|little) |slightly |somewhat |much |far |still )*"
    r"(?:(?:less|more|lower|higher|worse) than (?:what )?i (?:had |have |would have )?"
    r"(?:wanted|hoped|expected|liked|wished)(?: for| to (?:pay|get|spend|receive))?"
    r"|not (?:quite |exactly )?(?:what i (?:wanted|hoped for|expected)|ideal|perfect|great))"
    r"(?=,|$)"
)
"""A sigh after an acceptance that asks for nothing and names nothing."""
ASKS = re.compile(
    r"\b(?:want|need|demand|require|expect|insist|ask|asking|propose|(?<!\byour )offer|suggest"
    r"|should|must|give|pay|add|raise|lower|increase|improve|accept|agree)\b"
)
"""Of a sentence before an acceptance: it asks for something, or decides."""
GRUMBLE = re.compile(
    r"^(?:well,? )?i (?:am not (?:\w+ )?(?:happy|thrilled|satisfied|pleased|delighted)"
    r"|do not (?:\w+ )?(?:love|like))(?: (?:about|with))?(?: (?:it|this|that))?,? but (?=i\b)"
)
"""The same before an acceptance."""
NO_OBJECTION = re.compile(
    r"(?:^|, )(?:why not|there is no (?:use|point|sense) in \w+(?: \w+){0,8}"
    r"|no more (?:haggling|arguing)(?: from me)?"
    r"|(?:(?:i have|there is) )?no (?:problems?|worries|doubt|rush|regrets"
    r"|hard feelings|objections?|complaints?))(?=,|$)"
)
"""Denials that deny nothing of an offer."""
_SETTLE = r"(?:go ahead|proceed|go|close|finalize|finalise|finish|settle) (?:with|at|on)"
GOES_ON = re.compile(
    r"(?<!\byou )\b(?:let us (?!(?:do|close|finish|end|conclude|finalize|seal) (?:it|this|that"
    r"|the deal)\b|trade\b|shake\b|move on\b"
    rf"|{_SETTLE} (?:your|that|this)\b)"
    r"|propose|suggest|continue|(?<!your willingness to )negotiate)\b"
)
ALTERNATIVE = re.compile(r"\b(?:but|however|although|though|yet|or|rather than)\b")

_LIGHT = "ok|okay|k|yes|yeah|yep|fine|alright|all right|then|so|and|well"
_PRAISE = "sure|great|good|very well|thanks|thank you|perfect|excellent|sounds good|fair enough"
_FILLER = rf"(?:(?:{_LIGHT}|{_PRAISE}|alice|bob|hello|hi) )*"
_CLOSING = r"(?:,? (?:alice|bob|then|thanks|thank you))*"
_PARTLY = (
    r"only|hardly|barely|scarcely|rarely|nearly|supposedly|seemingly|apparently|allegedly|ostensibly"
    r"|possibly|probably|potentially|hopefully|conditionally|provisionally|tentatively|temporarily"
    r"|partially|partly|mostly|largely|mainly|roughly|slightly|virtually|practically|basically"
    r"|essentially|technically|theoretically|hypothetically|ideally|usually|normally|generally"
    r"|eventually|jokingly|ironically|sarcastically|falsely"
)
_HEDGES = (
    rf"{_PARTLY}|initially|originally|previously|formerly|recently|differently|separately|equally"
    r"|evenly|daily|weekly|monthly|yearly|reply|apply|rely|early|seriously|personally|slowly|badly"
    r"|poorly|lightly"
)
"""Words in -ly that leave it open whether, when or how far something is accepted."""
LIMIT = re.compile(
    rf"(?:^|, | - )(?:(?:well|and|or|just|at least) )*(?:{_PARTLY}|almost|more or less|not quite"
    r"|(?:maybe|perhaps|or)(?: not)?"
    r"|(?:kind|sort) of|kinda|sorta|for the most part|up to a (?:\w+ )?point"
    r"|in (?:parts?|principle|theory|spirit|(?:a|one|some) (?:way|sense)s?)"
    r"|to (?:an?|some) (?:\w+ )?(?:degree|extent|point)"
    r"|later|soon|tomorrow|(?:some|one) ?day|next (?:round|time|turn)"
    r"|for (?:you|him|her|them|alice|bob|john|others|someone else)(?=[^,]*$))"
    r"(?: (?:at least|only|anyway|alone|though))*(?=,| -|$)"
)
"""Set apart beside a decision: how far it goes, when, or for whom alone. "For you, I accept." is a
favour, "I accept, for you." no decision."""
_ADVERB = rf"(?!(?:{_HEDGES})\b)\w+ly"
_READY = (
    r"(?:(?:hereby|will|do|now|must|have to|shall|am (?:happy|glad|pleased) to"
    rf"|therefore|also|just|to|am going to|{_ADVERB}) )*"
)
_OTHER = (
    r"next|future|coming|better|best|right|higher|highest|lower|lowest|equal|even|half|another"
    r"|bigger|biggest|larger|largest|greater|smaller|smallest|fairer|remaining"
)
"""Of an offer: perhaps not the one on the table. "The fair split" is not, "your fair split" is."""
_RATIO = r"<\d+>(?: ?(?:/|-|:|to) ?<\d+>)?"
_ADJECTIVES = rf"(?: (?!(?:{_OTHER})\b)(?:\w+|{_RATIO})){{0,2}}"
_WHICH = rf"(?:(?:your|this|that|these|those|bob's|alice's)|the(?! (?:\w+ )?fair\b)){_ADJECTIVES}"
_NOUN = (
    r"(?:(?:counter)?(?:offer|proposal|bid)|counter|(?:asking )?price|split|deal|term|division"
    r"|distribution|allocation"
    r"|arrangement|agreement|settlement|compromise|share|suggestion|bargain)s?"
)
_OFFER = (
    rf"(?:{_WHICH} (?:{_NOUN}|ask)"
    r"(?: of (?:alice|bob)| (?:that )?you (?:have )?(?:proposed|offered|suggested|made(?: me)?"
    r"|ask(?:ed)?(?: for)?|are asking(?: for)?))?"
    r"|(?:your|the|this|that) (?:amount|number|figure))"
)
_WHAT = r"what you (?:are (?:asking|offering)|ask|asked|offer|offered|propose|proposed)(?: for)?"
_THING = rf"(?:it|this|that|these|those|{_OFFER}|{_WHAT})"
RIVALS = ("your", "alice's", "bob's")
EARLIER = re.compile(
    r"\b(?P<whose>your|the|this|that|those|bob's|alice's) (?:\w+ )?"
    r"(?:first|second|third|nth|original|initial|opening|starting"
    rf"|previous|earlier|prior|former|old|other) (?:\w+ )?{_NOUN}\b"
)
_NAMED = (
    r"(?:(?= .*<\d+>)(?: (?:<\d+>|[/-]|of it|of|at|for|with|to|on|and|a|the|your|total|price|share"
    r"|split|points|product|item|goods|(?:for|to) (?:me|myself|you|alice|bob)"
    r"|from (?:you|alice|bob)"
    r"|(?:that )?(?:i|you|alice|bob) (?:will )?(?:gets?|receives?|takes?|keeps?|have|has)))+)?"
)
"""The amounts of an offer, in words that can say nothing else."""
_AS_IS = r"(?: as (?:is|it is|it stands|(?:you )?(?:proposed|offered|suggested|stated|described)))?"
_MANNER = (
    rf"(?: (?:now|right away|{_ADVERB}|too|with (?:pleasure|thanks)|and (?:thanks|thank you)))?"
)
_ONWARD = (
    r"(?: and (?:i )?look(?:ing)? forward to (?:(?:doing business|working|dealing|trading) with you"
    r"(?: again)?|receiving (?:it|the product|the item)|the delivery)"
    r"| and (?:(?:move forward|proceed|go ahead)(?: with (?:it|this|the \w+))?"
    r"|(?:complete|finalize|finalise|close|seal) (?:it|this|the \w+)))?"
)
_TO_THING = rf"(?: (?:to |with )?{_THING})?"
I_ACCEPT = re.compile(rf"\b(?:i|we) {_READY}accept\b")
ACCEPT = re.compile(
    rf"{_FILLER}(?:i|we) (?:{_READY}(?:accept|agree|consent)|am (?:accepting|agree|agreeing)"
    r"|(?:(?:have )?(?:decided|chosen)|choose|decide) to accept"
    rf"|{_READY}agree to (?:pay|buy|sell)(?: it)?(?:(?=.* <\d+>)| (?:at|for) {_OFFER}))"
    rf"{_TO_THING}:?{_NAMED}{_AS_IS}"
    rf"{_MANNER}{_ONWARD}{_CLOSING}"
)
_POLITE = (
    r"(?:thanks|thank you|cheers|so much|very much|a lot|you too|welcome|alice|bob|my friend"
    r"|partner|i|we|us|me|you|it|this|that|is|are|am|was|has been|have|had|a|an|the|your|our|both"
    r"|to|with|for|on|of|at|in|and|so|then|now|here|yes|ok|okay|fine|sure|alright|all right"
    rf"|{_NOUN}|agreed|agree|accept|accepted|done|settled|trade|business|game|doing|do|dealing"
    r"|trading|negotiating|working|let us|close|finish|end|finalize|seal|shake|hands|move on"
    r"|looking forward|well|played|negotiated|goodbye|bye|best (?:regards|wishes|for both)|luck"
    r"|win|again|pleasure|glad|happy|pleased|good|great|nice|excellent|perfect|wonderful|fantastic"
    r"|fair|reasonable|acceptable|sensible|equitable|generous|better than nothing|sides|parties"
    r"|everyone|product|item|goods|outcome|works|sounds|seems|looks|will|takes?|keeps?|gets?"
    r"|receives?|day)"
)
"""Words of thanks, praise and closing, of which no sentence can object or ask for more."""
_SHORT = rf"(?:(?:{_LIGHT})(?: (?:alice|bob))?,? |(?:sure )?(?:{_PRAISE}), )*"
_AGREED = (
    r"(?:accepted|agreed|sold|done deal|offer accepted|we have an agreement|we are agreed|you win"
    r"|you (?:have )?got (?:a|the|yourself a) deal|you (?:have )?got yourself a buyer"
    r"|(?:(?:it|that) is a |(?:you|we) have (?:got )?(?:yourself )?(?:a|the) )?deal"
    r"|(?:your|the|this|that) (?:offer|proposal|price) is accepted)"
)
_COURTESIES = rf"{_CLOSING}(?:, {_POLITE}(?: {_POLITE})*(?=,|$))*"
SHORT_ACCEPT = re.compile(rf"{_SHORT}{_AGREED}:?{_NAMED}{_COURTESIES}")
"""Said of a whole sentence only: "a great deal of money" and "come on, deal" accept nothing."""
ONLY_ACCEPT = re.compile(
    rf"{_SHORT}(?:accept|sounds good(?: to me)?|i would like to accept{_TO_THING}|yes|yeah|yep"
    r"|fine|sure|fair enough|i am in|i concede|as you (?:propose|offer|wish)"
    r"|(?:your|that) (?:(?:last|latest|current|new) )?(?:offer|proposal|price|bid|deal) it is"
    r"|let us (?:do|close|finalize|finalise|seal|conclude) (?:it|this|that|the deal))"
    rf"{_CLOSING}"
)
"""Said of the whole text only: after another sentence it may be a plea to the other side."""
_WILLING = (
    r"(?:(?:will|can|shall|am (?:happy|glad|willing|ready|prepared|content|okay|ok) to|am going to"
    r"|gladly|happily|also) )"
)
_SUBJECT = rf"(?:it|that|this|{_OFFER})"
_FOR_ME = r"(?: (?:for|by|with|to) me)"
_CONTENT = r"(?:fine|ok|okay|acceptable|agreeable)"
APPROVE = re.compile(
    rf"{_FILLER}(?:(?:{_SUBJECT}|<\d+>) is better than nothing and )?"
    rf"(?:(?:i|we) {_WILLING}+(?:accept|agree (?:to|with)|live with|work with|go with"
    rf"|go along with) (?:{_THING}|{_OFFER}{_NAMED})"
    rf"|(?:i|we) (?!can\b){_WILLING}+take (?:{_THING}|{_OFFER}{_NAMED})"
    rf"|(?:{_SUBJECT} )?works?{_FOR_ME}|(?:{_SUBJECT} (?:is|are) )?(?:fine|ok|okay) (?:by|with) me"
    rf"|{_SUBJECT} (?:works|is {_CONTENT}{_FOR_ME}?)"
    rf"|i am (?:fine|ok|okay|good|happy|content|satisfied|comfortable) with {_THING}"
    rf"|(?:i|we) take {_OFFER}"
    r"|i am taking (?:your|alice's|bob's) (?:offer|deal|price|proposal)(?: of <\d+>)?"
    r"|i will (?:take|go with) your <\d+>(?: offer)?"
    rf"|consider (?:it|{_OFFER}) (?:accepted|agreed|done|settled)|consider it sold"
    r"|i will pay (?:the|your) (?:full )?(?:asking )?price"
    rf"|i will (?:buy|purchase|take|have) it for {_WHAT}"
    rf"|let us {_SETTLE} {_OFFER}"
    r"|you have my (?:agreement|acceptance|word)"
    rf"(?: (?:to|on) {_OFFER})?"
    r"|i will (?:pay|take|accept) what you"
    r" (?:are asking|ask|want|asked|offer|offered|propose|proposed)"
    r"|i will (?:go ahead and )?(?:buy|purchase|sell|take) it (?:for|at) (?:your|that|this|the)"
    r" (?:asking )?price)(?: too)?"
    rf"{_MANNER}{_ONWARD}{_CLOSING}"
)
"""Acceptances without the word: "I'll take it", "that works for me"."""
_DONE = r"(?<!\bwell )(?<!\bso )done"
TRADE = re.compile(rf"{_SHORT}(?:i will (?:buy|sell) it|{_DONE}){_COURTESIES}")
"""An acceptance where no amount is named at all."""
TAKES_STANDING = re.compile(
    r"\btake (?:(?:it )?(?:for|at)|the|your|that) <\d+>"
    r"|\b(?:fine|ok|okay|good|happy|content) with <\d+>"
)
"""An amount taken as if it had been offered: an acceptance where it is that of the offer."""
ONLY_TAKES = re.compile(
    rf"{_SHORT}(?:i (?:will |can )?(?:pay|settle for|(?:buy|sell) it (?:for|at)) (?:the|your|that)"
    r" <\d+>|you (?:can|may) (?:have|keep|take) (?:the |your |that )?<\d+>"
    rf"|<\d+> for you (?:works|is (?:fine|ok|okay|good))){_CLOSING}"
)
"""The same, where nothing else is said."""
_GOOD = r"(?:fine|ok|okay|good|great|perfect|acceptable|agreeable)"
APPROVED = re.compile(
    rf"{_FILLER}(?:(?:i think|i guess|a|an|the|your) )*{_RATIO}(?: split| division)?(?: for me)?"
    rf" (?:it is|works(?: (?:fine|well|great))?{_FOR_ME}?"
    rf"|(?:is|sounds|seems|looks) (?:(?:very|quite|perfectly) )?{_GOOD}{_FOR_ME}?)"
    rf"(?: too)?{_MANNER}{_CLOSING}"
    rf"|{_FILLER}i would be (?:willing|happy|ready|prepared|glad|content|fine|okay|ok)"
    rf" to (?:accept|agree to) {_RATIO}{_NAMED}{_CLOSING}"
)
"""The same in so many words: "$130 sounds good"."""
ASSENT = re.compile(
    r"(?:(?:yes|yeah|yep|ok|okay|sure|fine|alright|all right|very well|fair enough)\b(?! not\b)"
    r"|done(?=,|:| <| -|$))"
)
"""Opens a sentence that accepts where what it names is the offer on the table: "Yes, 60/40."."""
ONLY_ASSENT = re.compile(rf"{_SHORT}{ASSENT.pattern}{_CLOSING}")
_REFUSAL = r"(?:(?:can|could|do|will|would|must|am) not (?:\w+ )?(?:accept|agree|take))"
_SAID_NO = (
    r"(?:i )?(?:am (?:\w+ )?unable to|will not be able to) (?:accept|agree to|take)"
    rf" (?:{_THING}|<\d+>)"
    rf"|i (?:have )?(?:decided|chosen) to (?:reject|decline|refuse|turn down) {_THING}"
    rf"|i (?:have )?(?:decided|chosen) to turn {_OFFER} down|i am turning (?:it|{_OFFER}) down"
    rf"|i am (?:rejecting|not accepting|not taking) (?:it|that|this|{_OFFER})"
    r"|i (?:will|can|could) not (?:pay (?:that|this|that much|<\d+>)|do <\d+>)"
    r"|i am (?:\w+ )?unable to pay (?:that|this|that much|<\d+>)"
    r"|i refuse to pay (?:that|this|that much|<\d+>)"
    rf"|i do not find {_OFFER} (?:acceptable|fair|reasonable|equitable)"
)
"""Refusals of what stands and of nothing else."""
REJECT = re.compile(
    rf"{_FILLER}(?:i am (?:afraid|sorry) (?:that )?)?"
    rf"(?:(?:i|we) {_READY}(?:reject|decline|refuse|turn down|{_REFUSAL}){_TO_THING}"
    r"(?: (?:of|at|for|with|and|as|because|since|now|right away|gladly|happily|alice|bob)\b.*"
    r"| <\d+>.*)?"
    r"|no|nope|not interested|no way|no deal|no thanks|no thank you|rejected|reject|offer rejected"
    r"|absolutely not|(?:nope )?not (?:going to )?happen(?:ing)?|not at <\d+>"
    r"|<\d+> is (?:just |simply |way |far )?too (?:much|high|low|little|expensive|steep)"
    rf"|after (?:careful|much|some) (?:consideration|thought) i have to decline|{_SAID_NO}"
    r"|i am declining(?: (?:at|with|for) .*)?|i say no(?: to .*)?"
    r"|(?:it|that|this|your (?:offer|proposal|price)) is (?:not acceptable|unacceptable)"
    r"|i (?:can|will|could) not (?:sell|buy|trade)(?: it)?(?: (?:at|for) (?:that|this|your)"
    rf" (?:price|offer))?|{_SUBJECT} does not work{_FOR_ME}?)"
    rf"{_CLOSING}"
)
NOT_PAID = re.compile(r"\b(?:not (?:pay|do)|(?:unable|refuse) to pay) ")
REJECTING = re.compile(r"\b(?:reject|rejected|decline|refuse|turn down|no deal|unacceptable)\b")
WOULD_ACCEPT = re.compile(r"\b(?:i|we)\b.*\b(?:accept|agree|acceptable)\b")
JOHN = re.compile(r"\b(?:john|outside)\b")
_EXIT = r"(?:(?:the |my )?outside option|john's (?:deal|offer|price|bid|terms))"
_LEAVING = (
    rf"(?:i|we) (?:{_READY}|prefer to |choose to |decide to |(?:have )?decided to "
    r"|would (?:rather|sooner) )"
)
OUTSIDE = re.compile(
    rf"{_FILLER}(?:i (?:think|guess) )?"
    rf"(?:{_LEAVING}(?:deal|trade|go|sell|buy|purchase|get|do business)"
    r"(?: (?:it|this|the product|my product))? (?:to|with|from) john"
    rf"|{_LEAVING}(?:take|choose|use|pick|accept|go with) {_EXIT}"
    r"(?: and (?:buy|purchase|get)(?: (?:it|this|the product))? from john)?"
    r"|(?:i|we) am (?:going|dealing|trading|selling|buying|getting)"
    r"(?: (?:it|this|the product|my product))? (?:to|with|from) john"
    rf"|(?:i|we) am (?:(?:taking|choosing|using) (?:the |my )?outside option|accepting {_EXIT})"
    rf"|{_LEAVING}(?:choose|pick|prefer) john(?:'s (?:deal|offer|price))?"
    r"|(?:i|we) am (?:ending|leaving|stopping) (?:(?:our|these|the) )?(?:talks?|negotiations?) and"
    r" (?:going|dealing|trading|selling|buying)(?: it)? (?:to|with|from) john"
    rf"|(?:{_LEAVING}end|(?:i|we) am ending)"
    r" (?:this|(?:our|the|these) (?:negotiations?|talks?))(?: here)?"
    r" and (?:buy|buying|purchase|purchasing|get|getting|deal|dealing)(?: (?:it|the product))?"
    r" (?:from|with) john|john (?:gets|will get) my (?:business|money|order)"
    r"|deal with john|outside option)(?: (?:then|now|instead|again))*"
)

ONLY_OUTSIDE = re.compile(
    r"(?:(?:i am (?:done|out)|no thanks), )?(?:john it is|(?:i am )?(?:leaving for|dealing with"
    r"|taking my business to) john)(?: (?:then|now|instead))*"
)
"""Said of a whole sentence only: "dealing with John, I would get 120" leaves nobody."""

TAKEN_BACK = (CONDITION, RESERVATION, REJECTING, DOUBT, SPEECH, PROTEST)
OBJECTS = re.compile(
    rf"\b(?:{OBJECTION})\b|\bnot (?:\w+ ){{0,2}}(?:fair|enough|right|acceptable|okay|ok|happy"
    r"|satisfied)\b"
)
COMMAND = re.compile(
    r"^(?:(?:now|then|so|and|please|just|also) )*(?:(?:pay|give|send|add|hand|throw|raise|increase"
    r"|improve|sweeten|lower|reduce|drop|cut)\b(?! (?:than|my regards)\b)|offer (?:me|us|more)\b"
    r"|be (?:\w+ )?(?:fair|fairer|reasonable|realistic|generous|honest|serious)\b"
    r"|make (?:it|that|this) (?:<|more|better|fairer|higher|lower|closer)"
    r"|(?:can|could|would|will) you\b|(?:(?:a|some) )?(?:(?:little|bit|lot) )?more\b)"
    r"|\bmore for me\b|\b(?:you|alice|bob) (?:must|should|have to|need to)\b(?! be\b)"
)
"""Tells the other side to do something, which is a condition beside an acceptance."""
NOT_MEANT = re.compile(
    r"^(?:(?:oh|well|actually|no) )*(?:not|never|no|wait|psych|sike|half)(?: (?:wait|really|yet))*$"
    r"|\b(?:(?<!\bnot )(?:kidding|joking)|joke|changed my mind|second thoughts?|let me think"
    r"|in your dreams|yeah right|far from it|then again|take (?:it|that|this) back"
    r"|(?:scratch|ignore|cancel) (?:it|that|this))\b"
)
"""Said after a decision: takes it back."""
UNDONE = re.compile(
    rf"{NOT_MEANT.pattern}|\b(?:never ?mind|conditions?|bonus|forget (?:it|that|this))\b"
    r"|\bfirst$|\b(?:after|as soon as|the moment) (?:you|alice|bob)\b"
    r"|\bi (?:also |still |really |just )*(?:want|need|demand|require|expect|insist)\b"
    r"(?! <| to (?:go|thank|be|close|stop|finish|move)\b)"
)
"""The same of an acceptance, or asks for something in return."""
_CHANGES = (
    r"(?:caveat|change|adjustment|modification|amendment|reservation|exception|tweak|correction"
    r"|stipulation|proviso|twist)s?"
)
_DEPENDING = r"(?:subject to|(?:contingent|conditional)(?:ly)? (?:up)?on|depending on|long as)"
_SOME = r"(?:an?|one|some|two|few|small|minor|slight|certain|the following)"
TERMS = re.compile(
    rf"\b{_DEPENDING}\b|^(?:and |but )?(?:pending|barring|supposing|modulo|save for)\b"
    r"|\b(?:(?:apart|aside) from|other than) (?!that\b|this\b)|^preliminarily$|^on my terms$"
    rf"|\bwith (?:{_SOME} (?:\w+ ){{0,2}})?{_CHANGES}\b|\bwith (?:an? )?(?:raise|free)\b"
    r"|\bwith the (?:understanding|expectation) that\b"
    r"|\bin (?:exchange|return) for (?!(?:it|(?:the|your|my) (?:product|item|goods|money))\b)"
    r"|^(?:and )?(?:at|for|with)(?=[^<]*$) (?:(?:an?|some|the|my) )?(?:(?:much|slightly) )?"
    r"(?:more|less|half|double|twice|higher|lower|better|larger|bigger|greater|smaller|fairer)\b"
    r"(?! (?:stress|time|trouble|haggling))"
    r"|^(?:and )?less <|^(?:had|were) you\b|\bgive (?:me|us) the rest\b"
    r"|^(?!.*\bnothing\b).*\bto be (?:discussed|negotiated|confirmed|decided|determined|clarified"
    r"|finali[sz]ed|worked out)\b"
)
"""Set apart beside an acceptance in its sentence: terms of its own, or what it leaves open."""
LATER_TERMS = re.compile(rf"(?:but |and |only )*{_DEPENDING}\b")
"""The beginning of a further sentence that does so."""
CLAUSE = re.compile(
    r"(?:and )?(?:that|how|why) (?:(?:i|you|we|they|he|she|it|this|there|my|your|our|his|her|the"
    rf"|an?|no|some|alice|bob|john)\b|(?!{_NOUN}\b)\w+ (?:is|are|was)\b)"
)
"""Behind "I accept", what is accepted after all: "I accept, my friend, that you need more."."""
BARE = re.compile(
    rf"{_FILLER}(?:(?:i|we) {_READY}agree|agreed|we are agreed|{_DONE}){_MANNER}{_CLOSING}"
)
"""An agreement with what may be anything: "I agree, this is unfair.", "Done. I leave."."""
COURTESY = re.compile(rf"(?:(?:{_POLITE}|{_RATIO})(?: |$))+")
"""Nothing but thanks, praise, closing words and amounts."""
CONCEDED = re.compile(
    rf"^(?P<sigh>[^<]*?),? but (?=(?:(?:{_LIGHT}),? )*(?:(?:{_AGREED}|(?:i|we) {_READY}accept)\b"
    rf"|(?:{APPROVE.pattern}|{APPROVED.pattern})(?:,|$))|{ASSENT.pattern},? <)"
)
"""A sigh that an acceptance overrules: "You drive a hard bargain, but okay, deal."."""
AFTERTHOUGHT = re.compile(r"(?:(?:only|just|for|at) )*<\d+>")
