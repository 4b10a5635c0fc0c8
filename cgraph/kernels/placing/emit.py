"""Native loops of the memory planner: two strategies that compare each operand with all others, and first fit.

They run on the planning machine, not in a program. Searches read a vector at a time: each lane keeps its best
candidate, and the best of all lanes is chosen at the end.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import fold, shuffle
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.placing.signature import FAR


def in_gaps(k: Builder) -> None:
    """Place each operand in the smallest gap where it fits, the lowest of equals, or above all that it overlaps in
    time.

    Task: all operands.
    """
    a = k.args()
    table = [a.placed + a.room * row for row in range(4)]
    with k.loop(a.start, a.stop) as i:
        nbytes, first, last = a.nbytes.load(i), a.first.load(i), a.last.load(i)
        at = smallest_gap(k, table, i, nbytes, first, last)
        a.offsets.store(at, i)
        column = first_beyond(k, table[0], i, at)
        for row, x in zip(table, (at, at + nbytes, first, last)):
            shift(k, row, column, i, k.const(1, "i8"))
            row.store(x, column)


def smallest_gap(k: Builder, table: Sequence[Ptr], count: Val, nbytes: Val, first: Val, last: Val) -> Val:
    """Return the start of the smallest sufficient gap between the placed operands that overlap in time, or their end.

    The floor of each lane is the highest end of those before it.
    """
    lanes = k.target.lanes_of("i8")
    bottom, far = k.const(0, "i8", lanes), k.const(FAR, "i8", lanes)
    with fold(k, 0, count, (bottom, far, bottom), lanes) as s:
        floor, least, at = s.values
        begins, ends, firsts, lasts = (row.load(s.i, lanes) for row in table)
        meets = (firsts <= last) & (lasts >= first)
        tops = k.larger(floor, running_largest(k, k.select(meets, ends, bottom)))
        floors = shuffle(k, floor, tops, range(lanes - 1, 2 * lanes - 1))
        spare = begins - floors - nbytes
        is_better = meets & (spare >= 0) & (spare < least)
        top = shuffle(k, tops, tops, [lanes - 1] * lanes)
        s.next = top, k.select(is_better, spare, least), k.select(is_better, floors, at)
    floor, spare, at = s.values
    least, lowest = first_least(k, spare, at)
    return k.select(least < FAR, lowest, k.lane(floor, 0))


def running_largest(k: Builder, x: Val) -> Val:
    """Return for each lane the largest of it and those before; numbers are >= 0."""
    nothing, step = k.const(0, "i8", x.lanes), 1
    while step < x.lanes:
        x = k.larger(x, shuffle(k, nothing, x, range(x.lanes - step, 2 * x.lanes - step)))
        step *= 2
    return x


def first_least(k: Builder, keys: Val, ties: Val) -> tuple[Val, Val]:
    """Return the least key, and the least tie-breaker of the lanes that have it."""
    lanes = keys.lanes
    while lanes > 1:
        lanes //= 2
        (key, other), (tie, its) = ((k.slice(x, 0, lanes), k.slice(x, lanes, lanes)) for x in (keys, ties))
        is_less = (other < key) | ((other == key) & (its < tie))
        keys, ties = k.select(is_less, other, key), k.select(is_less, its, tie)
    return k.lane(keys, 0), k.lane(ties, 0)


def first_beyond(k: Builder, rising: Ptr, count: Val, x: Val) -> Val:
    """Return the index of the first of `count` ascending numbers that is larger than `x`, by bisection."""
    low, high = k.slot(0, "i8"), k.slot(count)
    with k.loop_while() as w:
        w.until(low.value >= high.value)
        middle = (low.value + high.value) >> 1
        is_beyond = rising.load(middle) > x
        low.value = k.select(is_beyond, low.value, middle + 1)
        high.value = k.select(is_beyond, middle, high.value)
    return low.value


def in_lines(k: Builder) -> None:
    """Place the longest operand that fits, the earliest of equals, on the lowest line, the leftmost of equals.

    A line on which none fits rises to its lower neighbour and merges with it, or with both. Task: all operands.
    """
    a = k.args()
    begins, heights = a.lines, a.lines + a.room
    with k.loop(a.start, a.stop):
        line, i = k.slot(0, "i8"), k.slot(0, "i8")
        with k.loop_while() as w:
            line.value = least_of(k, heights, k.const(1, "i8"), a.line_count.load() + 1)
            i.value = longest_inside(k, a, begins.load(line.value), begins.load(line.value + 1))
            w.until(i.value < FAR)
            lift(k, a.line_count, (begins, heights), line.value)
        a.offsets.store(heights.load(line.value), i.value)
        a.shortness.store(FAR, i.value)
        top = heights.load(line.value) + a.nbytes.load(i.value)
        put(k, a.line_count, (begins, heights), line.value, a.first.load(i.value), a.last.load(i.value) + 1, top)


def longest_inside(k: Builder, a: SimpleNamespace, begin: Val, end: Val) -> Val:
    """Return the longest waiting operand inside columns ``[begin, end)``, FAR if there is none."""
    start, stop = a.operands.load(begin), a.operands.load(end)
    return least_of(k, a.shortness, start, stop, lambda i, lanes: a.last.load(i, lanes) < end)


def put(k: Builder, count: Ptr, lines: tuple[Ptr, Ptr], line: Val, first: Val, stop: Val, top: Val) -> None:
    """Raise columns ``first .. stop`` of a line to `top`; the rest of the line on both sides stays."""
    begins, heights = lines
    height = heights.load(line)
    left, right = (k.cast(x, "i8") for x in (begins.load(line) < first, stop < begins.load(line + 1)))
    resize(k, count, lines, line + 1, left + right)
    middle = line + left
    begins.store(first, middle)
    heights.store(top, middle)
    with k.if_(right != 0):
        begins.store(stop, middle + 1)
        heights.store(height, middle + 1)


def lift(k: Builder, count: Ptr, lines: tuple[Ptr, Ptr], line: Val) -> None:
    """Raise a line to its lower neighbour and merge them; both neighbours if they are equally high."""
    heights = lines[1]
    before, after = heights.load(line - 1), heights.load(line + 1)
    height = k.smaller(before, after)
    left, right = k.cast(before == height, "i8"), k.cast(after == height, "i8")
    heights.store(height, line - left)
    resize(k, count, lines, line + 1 + right, -(left + right))


def resize(k: Builder, count: Ptr, lines: tuple[Ptr, Ptr], start: Val, more: Val) -> None:
    """Insert or remove lines at `start`."""
    for row in lines:
        shift(k, row, start, count.load() + 2, more)
    count.store(count.load() + more)


def least_of(k: Builder, numbers: Ptr, start: Val, stop: Val, is_meant: Callable[[Val, int], Val] | None = None) -> Val:
    """Return the index of the smallest number that satisfies `is_meant`, the first of equals; FAR if all are FAR."""
    lanes = k.target.lanes_of("i8")
    far = k.const(FAR, "i8", lanes)
    with fold(k, start, stop, (far, far), lanes) as s:
        least, index = s.values
        x, places = numbers.load(s.i, lanes), k.splat(s.i, lanes) + k.iota("i8", lanes)
        is_less = (places < stop) & (x < least)
        if is_meant:
            is_less = is_less & is_meant(s.i, lanes)
        s.next = k.select(is_less, x, least), k.select(is_less, places, index)
    return first_least(k, *s.values)[1]


def shift(k: Builder, numbers: Ptr, start: Val, stop: Val, places: Val) -> None:
    """Move numbers ``start .. stop - 1`` by `places`."""
    at = numbers + start
    k.move_bytes(at + places, at, (stop - start) * 8)


def first_fit(k: Builder) -> None:
    """Place each group in order at the lowest offset that no placed neighbour forbids. Task: all groups.

    A group inside a forbidden interval rises to its end; all intervals are checked again until nothing rises.
    """
    a = k.args()
    with k.loop(0, a.count) as turn:
        group = a.order.load(turn)
        first, stop = a.places.load(group), a.places.load(group + 1)
        base, before = k.slot(0, "i8"), k.slot(-1, "i8")
        with k.loop_while() as w:
            w.until(base.value == before.value)
            before.value = base.value
            with k.loop(first, stop) as i:
                other, at = a.bases.load(a.others.load(i)), base.value
                end = other + a.ends.load(i)
                is_inside = (other >= 0) & (other + a.begins.load(i) < at) & (at < end)
                base.value = k.select(is_inside, (end + (a.alignment - 1)) / a.alignment * a.alignment, at)
        a.bases.store(base.value, group)
