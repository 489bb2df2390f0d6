"""Which dialogue has which slot of the cache, and what of it the slot already holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aria_dvc.players.slots import CacheShape, KeyValueCache

DialogueKey = tuple[str, str]  # (episode_id, role)
LENGTH_STEP = 256  # tokens by which the length of all slots grows
SHARED_PREFIX = 32  # tokens worth copying from another dialogue rather than computing again


@dataclass(eq=False)
class TokenSequence:
    """A dialogue that wants a slot. `ids` are its tokens; the first `cached` are in its slot."""

    dialogue: DialogueKey
    ids: list[int]
    length: int  # tokens that it may grow to
    slot: int = -1
    cached: int = 0


@dataclass
class _Slot:
    held: list[int] = field(default_factory=list)
    owner: DialogueKey | None = None
    used: int = 0  # step of the last use


class SlotAllocator:
    """Slots for sequences, in a cache of at most `max_tokens` tokens over all slots.

    A dialogue keeps its slot from turn to turn while there is room; the one that was idle longest
    is forgotten first. A slot of an episode that is over stays readable for shared beginnings.
    """

    def __init__(self, shape: CacheShape, expected: int, max_tokens: int) -> None:
        self.cache = KeyValueCache(shape)
        self.expected = expected
        self.max_tokens = max(max_tokens, LENGTH_STEP)
        self._slots: list[_Slot] = []
        self._slot_of: dict[DialogueKey, int] = {}

    def leave(self, episodes: Iterable[str]) -> None:
        """Free the slots of episodes that are over."""
        over = set(episodes)
        for dialogue in [key for key in self._slot_of if key[0] in over]:
            self._slots[self._slot_of.pop(dialogue)].owner = None

    def clear(self) -> None:
        """Forget everything and release the memory."""
        self.cache = KeyValueCache(self.cache.shape)
        self._slots, self._slot_of = [], {}

    def note(self, sequence: TokenSequence, end: int, step: int) -> None:
        """Tokens up to `end` of the sequence are in its slot now."""
        slot = self._slots[sequence.slot]
        slot.held[sequence.cached :] = sequence.ids[sequence.cached : end]
        slot.used, sequence.cached = step, end

    def place(self, sequence: TokenSequence, present: Sequence[TokenSequence]) -> bool:
        """Give the sequence a slot and keep what that holds of it; False if it has to wait.

        Args:
            present: sequences whose slots must not be taken; they may be moved.
        """
        if not self._make_room(sequence.length, present):
            return False
        number = self._choose(sequence, present)
        if number is None:
            return False
        slot = self._slots[number]
        if slot.owner is not None and slot.owner != sequence.dialogue:
            del self._slot_of[slot.owner]
        held = shared(slot.held, sequence.ids)
        if slot.owner != sequence.dialogue:
            held = self._borrow(sequence, number, held)
        slot.owner, self._slot_of[sequence.dialogue] = sequence.dialogue, number
        sequence.slot = number
        sequence.cached = min(held, len(sequence.ids) - 1)  # the last token must be computed
        del slot.held[sequence.cached :]
        return True

    def _make_room(self, length: int, present: Sequence[TokenSequence]) -> bool:
        """Let every slot hold `length` tokens; False if it must wait for sequences to leave."""
        if length <= self.cache.length:
            return True
        length = min(-(-length // LENGTH_STEP) * LENGTH_STEP, self.max_tokens)
        count = min(max(self.expected, len(self._slots)), self.max_tokens // length)
        if not self._slots and self.cache.shape.untouched_is_free:
            # Whatever may be needed, at once: growing copies all that is held. Two roles a game.
            count = min(2 * self.expected, self.max_tokens // length)
            length = max(length, self.max_tokens // count // LENGTH_STEP * LENGTH_STEP)
        busy = [sequence.slot for sequence in present]
        if len(busy) >= count and busy:
            return False
        idle = sorted(set(range(len(self._slots))) - set(busy), key=self._worth)
        self._rebuild([*busy, *idle][:count], count, length, present)
        return True

    def _worth(self, number: int) -> tuple[bool, int, int]:
        """Sort key: owned slots first, then the most recently used."""
        slot = self._slots[number]
        return (slot.owner is None, -slot.used, number)

    def _rebuild(
        self, kept: Sequence[int], count: int, length: int, present: Sequence[TokenSequence]
    ) -> None:
        """Make the cache `count` x `length`, keeping the slots in `kept`."""
        mapping = {old: new for new, old in enumerate(sorted(kept))}
        self.cache.resize(count, length, mapping)
        spare = [_Slot() for _ in range(count - len(mapping))]
        self._slots = [self._slots[old] for old in mapping] + spare
        self._slot_of = {slot.owner: n for n, slot in enumerate(self._slots) if slot.owner}
        for sequence in present:
            sequence.slot = mapping[sequence.slot]

    def _choose(self, sequence: TokenSequence, present: Sequence[TokenSequence]) -> int | None:
        """The dialogue's own slot, a free one, a new one, or that of the one idle longest."""
        if sequence.dialogue in self._slot_of:
            return self._slot_of[sequence.dialogue]
        free = [n for n, slot in enumerate(self._slots) if slot.owner is None]
        if free:
            return max(free, key=lambda n: (shared(self._slots[n].held, sequence.ids), -n))
        count = len(self._slots)
        more = min(2 * count, self.max_tokens // self.cache.length)
        if more > count:
            self._rebuild(range(count), more, self.cache.length, present)
            return self._choose(sequence, present)
        idle = set(range(count)) - {other.slot for other in present}
        return min(idle, key=lambda n: (self._slots[n].used, n), default=None)

    def _borrow(self, sequence: TokenSequence, number: int, held: int) -> int:
        """Copy the longest beginning that another slot shares with the sequence, if it pays."""
        lengths = [shared(slot.held, sequence.ids) for slot in self._slots]
        best = max(range(len(lengths)), key=lambda n: (lengths[n], -n))
        if lengths[best] < held + SHARED_PREFIX:
            return held
        self.cache.copy(best, number, lengths[best])
        self._slots[number].held = self._slots[best].held[: lengths[best]]
        return lengths[best]


def shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the common beginning."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))
