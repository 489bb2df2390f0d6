"""Which dialogue sits in which slot of the cache, and what of it the slot already holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aria_dvc.players.slots import CacheShape, SlotCache

Seat = tuple[str, str]  # (episode_id, role)
LENGTH_STEP = 256  # tokens by which the length of all slots grows
SHARED_PREFIX = 32  # tokens worth copying from another dialogue rather than computing again


@dataclass(eq=False)
class Guest:
    """A dialogue that wants a slot. `ids` are its tokens; the first `cached` are in its slot."""

    seat: Seat
    ids: list[int]
    length: int  # tokens that it may grow to
    slot: int = -1
    cached: int = 0


@dataclass
class _Slot:
    held: list[int] = field(default_factory=list)
    owner: Seat | None = None
    used: int = 0  # step of the last use


class Seating:
    """Slots for guests, in a cache of at most `max_cells` tokens over all slots.

    A seat keeps its slot from turn to turn while there is room; the seat that was idle longest is
    forgotten first. A slot of an episode that is over stays readable for shared beginnings.
    """

    def __init__(self, shape: CacheShape, expected: int, max_cells: int) -> None:
        self.cache = SlotCache(shape)
        self.expected = expected
        self.max_cells = max(max_cells, LENGTH_STEP)
        self._slots: list[_Slot] = []
        self._slot_of: dict[Seat, int] = {}

    def leave(self, episodes: Iterable[str]) -> None:
        """Free the slots of episodes that are over."""
        over = set(episodes)
        for seat in [seat for seat in self._slot_of if seat[0] in over]:
            self._slots[self._slot_of.pop(seat)].owner = None

    def clear(self) -> None:
        """Forget everything and release the memory."""
        self.cache = SlotCache(self.cache.shape)
        self._slots, self._slot_of = [], {}

    def note(self, guest: Guest, end: int, step: int) -> None:
        """Tokens up to `end` of the guest are in its slot now."""
        slot = self._slots[guest.slot]
        slot.held[guest.cached :] = guest.ids[guest.cached : end]
        slot.used, guest.cached = step, end

    def place(self, guest: Guest, present: Sequence[Guest]) -> bool:
        """Give the guest a slot and keep what that holds of it; False if it has to wait.

        Args:
            present: guests whose slots must not be taken; they may be moved.
        """
        if not self._make_room(guest.length, present):
            return False
        number = self._choose(guest, present)
        if number is None:
            return False
        slot = self._slots[number]
        if slot.owner is not None and slot.owner != guest.seat:
            del self._slot_of[slot.owner]
        held = shared(slot.held, guest.ids)
        if slot.owner != guest.seat:
            held = self._borrow(guest, number, held)
        slot.owner, self._slot_of[guest.seat] = guest.seat, number
        guest.slot = number
        guest.cached = min(held, len(guest.ids) - 1)  # the last token must be computed
        del slot.held[guest.cached :]
        return True

    def _make_room(self, length: int, present: Sequence[Guest]) -> bool:
        """Let every slot hold `length` tokens; False if it must wait for guests to leave."""
        if length <= self.cache.length:
            return True
        length = min(-(-length // LENGTH_STEP) * LENGTH_STEP, self.max_cells)
        count = min(max(self.expected, len(self._slots)), self.max_cells // length)
        busy = [guest.slot for guest in present]
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
        self, kept: Sequence[int], count: int, length: int, present: Sequence[Guest]
    ) -> None:
        """Make the cache `count` x `length`, keeping the slots in `kept`."""
        mapping = {old: new for new, old in enumerate(sorted(kept))}
        self.cache.resize(count, length, mapping)
        spare = [_Slot() for _ in range(count - len(mapping))]
        self._slots = [self._slots[old] for old in mapping] + spare
        self._slot_of = {slot.owner: n for n, slot in enumerate(self._slots) if slot.owner}
        for guest in present:
            guest.slot = mapping[guest.slot]

    def _choose(self, guest: Guest, present: Sequence[Guest]) -> int | None:
        """The seat's own slot, a free one, a new one, or that of the seat idle longest."""
        if guest.seat in self._slot_of:
            return self._slot_of[guest.seat]
        free = [n for n, slot in enumerate(self._slots) if slot.owner is None]
        if free:
            return max(free, key=lambda n: (shared(self._slots[n].held, guest.ids), -n))
        count = len(self._slots)
        more = min(2 * count, self.max_cells // self.cache.length)
        if more > count:
            self._rebuild(range(count), more, self.cache.length, present)
            return self._choose(guest, present)
        idle = set(range(count)) - {other.slot for other in present}
        return min(idle, key=lambda n: (self._slots[n].used, n), default=None)

    def _borrow(self, guest: Guest, number: int, held: int) -> int:
        """Copy the longest beginning that another slot shares with the guest, if it pays."""
        lengths = [shared(slot.held, guest.ids) for slot in self._slots]
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
