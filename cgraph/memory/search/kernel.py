"""The compiled depth-first search: can these operands be placed within a capacity?

Look only for a plan whose sum of offsets is smallest. In it every operand rests at 0 or on top of a neighbour (one that
meets it in time), and none could be moved alone to a free place further down. Each operand waiting for its place has

* `base`: the highest top among its placed neighbours, and
* `lowest`: a lower bound of its offset, at least `base`.

A node takes an operand `b` with ``lowest == base`` that no waiting neighbour can still be placed below, and branches:

* `b` lies at its base: its neighbours lie above it;
* it does not: then it rests on a neighbour that is still waiting, so its lowest offset rises to the smallest ``lowest +
  size`` of those (*support*); and some waiting neighbour starts below ``base + size``, or `b` could drop (*blocker*).

Support and blocker hold for every waiting operand whose lowest offset is above its base, so they are kept up to date
throughout. A branch fails when a section's *floor* (the smallest lowest offset of its waiting operands) and the total of
their sizes exceed the capacity. Parts of the graph with no waiting operand across their borders are independent: when
one is refuted, the search returns to the last choice made in a range of sections that contains it.

Sources: the problem, the floors of sections, canonical plans and independent parts follow MiniMalloc (Moffitt 2023,
"MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023). Branching in two
with support and blocker, in place of its order by offset, is this project's. Worst case exponential.

One file on purpose: Numba's cache of a function does not see changes of what it calls in other files.
"""

from typing import NamedTuple

import numba
import numpy as np

from cgraph.memory.search.instance import Instance

# Without reference counting: nothing compiled here allocates, the caller holds every array, and counting them took four
# fifths of the time.
compiled = numba.njit(cache=True, nogil=True, forceinline=True, _nrt=False)

FOUND, REFUTED, PAUSED, FULL = 1, 2, 3, 4

# counters of a state
DEPTH, TRAIL, NODES, WAITING, SERIAL, RANGE_BEGIN, RANGE_END = range(7)
# columns of a frame
OPERAND, MARK, STAMP, BEGIN, END = range(5)
# columns of the trail
KEY, OLD, OLD_STAMP = range(3)

NONE = np.int64(-1)
HIGHEST = np.int64(1 << 62)  # above every sum of offsets and sizes


class State(NamedTuple):
    """Where a search stands; changed in place. `lowest`, `base` and `floor` are views of `value`."""

    value: np.ndarray  # [2 n + m]
    lowest: np.ndarray  # [n]
    base: np.ndarray  # [n]
    floor: np.ndarray  # [m]
    stamp: np.ndarray  # [2 n + m] serial of the frame that last saved the value
    waiting: np.ndarray  # bool [n]
    total: np.ndarray  # [m] units waiting
    crossing: np.ndarray  # [m + 1] waiting operands in use on both sides of a border
    frames: np.ndarray  # [depth, 5]
    trail: np.ndarray  # [entries, 3]
    queue: np.ndarray  # [n] operands whose support must be looked at
    queued: np.ndarray  # bool [n]
    dirty: np.ndarray  # [m] sections whose floor must be looked at
    is_dirty: np.ndarray  # bool [m]
    dirty_count: np.ndarray  # [1]
    rank: np.ndarray  # [n] smaller is taken first
    weight: np.ndarray  # float64 [m] how often a section refuted a branch
    counters: np.ndarray  # [7]


def new_state(instance: Instance, rank: np.ndarray, weight: np.ndarray) -> State:
    """A search that has placed nothing. `weight` is kept, not copied: later searches learn from it."""
    n, m = len(instance.size), len(instance.member_start) - 1
    value = np.zeros(2 * n + m, np.int64)
    state = State(
        value=value,
        lowest=value[:n],
        base=value[n : 2 * n],
        floor=value[2 * n :],
        stamp=np.zeros(2 * n + m, np.int64),
        waiting=np.ones(n, np.bool_),
        total=np.zeros(m, np.int64),
        crossing=np.zeros(m + 1, np.int64),
        frames=np.zeros((n + 1, 5), np.int64),
        trail=np.zeros((16 * (2 * n + m), 3), np.int64),
        queue=np.zeros(n, np.int64),
        queued=np.zeros(n, np.bool_),
        dirty=np.zeros(m, np.int64),
        is_dirty=np.zeros(m, np.bool_),
        dirty_count=np.zeros(1, np.int64),
        rank=rank,
        weight=weight,
        counters=np.zeros(7, np.int64),
    )
    state.counters[RANGE_END] = m
    for i in range(n):
        count(instance, state, i, 1)
    return state


def with_longer_trail(state: State) -> State:
    """The same search with room for twice as many saved values."""
    return state._replace(trail=np.concatenate([state.trail, np.zeros_like(state.trail)]))


@compiled
def advance(instance, state, capacity, tightest, node_limit):
    """Search until a plan is found, none can exist, `node_limit` nodes are counted, or the trail must grow.

    Returns FOUND (offsets are in `lowest`), REFUTED, PAUSED or FULL; after the last two it can be called again.
    """
    counters = state.counters
    while counters[WAITING] > 0:
        if counters[NODES] >= node_limit:
            return PAUSED
        if counters[TRAIL] + len(state.value) > len(state.trail):
            return FULL
        b = choose(instance, state, capacity, tightest)
        push(instance, state, b)
        good = settle(instance, state, capacity, place(instance, state, b))
        while not good:
            b = pop_to_parent(instance, state)
            if b == NONE:
                return REFUTED
            good = settle(instance, state, capacity, refuse(instance, state, b))
    return FOUND


@compiled
def choose(instance, state, capacity, tightest):
    """The next operand, within the unfinished range of the last choice; no waiting neighbour fits below it.

    The one with the lowest offset, ties by rank; with `tightest`, the lowest of the tightest section, and from there
    down as long as a neighbour fits below.
    """
    set_range(state)
    if not tightest:
        return lowest_in_range(instance, state)
    section = tightest_section(state, capacity)
    start, stop = instance.member_start[section], instance.member_start[section + 1]
    below = lowest_of(instance.member[start:stop], state.waiting, state.lowest, state.rank)
    b = below
    while below != NONE:
        b = below
        below = lowest_below(instance, state, b)
    return b


@compiled
def lowest_in_range(instance, state):
    begin, end, waiting, lowest, rank = instance.begin, instance.end, state.waiting, state.lowest, state.rank
    range_begin, range_end = state.counters[RANGE_BEGIN], state.counters[RANGE_END]
    best, offset = NONE, HIGHEST
    for i in range(len(begin)):
        if not waiting[i] or lowest[i] > offset or begin[i] < range_begin or end[i] > range_end:
            continue
        if lowest[i] < offset or rank[i] < rank[best]:
            best, offset = i, lowest[i]
    return best


@compiled
def tightest_section(state, capacity):
    """The section with the least room left, weighted by how often it refuted a branch."""
    total, floor, weight = state.total, state.floor, state.weight
    best, worst = NONE, -1.0
    for s in range(state.counters[RANGE_BEGIN], state.counters[RANGE_END]):
        if total[s] > 0:
            tightness = weight[s] / (1.0 + (capacity - floor[s] - total[s]))
            if tightness > worst:
                best, worst = s, tightness
    return best


@compiled
def lowest_of(operands, waiting, lowest, rank):
    best, offset = NONE, HIGHEST
    for i in operands:
        if waiting[i] and (lowest[i] < offset or (lowest[i] == offset and rank[i] < rank[best])):
            best, offset = i, lowest[i]
    return best


@compiled
def lowest_below(instance, state, b):
    """The first of the waiting neighbours that still fit below the lowest offset of `b`, or NONE."""
    neighbour, size, waiting, lowest, rank = (
        instance.neighbour,
        instance.size,
        state.waiting,
        state.lowest,
        state.rank,
    )
    top = lowest[b]
    best, offset = NONE, HIGHEST
    for k in range(instance.neighbour_start[b], instance.neighbour_start[b + 1]):
        i = neighbour[k]
        if (
            waiting[i]
            and lowest[i] + size[i] <= top
            and (lowest[i] < offset or (lowest[i] == offset and rank[i] < rank[best]))
        ):
            best, offset = i, lowest[i]
    return best


@compiled
def set_range(state):
    """Stay in the range of the last choice; when all in it is placed, go back to the last unfinished range."""
    counters = state.counters
    depth = counters[DEPTH]
    while not is_unfinished(state, counters[RANGE_BEGIN], counters[RANGE_END]):
        depth -= 1
        if depth < 0:
            counters[RANGE_BEGIN], counters[RANGE_END] = 0, len(state.total)
            return
        counters[RANGE_BEGIN], counters[RANGE_END] = state.frames[depth, BEGIN], state.frames[depth, END]


@compiled
def is_unfinished(state, begin, end):
    for s in range(begin, end):
        if state.total[s] > 0:
            return True
    return False


@compiled
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


@compiled
def pop_to_parent(instance, state):
    """Undo up to the last choice whose range meets the current one, that one included; its operand, or NONE.

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


@compiled
def undo(instance, state, b, mark):
    trail, value, stamp = state.trail, state.value, state.stamp
    for entry in range(state.counters[TRAIL] - 1, mark - 1, -1):
        key = trail[entry, KEY]
        value[key] = trail[entry, OLD]
        stamp[key] = trail[entry, OLD_STAMP]
    state.counters[TRAIL] = mark
    count(instance, state, b, 1)


@compiled
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


@compiled
def save(state, key, new):
    """Set a value, once per frame after noting the old one."""
    counters, value, stamp = state.counters, state.value, state.stamp
    if counters[DEPTH] > 0:
        serial = state.frames[counters[DEPTH] - 1, STAMP]
        if stamp[key] < serial:
            trail, entry = state.trail, counters[TRAIL]
            trail[entry, KEY], trail[entry, OLD], trail[entry, OLD_STAMP] = key, value[key], stamp[key]
            counters[TRAIL] = entry + 1
            stamp[key] = serial
    value[key] = new


@compiled
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


@compiled
def refuse(instance, state, b):
    """Branch two: `b` does not lie at its base. Returns the length of the queue."""
    save(state, b, state.lowest[b] + 1)
    mark_dirty(instance, state, b)
    return enqueue(state, b, 0)


@compiled
def enqueue(state, i, queued):
    if not state.queued[i]:
        state.queued[i] = True
        state.queue[queued] = i
        queued += 1
    return queued


@compiled
def mark_dirty(instance, state, i):
    dirty, is_dirty, dirty_count = state.dirty, state.is_dirty, state.dirty_count
    for s in range(instance.begin[i], instance.end[i]):
        if not is_dirty[s]:
            is_dirty[s] = True
            dirty[dirty_count[0]] = s
            dirty_count[0] += 1


@compiled
def settle(instance, state, capacity, queued):
    """Draw all conclusions; false when nothing can follow. Empties the queue and the dirty sections either way."""
    good = True
    while queued > 0:
        queued -= 1
        i = state.queue[queued]
        state.queued[i] = False
        if not good or state.lowest[i] == state.base[i]:
            continue
        support = lowest_support(instance, state, i)
        if support + instance.size[i] > capacity:
            good = False
        elif support > state.lowest[i]:
            save(state, i, support)
            mark_dirty(instance, state, i)
            queued = enqueue_raised(instance, state, i, queued)
    for k in range(state.dirty_count[0]):
        s = state.dirty[k]
        state.is_dirty[s] = False
        if good and not raise_floor(instance, state, s, capacity):
            state.weight[s] += 1.0
            good = False
    state.dirty_count[0] = 0
    return good


@compiled
def lowest_support(instance, state, i):
    """The lowest top that a waiting neighbour can have; HIGHEST without a support or without a blocker."""
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


@compiled
def enqueue_raised(instance, state, i, queued):
    """Queue the waiting neighbours of `i` whose own support may have been `i`."""
    neighbour, waiting, lowest, base = instance.neighbour, state.waiting, state.lowest, state.base
    for k in range(instance.neighbour_start[i], instance.neighbour_start[i + 1]):
        j = neighbour[k]
        if waiting[j] and lowest[j] > base[j]:
            queued = enqueue(state, j, queued)
    return queued


@compiled
def raise_floor(instance, state, s, capacity):
    """Bring the floor of section `s` up to date; is there still room for what waits in it?"""
    if state.total[s] == 0:
        return True
    member, waiting, lowest = instance.member, state.waiting, state.lowest
    floor = HIGHEST
    for k in range(instance.member_start[s], instance.member_start[s + 1]):
        i = member[k]
        if waiting[i]:
            floor = min(floor, lowest[i])
    if floor != state.floor[s]:
        save(state, 2 * len(instance.size) + s, floor)
    return floor + state.total[s] <= capacity
