"""Compiled loops of the exact Ward tree (see `ward` for the algorithm and the error bound).

A cluster is a node (a number that never changes) and lives in a slot (a row of the arrays below)
while it is active. All distances are Ward's increments of the within-cluster sum of squares,
s_a s_b / (s_a + s_b) |c_a - c_b|^2, so that a merge height is sqrt(2 x increment).

Per slot: `near` (q,) node numbers of the candidates, `key` (q,) float64 lower bounds of their
distances, `known` (q,) whether a key is the exact distance, `floor`: a lower bound of the distance
to every active cluster that is not a candidate.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from aria_dvc.intentions.tiles import insert

NEW, CERTAIN, STALE = 0, 1, 2
TIE = 1e-11
_SAFE = 1.0 - 1e-12
_LOOSE = {"nnan", "nsz", "reassoc", "contract", "arcp"}
_VELTKAMP = 4097.0


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def _squared(a, b):
    total = 0.0
    for t in range(a.shape[0]):
        gap = a[t] - b[t]
        total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _round40(x):
    """x to 40 significant bits: values equal in exact arithmetic compare equal."""
    wide = _VELTKAMP * x
    return wide - (wide - x)


@njit(cache=True, nogil=True)
def ward_distance(centre, size, i, j):
    pull = size[i] * size[j] / (size[i] + size[j])
    return _round40(pull * _squared(centre[i], centre[j]))


@njit(cache=True, nogil=True)
def store_lists(slots, near_in, key_in, unit, near, key, known, floor, state):
    """Write fresh lists (b, q) of `slots`, whose keys are in `unit`; the worst key is the floor."""
    q = near.shape[1]
    for b in range(slots.shape[0]):
        s = slots[b]
        for t in range(q):
            near[s, t] = near_in[b, t]
            key[s, t] = key_in[b, t] * unit
            known[s, t] = False
        floor[s] = key[s, q - 1]
        state[s] = NEW


@njit(cache=True, nogil=True)
def _root(parent, node):
    while parent[node] != node:
        node = parent[node]
    return node


@njit(cache=True, nogil=True)
def _resolve(s, parent, near, key, known, floor):
    """Replace merged candidates of slot s by what they became; returns how many are left.

    By reducibility a cluster that swallowed a candidate is no nearer than the candidate or the
    floor, so the smaller of the two stays a lower bound.
    """
    kept = 0
    for t in range(near.shape[1]):
        node = near[s, t]
        if node < 0:
            continue
        root = _root(parent, node)
        value, exact = key[s, t], known[s, t]
        if root != node:
            value, exact = min(value, floor[s]) * _SAFE, False
        seen = -1
        if root != node:  # what was active all the time cannot be what another one became
            for u in range(kept):
                if near[s, u] == root:
                    seen = u
        if seen >= 0:
            key[s, seen] = min(key[s, seen], value)
            known[s, seen] = False
            continue
        near[s, kept], key[s, kept], known[s, kept] = root, value, exact
        kept += 1
    for t in range(kept, near.shape[1]):
        near[s, t], key[s, t], known[s, t] = -1, np.inf, False
    return kept


@njit(cache=True, nogil=True)
def _nearest(s, kept, near, key, known, slot, first, centre, size):
    """Exact nearest candidate of slot s: (position, distance, whether another one ties)."""
    best, value = -1, np.inf
    while True:
        pick, low = -1, value * (1.0 + TIE) if best >= 0 else np.inf
        for t in range(kept):
            if not known[s, t] and key[s, t] <= low and key[s, t] < np.inf:
                pick, low = t, key[s, t]
        for t in range(kept):
            if known[s, t]:
                before = key[s, t] < value
                if key[s, t] == value and best >= 0:
                    before = first[near[s, t]] < first[near[s, best]]
                if before:
                    best, value = t, key[s, t]
        if pick < 0 or (best >= 0 and key[s, pick] > value * (1.0 + TIE)):
            break
        key[s, pick] = ward_distance(centre, size, s, slot[near[s, pick]])
        known[s, pick] = True
    tied = False
    for t in range(kept):
        if t != best and known[s, t] and key[s, t] <= value * (1.0 + TIE):
            tied = True
    return best, value, tied


@njit(cache=True, nogil=True)
def refresh(
    slots, parent, slot, first, centre, size, near, key, known, floor, nearest, reach, state, ties
):
    """Find the exact nearest cluster of each slot among its candidates.

    The slot becomes CERTAIN (`nearest`, `reach` hold its neighbour's node and distance) when that
    distance is below its floor, otherwise STALE (`reach` is its floor) until it is asked again.
    """
    for b in range(slots.shape[0]):
        s = slots[b]
        kept = _resolve(s, parent, near, key, known, floor)
        best, value, tied = _nearest(s, kept, near, key, known, slot, first, centre, size)
        if best >= 0 and value * (1.0 + TIE) < floor[s]:
            state[s], nearest[s], reach[s] = CERTAIN, near[s, best], value
            ties[s] = tied
        else:
            state[s], reach[s] = STALE, floor[s]


@njit(cache=True, nogil=True)
def _insert_exact(near, key, first, node, value):
    """Put (node, value) into a list that ascends by distance and then by earliest point."""
    t = key.shape[0] - 1
    if key[t] == value and first[near[t]] < first[node]:
        return
    while t > 0 and (
        key[t - 1] > value or (key[t - 1] == value and first[near[t - 1]] > first[node])
    ):
        key[t], near[t] = key[t - 1], near[t - 1]
        t -= 1
    key[t], near[t] = value, node


@njit(cache=True, nogil=True)
def start_exact(
    slots, parent, slot, first, centre, size, near, key, known, floor, near_out, key_out
):  # fmt: skip
    """Exact, ascending lists (b, q) of the candidates that the slots have."""
    for b in range(slots.shape[0]):
        s = slots[b]
        near_out[b], key_out[b] = -1, np.inf
        for t in range(_resolve(s, parent, near, key, known, floor)):
            value = ward_distance(centre, size, s, slot[near[s, t]])
            _insert_exact(near_out[b], key_out[b], first, near[s, t], value)


@njit(cache=True, nogil=True)
def scan_exact(
    products, slots, offset, norm, inverse, unit, node_of, first, centre, size, near, key
):  # fmt: skip
    """Enter into exact lists (b, q) every cluster of a tile that its bound does not rule out."""
    last = key.shape[1] - 1
    for r in range(products.shape[0]):
        s = slots[r]
        for c in range(products.shape[1]):
            other = offset + c
            bound = norm[s] + norm[other] - np.float32(2.0) * products[r, c]
            if other == s or bound / (inverse[s] + inverse[other]) * unit > key[r, last]:
                continue
            node, seen = node_of[other], False
            for t in range(last + 1):
                seen = seen or near[r, t] == node
            if seen:
                continue
            value = ward_distance(centre, size, s, other)
            if value <= key[r, last]:
                _insert_exact(near[r], key[r], first, node, value)


@njit(cache=True, nogil=True)
def settle(slots, near_in, key_in, near, key, known, floor, nearest, reach, state, ties):
    """Store exact lists (b, q): these slots are CERTAIN of their first entry."""
    q = near.shape[1]
    for b in range(slots.shape[0]):
        s = slots[b]
        near[s], key[s], known[s] = near_in[b], key_in[b], True
        ties[s] = q > 1 and key[s, 1] <= key[s, 0] * (1.0 + TIE)
        state[s], nearest[s], reach[s], floor[s] = CERTAIN, near[s, 0], key[s, 0], key[s, q - 1]


@njit(cache=True, nogil=True)
def reciprocal_pairs(active, node_of, slot, nearest, state):
    """(p, 2) int32 nodes of all pairs that are each other's nearest, in slot order."""
    pairs = np.empty((active // 2 + 1, 2), np.int32)
    found = 0
    for s in range(active):
        if state[s] != CERTAIN:
            continue
        other = slot[nearest[s]]
        if other > s and state[other] == CERTAIN and nearest[other] == node_of[s]:
            pairs[found, 0], pairs[found, 1] = node_of[s], nearest[s]
            found += 1
    return pairs[:found]


@njit(cache=True, nogil=True)
def _gather(s, side, least, parent, near, key, floor, nodes, low, count, place):
    """Add the candidates of slot s to a union list; low[:, side] are their distance bounds."""
    for t in range(near.shape[1]):
        if near[s, t] < 0:
            continue
        node = _root(parent, near[s, t])
        value = key[s, t] if node == near[s, t] else min(key[s, t], floor[s])
        value = max(value * _SAFE, least)
        u = place[node]
        if u < 0:
            u = count
            place[node], nodes[u], low[u, 0], low[u, 1] = u, node, -1.0, -1.0
            count += 1
        low[u, side] = value if low[u, side] < 0.0 else min(low[u, side], value)
    return count


@njit(cache=True, nogil=True)
def _inherit(a, b, height, parent, slot, size, near, key, floor, union, out, out_key):
    """Candidates of the union of slots a and b from their lists; returns the union's floor.

    The Lance-Williams recurrence is increasing in both distances, so lower bounds of the parts
    give a lower bound of the whole; for a cluster in neither list it is monotone in that cluster's
    size, so its two ends bound it.
    """
    nodes, low, place = union
    out[:], out_key[:] = -1, np.inf
    floor_a, floor_b = max(floor[a] * _SAFE, height), max(floor[b] * _SAFE, height)
    both = size[a] + size[b]
    small = ((size[a] + 1) * floor_a + (size[b] + 1) * floor_b - height) / (both + 1)
    lowest = min(small, floor_a + floor_b - height) * _SAFE
    count = _gather(a, 0, height, parent, near, key, floor, nodes, low, 0, place)
    count = _gather(b, 1, height, parent, near, key, floor, nodes, low, count, place)
    for u in range(count):
        place[nodes[u]] = -1
        s = slot[nodes[u]]
        if s in (a, b):
            continue
        low_a = floor_a if low[u, 0] < 0.0 else low[u, 0]
        low_b = floor_b if low[u, 1] < 0.0 else low[u, 1]
        value = (size[a] + size[s]) * low_a + (size[b] + size[s]) * low_b - size[s] * height
        value = value / (both + size[s]) * _SAFE
        if value < out_key[-1]:
            lowest = min(lowest, out_key[-1])
            insert(out, out_key, nodes[u], value)
        else:
            lowest = min(lowest, value)
    return lowest


@njit(cache=True, nogil=True)
def _move(src, dst, rows, node_of, slot):
    """Move the cluster of slot src into the free slot dst."""
    centre, coarse, size, norm, inverse, near, key, known, floor, nearest, reach, state, ties = rows
    centre[dst], coarse[dst] = centre[src], coarse[src]
    size[dst], norm[dst], inverse[dst] = size[src], norm[src], inverse[src]
    near[dst], key[dst], known[dst] = near[src], key[src], known[src]
    floor[dst], nearest[dst], reach[dst] = floor[src], nearest[src], reach[src]
    state[dst], ties[dst] = state[src], ties[src]
    node_of[dst] = node_of[src]
    slot[node_of[dst]] = dst


@njit(cache=True, nogil=True)
def set_coarse(s, centre, size, coarse, norm, inverse, frame):
    """The float32 image of slot s: moved and scaled centre, norm less its error, 1 / size."""
    mean, shrink, slack, least = frame
    total = 0.0
    for t in range(centre.shape[1]):
        value = (centre[s, t] - mean[t]) * shrink
        coarse[s, t] = np.float32(value)
        total += value * value
    norm[s] = np.float32(total * (1.0 - slack) - least)
    inverse[s] = np.float32(1.0 / size[s])


@njit(cache=True, nogil=True)
def set_all_coarse(active, centre, size, coarse, norm, inverse, frame):
    for s in range(active):
        set_coarse(s, centre, size, coarse, norm, inverse, frame)


@njit(cache=True, nogil=True)
def merge_pairs(
    pairs, active, next_node, parent, slot, first, node_of, rows, frame, place, merges, heights
):
    """Merge each pair of nodes; returns (active clusters, next free node, whether one was tied)."""
    centre, coarse, size, norm, inverse, near, key, known, floor, _, reach, state, ties = rows
    out = np.empty(near.shape[1], np.int32)
    out_key = np.empty(near.shape[1], np.float64)
    union = (np.empty(2 * out.size, np.int32), np.empty((2 * out.size, 2)), place)
    leaves = merges.shape[0] + 1
    tied = False
    for p in range(pairs.shape[0]):
        node_a, node_b = pairs[p, 0], pairs[p, 1]
        a, b = slot[node_a], slot[node_b]
        height = reach[a]
        tied = tied or ties[a] or ties[b]
        floor_new = _inherit(
            a, b, height, parent, slot, size, near, key, floor, union, out, out_key
        )
        both = size[a] + size[b]
        heights[next_node - leaves] = size[a] * size[b] / both * _squared(centre[a], centre[b])
        for t in range(centre.shape[1]):
            centre[a, t] = (size[a] * centre[a, t] + size[b] * centre[b, t]) / both
        size[a] = both
        set_coarse(a, centre, size, coarse, norm, inverse, frame)
        merges[next_node - leaves, 0], merges[next_node - leaves, 1] = node_a, node_b
        parent[node_a] = parent[node_b] = next_node
        parent[next_node], slot[next_node], node_of[a] = next_node, a, next_node
        first[next_node] = min(first[node_a], first[node_b])
        near[a], key[a], known[a], floor[a], state[a] = out, out_key, False, floor_new, NEW
        active -= 1
        if b != active:
            _move(active, b, rows, node_of, slot)
        next_node += 1
    return active, next_node, tied


@njit(cache=True, nogil=True)
def mark_touched(active, parent, nearest, state):
    """(t,) int64 slots to refresh: new ones and those whose neighbour has merged."""
    out = np.empty(active, np.int64)
    found = 0
    for s in range(active):
        if state[s] == CERTAIN and parent[nearest[s]] != nearest[s]:
            state[s] = NEW
        if state[s] == NEW:
            out[found] = s
            found += 1
    return out[:found]
