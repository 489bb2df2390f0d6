"""What the utterances of an adversarial game decide, as the text that intentions are found in.

Sentence embeddings hardly see numbers: "I keep 80%" and "I keep 30%" are neighbours. So the game's
own parser replays the episode, and what is embedded in place of an utterance is its move, with the
amount as a row of words that grows with it: of nine tenths "mine" is said nine times as often as
"yours". Neighbouring amounts differ in one word, which any embedder puts in order.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from fractions import Fraction
from itertools import repeat

from aria_dvc.errors import AriaError
from aria_dvc.games.alternating import AlternatingMatch, Demand
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.registry import get_game
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.names import PLAYABLE
from aria_dvc.settings.intentions import Decisions

logger = logging.getLogger(__name__)
ILLEGAL = "no legal move"
ENDS = {
    "agreement": "accept the offer",
    "outside_option": "leave for the outside option",
    "no_deal": "reject the offer",
}


def tell_decisions(episodes: Sequence[Episode], form: Decisions) -> None:
    """Set `embedded` of every utterance whose move is known; the others keep their text.

    Known are the moves of adversarial games of which the record has the configuration. How many
    utterances of such games have no known move is said in a log line.

    form: `share`, `worth` or, to embed what was said, `text`; see `prepare.decisions`.
    """
    if form == "text":
        return
    unread: dict[str, int] = {}
    for episode in episodes:
        found = decided_texts(episode, form)
        for utterance, text in zip(episode.utterances, found, strict=True):
            utterance.embedded = text
        if PLAYABLE.get(episode.game) == "adversarial" and None in found:
            unread[episode.game] = unread.get(episode.game, 0) + found.count(None)
    for game, count in unread.items():
        logger.warning(
            "%s: the moves of %d utterances are not known (no configuration in the log's info, or "
            "not legal there): their intentions are found in the words",
            *(game, count),
        )


def decided_texts(episode: Episode, form: Decisions) -> list[str | None]:
    """One text an utterance; None where the move is not known.

    A last utterance that the game refused is a forfeit. Another one that the present rules refuse,
    or said out of turn, ends what is known.
    """
    match, said = _start(episode), episode.utterances
    if match is None:
        return [None] * len(said)
    failure = episode.record.failure
    found: list[str | None] = []
    for utterance in said:
        last = len(found) == len(said) - 1
        refused = last and failure is not None and failure.role == utterance.role
        if match.to_move != utterance.role:
            break
        try:
            found.append(ILLEGAL if refused else _decided(match, utterance, form))
        except IllegalMove:
            found.extend([ILLEGAL] if last else [])
            break
    return [*found, *repeat(None, len(said) - len(found))]


def _start(episode: Episode) -> AlternatingMatch | None:
    """A fresh match under the episode's rules; None for other games and unknown rules."""
    if episode.game not in PLAYABLE:
        return None
    try:
        match = get_game(episode.game).start(episode.record.config)
    except AriaError:
        return None
    return match if isinstance(match, AlternatingMatch) else None


def _decided(match: AlternatingMatch, utterance: Utterance, form: Decisions) -> str:
    """Play the utterance and tell its move.

    Raises IllegalMove if it states none.
    """
    made = len(match.offers)
    match.play(utterance.text)
    if len(match.offers) > made:
        demanded = match.worth_demanded if form == "worth" else match.amount_demanded
        return _told(demanded(utterance.role))
    assert match.outcome is not None
    return ENDS[match.outcome.reason]


def _told(demand: Demand) -> str:
    """The demand in as many words as it has steps, rounded half up and cut to none or all."""
    filled = max(0, min(demand.steps, (demand.part * demand.steps + Fraction(1, 2)).__floor__()))
    if demand.exact_half and 2 * filled == demand.steps:
        filled += (demand.part > Fraction(1, 2)) - (demand.part < Fraction(1, 2))
    words = [demand.words[0]] * filled + [demand.words[1]] * (demand.steps - filled)
    return f"{demand.of}: {' '.join(words)}"
