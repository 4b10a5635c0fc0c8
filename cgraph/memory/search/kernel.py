"""The compiled depth-first search: can these operands be placed within a capacity?

The search looks only for plans with the smallest sum of offsets. In such a plan every operand rests at 0 or on top of a
neighbour (one
that meets it in time), and none could be moved alone to a free place further down. Each operand waiting for its place
has a `base`, the highest top among its placed neighbours, and a `lowest` offset that it can have, never below its
base. A node takes an operand `b` such that no waiting neighbour can still be placed below it, and branches:

* `b` lies at its lowest offset: its neighbours lie above it;
* it does not.

After each step these rules are applied until nothing changes:

* **support**: an operand that cannot lie at its base rests on a neighbour still waiting: its lowest offset is at
  least the smallest ``lowest + size`` of those;
* **blocker**: and one of those starts below ``base + size``, or the operand could drop to its base;
* **floor**: the *floor* of a section is the smallest lowest offset of the operands waiting in it; floor and total of
  their sizes must not exceed the capacity;
* **firsts**: an operand whose lowest offset and that total exceed the capacity is not the lowest in its section, so it
  lies above one of those that can be, the *firsts*.

Parts of the graph with no waiting operand across their borders are independent: when one is refuted, the search
returns to the last choice made in a range of sections that contains it.

Sources: floors, plans with all operands pushed down, and independent parts: Moffitt 2023, "MiniMalloc: A Lightweight
Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023. It places operands by rising offset;
branching in two, with support, blocker and firsts, is this project's. Worst case exponential; a node costs O(n +
neighbours).

This is one file because Numba's cache does not detect changes of functions in other files.
"""

import numba
import numpy as np

from cgraph.memory.search.cached import compile_cached
from cgraph.memory.search.state import FULL, LOWEST, PAUSED, REFUTED, SOLVED, TIGHTEST

# positions in a state's `counters`
DEPTH, TRAIL, NODES, WAITING, SERIAL, RANGE_BEGIN, RANGE_END = range(7)
# columns of its `frames` and of its `trail`
OPERAND, MARK, STAMP, BEGIN, END = range(5)
KEY, OLD, OLD_STAMP = range(3)

NONE = np.int64(-1)
HIGHEST = np.int64(1 << 62)  # above every sum of offsets and sizes

# functions that only compiled code calls need no wrapper
inner = numba.njit(  # type: ignore[call-overload]
    nogil=True, forceinline=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
)


@compile_cached
def advance(instance, state, capacity, method, node_limit):
    """Search until a plan is found, none can exist, `node_limit` nodes are counted, or the trail must grow.

    Returns SOLVED (offsets are in `lowest`), REFUTED, PAUSED or FULL; after the last two it can be called again.
    """
    counters = state.counters
    if counters[SERIAL] == 0 and not settle(instance, state, capacity, 0):
        return REFUTED
    while counters[WAITING] > 0:
        if counters[NODES] >= node_limit:
            return PAUSED
        if counters[TRAIL] + len(state.value) > len(state.trail):
            return FULL
        b = choose(instance, state, capacity, method)
        push(instance, state, b)
        good = settle(instance, state, capacity, place(instance, state, b))
        while not good:
            b = pop_to_parent(instance, state)
            if b == NONE:
                return REFUTED
            good = settle(instance, state, capacity, refuse(instance, state, b))
    return SOLVED


@inner
def choose(instance, state, capacity, method):
    """Return the next operand, within the unfinished range of the last choice; no waiting neighbour fits below it.

    If only one operand can be the lowest of a section, take that one; else with LOWEST the lowest of all; else the
    lowest of the section with the least room (TIGHTEST) or the fewest firsts (FEWEST), by weight. Ties go by rank.
    """
    set_range(state)
    section = only_section(state)
    if section == NONE:
        if method == LOWEST:
            return lowest_in_range(instance, state)
        section = heaviest_section(state, capacity, method)
    member, start, stop = instance.member, instance.member_start[section], instance.member_start[section + 1]
    below = lowest_of(instance, state, member, start, stop, HIGHEST)
    b = below
    while below != NONE:
        b = below
        start, stop = instance.neighbour_start[b], instance.neighbour_start[b + 1]
        below = lowest_of(instance, state, instance.neighbour, start, stop, state.lowest[b])
    return b


@inner
def only_section(state):
    """Return a section in which only one waiting operand can be the lowest, or NONE."""
    total, firsts = state.total, state.firsts
    for s in range(state.counters[RANGE_BEGIN], state.counters[RANGE_END]):
        if total[s] > 0 and firsts[s] == 1:
            return s
    return NONE


@inner
def heaviest_section(state, capacity, method):
    """Return the unfinished section that refuted the most branches, in proportion to its room or to its firsts."""
    total, floor, firsts, weight = state.total, state.floor, state.firsts, state.weight
    best, most = NONE, -1.0
    for s in range(state.counters[RANGE_BEGIN], state.counters[RANGE_END]):
        if total[s] > 0:
            freedom = 1 + capacity - floor[s] - total[s] if method == TIGHTEST else firsts[s]
            if weight[s] > most * freedom:
                best, most = np.int64(s), weight[s] / freedom
    return best


@inner
def lowest_in_range(instance, state):
    begin, end, waiting, lowest, rank = instance.begin, instance.end, state.waiting, state.lowest, state.rank
    range_begin, range_end = state.counters[RANGE_BEGIN], state.counters[RANGE_END]
    best, offset = NONE, HIGHEST
    for i in range(len(begin)):
        if not waiting[i] or lowest[i] > offset or begin[i] < range_begin or end[i] > range_end:
            continue
        if lowest[i] < offset or rank[i] < rank[best]:
            best, offset = np.int64(i), lowest[i]
    return best


@inner
def lowest_of(instance, state, operands, start, stop, top):
    """Return the lowest waiting operand of ``operands[start:stop]`` that can end at `top` or below, or NONE."""
    size, waiting, lowest, rank = instance.size, state.waiting, state.lowest, state.rank
    best, offset = NONE, HIGHEST
    for k in range(start, stop):
        i = operands[k]
        if not waiting[i] or lowest[i] + size[i] > top:
            continue
        if lowest[i] < offset or (lowest[i] == offset and rank[i] < rank[best]):
            best, offset = i, lowest[i]
    return best


@inner
def set_range(state):
    """Stay in the range of the last choice; when all its operands are placed, return to the last unfinished range."""
    counters = state.counters
    depth = counters[DEPTH]
    while not is_unfinished(state, counters[RANGE_BEGIN], counters[RANGE_END]):
        depth -= 1
        if depth < 0:
            counters[RANGE_BEGIN], counters[RANGE_END] = 0, len(state.total)
            return
        counters[RANGE_BEGIN], counters[RANGE_END] = state.frames[depth, BEGIN], state.frames[depth, END]


@inner
def is_unfinished(state, begin, end):
    for s in range(begin, end):  # noqa: SIM110 (Numba compiles no `any` of a generator)
        if state.total[s] > 0:
            return True
    return False


@inner
def push(instance, state, b):
    """Open a frame for `b`; its range is the part of the graph, joined by waiting operands, that holds it."""
    counters = state.counters
    begin, end = instance.begin[b], instance.end[b]
    while state.crossing[begin] > 0:
        begin -= 1
    while state.crossing[end] > 0:
        end += 1
    counters[SERIAL] += 1
    counters[NODES] += 1
    frame = state.frames[counters[DEPTH]]
    frame[OPERAND], frame[MARK], frame[STAMP] = b, counters[TRAIL], counters[SERIAL]
    frame[BEGIN], frame[END] = begin, end
    counters[RANGE_BEGIN], counters[RANGE_END] = begin, end
    counters[DEPTH] += 1


@inner
def pop_to_parent(instance, state):
    """Undo up to and including the last choice whose range meets the current one; return its operand, or NONE.

    Choices in between concern other parts and cannot have caused the failure.
    """
    counters, frames = state.counters, state.frames
    parent = counters[DEPTH] - 1
    while parent >= 0 and (
        frames[parent, BEGIN] >= counters[RANGE_END] or frames[parent, END] <= counters[RANGE_BEGIN]
    ):
        parent -= 1
    if parent < 0:
        return NONE
    for depth in range(counters[DEPTH] - 1, parent - 1, -1):
        undo(instance, state, frames[depth, OPERAND], frames[depth, MARK])
    counters[DEPTH] = parent
    counters[RANGE_BEGIN], counters[RANGE_END] = frames[parent, BEGIN], frames[parent, END]
    return frames[parent, OPERAND]


@inner
def undo(instance, state, b, mark):
    trail, value, stamp = state.trail, state.value, state.stamp
    for entry in range(state.counters[TRAIL] - 1, mark - 1, -1):
        key = trail[entry, KEY]
        value[key] = trail[entry, OLD]
        stamp[key] = trail[entry, OLD_STAMP]
    state.counters[TRAIL] = mark
    count(instance, state, b, 1)


@inner
def count(instance, state, b, sign):
    """Count `b` as waiting (sign 1) or as placed (sign -1)."""
    state.waiting[b] = sign > 0
    state.counters[WAITING] += sign
    total, crossing = state.total, state.crossing
    change = sign * instance.size[b]
    for s in range(instance.begin[b], instance.end[b]):
        total[s] += change
    for s in range(instance.begin[b] + 1, instance.end[b]):
        crossing[s] += sign


@inner
def save(state, key, new):
    """Set a value; save the old one, once per frame."""
    counters, value, stamp = state.counters, state.value, state.stamp
    if counters[DEPTH] > 0:
        serial = state.frames[counters[DEPTH] - 1, STAMP]
        if stamp[key] < serial:
            trail, entry = state.trail, counters[TRAIL]
            trail[entry, KEY], trail[entry, OLD], trail[entry, OLD_STAMP] = key, value[key], stamp[key]
            counters[TRAIL] = entry + 1
            stamp[key] = serial
    value[key] = new


@inner
def place(instance, state, b):
    """Branch one: `b` lies at its base, its waiting neighbours above it. Returns the length of the queue."""
    n = len(instance.size)
    count(instance, state, b, -1)
    mark_dirty(instance, state, b)
    neighbour, waiting, lowest, base = instance.neighbour, state.waiting, state.lowest, state.base
    top = lowest[b] + instance.size[b]
    queued = 0
    for k in range(instance.neighbour_start[b], instance.neighbour_start[b + 1]):
        i = neighbour[k]
        if not waiting[i]:
            continue
        if base[i] < top:
            save(state, n + i, top)
            if lowest[i] < top:
                save(state, i, top)
                mark_dirty(instance, state, i)
        if lowest[i] > base[i]:
            queued = enqueue(state, i, queued)
    return queued


@inner
def refuse(instance, state, b):
    """Branch two: `b` does not lie at its base. Returns the length of the queue."""
    save(state, b, state.lowest[b] + 1)
    mark_dirty(instance, state, b)
    return enqueue(state, b, 0)


@inner
def enqueue(state, i, queued):
    if not state.queued[i]:
        state.queued[i] = True
        state.queue[queued] = i
        queued += 1
    return queued


@inner
def mark_dirty(instance, state, i):
    dirty, is_dirty, dirty_count = state.dirty, state.is_dirty, state.dirty_count
    for s in range(instance.begin[i], instance.end[i]):
        if not is_dirty[s]:
            is_dirty[s] = True
            dirty[dirty_count[0]] = s
            dirty_count[0] += 1


@inner
def settle(instance, state, capacity, queued):
    """Apply all rules; return False if no plan is possible. Empties the queue and the dirty sections either way."""
    good = True
    dirty_count = state.dirty_count
    while queued > 0 or dirty_count[0] > 0:
        if queued > 0:
            queued -= 1
            i = state.queue[queued]
            state.queued[i] = False
            if good:
                good, queued = check_support(instance, state, i, capacity, queued)
        else:
            dirty_count[0] -= 1
            s = state.dirty[dirty_count[0]]
            state.is_dirty[s] = False
            if good:
                good, queued = check_section(instance, state, s, capacity, queued)
    return good


@inner
def check_support(instance, state, i, capacity, queued):
    """Apply support and blocker to `i`; return whether it can still be placed, and the length of the queue."""
    if state.lowest[i] == state.base[i]:
        return True, queued
    support = lowest_support(instance, state, i)
    if support + instance.size[i] > capacity:
        blame(instance, state, i)
        return False, queued
    if support > state.lowest[i]:
        queued = raise_lowest(instance, state, i, support, queued)
    return True, queued


@inner
def blame(instance, state, i):
    """Share the weight of a refuted branch among the sections of `i`."""
    begin, end = instance.begin[i], instance.end[i]
    for s in range(begin, end):
        state.weight[s] += 1.0 / (end - begin)


@inner
def raise_lowest(instance, state, i, offset, queued):
    """Raise the lowest offset of `i` and queue those whose support may have been `i`."""
    save(state, i, offset)
    mark_dirty(instance, state, i)
    if offset > state.base[i]:
        queued = enqueue(state, i, queued)
    neighbour, waiting, lowest, base = instance.neighbour, state.waiting, state.lowest, state.base
    for k in range(instance.neighbour_start[i], instance.neighbour_start[i + 1]):
        j = neighbour[k]
        if waiting[j] and lowest[j] > base[j]:
            queued = enqueue(state, j, queued)
    return queued


@inner
def lowest_support(instance, state, i):
    """Return the lowest top that a waiting neighbour can have; HIGHEST without a support or without a blocker."""
    neighbour, size, waiting, lowest = instance.neighbour, instance.size, state.waiting, state.lowest
    support = HIGHEST
    blocked = False
    limit = state.base[i] + size[i]
    for k in range(instance.neighbour_start[i], instance.neighbour_start[i + 1]):
        j = neighbour[k]
        if waiting[j]:
            blocked = blocked or lowest[j] < limit
            support = min(support, lowest[j] + size[j])
    return support if blocked else HIGHEST


@inner
def check_section(instance, state, s, capacity, queued):
    """Apply floor and firsts to section `s`; return whether all waiting operands can fit, and the length of the
    queue.
    """
    if state.total[s] == 0:
        return True, queued
    highest_first = capacity - state.total[s]
    member, waiting, lowest, size = instance.member, state.waiting, state.lowest, instance.size
    floor, top, firsts = HIGHEST, HIGHEST, 0
    for k in range(instance.member_start[s], instance.member_start[s + 1]):
        i = member[k]
        if waiting[i]:
            floor = min(floor, lowest[i])
            if lowest[i] <= highest_first:
                firsts += 1
                top = min(top, lowest[i] + size[i])
    if firsts == 0:
        state.weight[s] += 1.0
        return False, queued
    at = 2 * len(size) + s
    if state.value[at] != floor:
        save(state, at, floor)
    at += len(state.total)
    if state.value[at] != firsts:
        save(state, at, firsts)
    for k in range(instance.member_start[s], instance.member_start[s + 1]):
        i = member[k]
        if waiting[i] and highest_first < lowest[i] < top:
            queued = raise_lowest(instance, state, i, top, queued)
    return True, queued
