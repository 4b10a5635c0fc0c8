"""Stable sorting of rows, with the indices of the items, and binary search.

Bottom-up merge sort (Knuth, The Art of Computer Programming 3, 5.2.4) after insertion sort of short pieces; ordered
pieces are copied whole, and NaNs are set aside first. O(n log n) comparisons, two buffers of n. One thread sorts one
row. NaN comes last in either direction; -0 equals 0.
"""

from collections.abc import Callable
from types import SimpleNamespace

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import MutableValue, Ptr, Val
from cgraph.kernels.llvm.vfloat import any_lane
from cgraph.kernels.move.emit import RowSpan, each_run
from cgraph.kernels.sort.signature import FEW, LEAST_ROOM
from cgraph.record import Record

PIECE = 8  # items sorted by insertion
DIGITS = 256


class Items(Record):
    """Keys and, optionally, the index of each: two arrays that move together. Addresses are variables."""

    k: Builder
    keys: MutableValue
    places: MutableValue | None
    dtype: str
    index: str

    def key(self, i: Val) -> Ptr:
        return self.k.pointer(self.keys.value, self.dtype) + i

    def place(self, i: Val) -> Ptr:
        assert self.places is not None
        return self.k.pointer(self.places.value, self.index) + i

    def set_from(self, i: Val, other: "Items", j: Val) -> None:
        self.key(i).store(other.key(j).load())
        if self.places is not None:
            self.place(i).store(other.place(j).load())

    def copy_from(self, i: Val, other: "Items", j: Val, count: Val) -> None:
        self.k.copy_bytes(self.key(i), other.key(j), count * int(self.dtype[1:]))
        if self.places is not None:
            self.k.copy_bytes(self.place(i), other.place(j), count * int(self.index[1:]))

    def swap(self, other: "Items") -> None:
        for mine, its in ((self.keys, other.keys), (self.places, other.places)):
            if mine is not None and its is not None:
                mine.value, its.value = its.value, mine.value


def rows(k: Builder, dtype: str, index: str, descending: bool, wants_values: bool):
    """Sort rows; write the first `most` values (if `wants_values`) and indices (if `index` is a dtype).

    Every group of rows has `group_bytes` of scratch for two buffers of keys and two of indices. Task: a group of rows.
    """

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        n, at = a.columns, run.row // a.each * a.group_bytes + a.scratch
        place_bytes, key_bytes = n * (int(index[1:]) if index else 0), n * int(dtype[1:])

        def buffer(i: int) -> Items:
            keys = k.slot(at + place_bytes * 2 + key_bytes * i)
            return Items(k, keys, k.slot(at + place_bytes * i) if index else None, dtype, index)

        now, then = buffer(0), buffer(1)
        row = run.items(2, "u1")
        numbers = gather_row(k, now, row, a, k.const(0, "i8"), False)
        insert(k, now, numbers, descending)
        merge_all(k, now, then, numbers, descending)
        with k.if_(numbers < n):
            gather_row(k, now, row, a, numbers, True)
        with k.loop(0, a.most) as i:
            if wants_values:
                run.item(0, dtype, i).store(now.key(i).load(), align=1)
            if index:
                run.item(1, index, i).store(now.place(i).load(), align=1)

    each_run(k, ("values", "places", "x"), body)


def leading_rows(k: Builder, dtype: str, descending: bool, wants_values: bool):
    """Write the first `most` of `n` items in sorted order, for small `most`: indices and, if `wants_values`, values.

    Items that come before the last of the first `most` so far are collected, in order; vectors of contiguous items
    without such a one are passed over. When the room is full, the first `most` of it stay, and at the end they are
    sorted. For a row in random order time O(n) for comparisons and O(most log n) for the rest. Every group of rows has
    `group_bytes` of scratch for two buffers of keys and indices. Task: a group of rows.
    """
    key = f"u{dtype[1:]}"

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        at, row = run.row // a.each * a.group_bytes + a.scratch, run.items(2, "u1")
        half = k.larger(a.most, LEAST_ROOM)
        now, then = (
            Items(k, k.slot(at + half * 16 + half * int(key[1:]) * i), k.slot(at + half * 8 * i), key, "i8")
            for i in (0, 1)
        )
        collect_first(k, now, row, a, half * 2, dtype, descending)
        insert(k, now, a.most, True)
        merge_all(k, now, then, a.most, True)
        with k.loop(0, a.most) as i:
            place = now.place(i).load()
            run.item(1, "i8", i).store(place, align=1)
            if wants_values:
                item = row.plus_bytes(place * a.x_step).as_dtype(dtype).load(align=1)
                run.item(0, dtype, i).store(item, align=1)

    each_run(k, ("values", "places", "x"), body)


def collect_first(
    k: Builder, items: Items, row: Ptr, a: SimpleNamespace, room: Val, dtype: str, descending: bool
) -> None:
    """Collect the first `most` items of a row with `n` items in a buffer for `room`, in the order of the row."""
    n, lanes = a.columns, min(k.target.lanes_of(dtype), FEW)
    start = k.smaller(room, n)
    count, at, last = k.slot(start), k.slot(start), k.slot(0, items.dtype)

    def put(i: Val, to: Val) -> Val:
        key = ordered_key(k, row.plus_bytes(i * a.x_step).as_dtype(dtype).load(align=1), descending)
        items.key(to).store(key)
        items.place(to).store(i)
        return key

    def offer(i: Val) -> None:
        count.value = count.value + k.cast(put(i, count.value) > last.value, "i8")

    with k.loop(0, start) as i:
        put(i, i)
    whole = k.select(a.x_step == int(dtype[1:]), start + (n - start) // lanes * lanes, start)
    with k.loop_while() as rounds:
        last.value = keep_first(k, items, count.value, a.most)
        count.value = a.most
        rounds.until(at.value >= n)
        with k.loop_while() as w:
            w.until((at.value >= whole) | (count.value + lanes > room))
            some = ordered_key(k, row.as_dtype(dtype).load(at.value, lanes, align=1), descending)
            earlier = some > k.splat(last.value, lanes)
            with k.if_(any_lane(k, earlier), likely=False), k.loop(0, lanes) as j:
                offer(at.value + j)
            at.value = at.value + lanes
        with k.loop_while() as w:
            w.until((at.value < whole) | (at.value >= n) | (count.value >= room))
            offer(at.value)
            at.value = at.value + 1


def keep_first(k: Builder, items: Items, count: Val, most: Val) -> Val:
    """Keep the first `most` of `count` items with descending keys, in their order; return the last of their keys."""
    last, equals = last_key(k, lambda i: items.key(i).load(), count, most)
    to, left = k.slot(0, "i8"), k.slot(equals)
    with k.loop(0, count) as i:
        item, place = items.key(i).load(), items.place(i).load()
        equal = (item == last) & (left.value > 0)
        items.key(to.value).store(item)
        items.place(to.value).store(place)
        left.value = left.value - k.cast(equal, "i8")
        to.value = to.value + k.cast((item > last) | equal, "i8")
    return last


def few_rows(k: Builder, dtype: str, descending: bool, wants_values: bool):
    """Write the first `most` of `n` items in sorted order, for `most` of at most `FEW`: indices and perhaps values.

    The first items so far are sorted. An item that comes before the last of them is inserted, which few do: about
    ``most * log(n / most)`` of a row in random order. Vectors of contiguous items without such a one are passed over.
    Task: a group of rows.
    """
    first = FirstItems(k.stack_ptr(f"u{dtype[1:]}", FEW), k.stack_ptr("i8", FEW))
    lanes = k.target.lanes_of(dtype)

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        row = run.items(2, "u1")

        def item_at(i: Val) -> Val:
            return row.plus_bytes(i * a.x_step).as_dtype(dtype).load(align=1)

        with k.loop(0, a.most) as i:
            insert_item(k, first, ordered_key(k, item_at(i), descending), i, i)

        def offer(i: Val) -> None:
            item = ordered_key(k, item_at(i), descending)
            with k.if_(item > first.keys.load(a.most - 1), likely=False):
                insert_item(k, first, item, i, a.most - 1)

        whole = k.select(a.x_step == int(dtype[1:]), a.most + (a.columns - a.most) // lanes * lanes, a.most)
        with k.loop(a.most, whole, lanes) as i:
            some = ordered_key(k, row.as_dtype(dtype).load(i, lanes, align=1), descending)
            earlier = some > k.splat(first.keys.load(a.most - 1), lanes)
            with k.if_(any_lane(k, earlier), likely=False), k.loop(0, lanes) as j:
                offer(i + j)
        with k.loop(whole, a.columns) as i:
            offer(i)
        with k.loop(0, a.most) as i:
            place = first.places.load(i)
            run.item(1, "i8", i).store(place, align=1)
            if wants_values:
                run.item(0, dtype, i).store(item_at(place), align=1)

    each_run(k, ("values", "places", "x"), body)


class FirstItems(Record, eq=False):
    """The first items of a row so far, sorted: ordered keys and indices."""

    keys: Ptr
    places: Ptr


def insert_item(k: Builder, first: FirstItems, key: Val, i: Val, free: Val) -> None:
    """Insert the key of item `i` before smaller ones, which move towards the free place after them."""
    to = k.slot(free)
    with k.loop_while() as w:
        w.until(to.value <= 0)
        other = first.keys.load(to.value - 1)
        w.until(other >= key)
        first.keys.store(other, to.value)
        first.places.store(first.places.load(to.value - 1), to.value)
        to.value = to.value - 1
    first.keys.store(key, to.value)
    first.places.store(i, to.value)


def ordered_key(k: Builder, x: Val, descending: bool) -> Val:
    """Return an unsigned integer that is larger for earlier items; equal for equal items, 0 for NaN."""
    key, top = f"u{x.dtype[1:]}", 1 << (8 * int(x.dtype[1:]) - 1)
    if not x.is_float:
        bits = k.cast(x, key) ^ top if x.dtype[0] == "i" else x
        return bits if descending else ~bits
    bits = k.bits(x + 0.0, key)  # -0 becomes 0
    bits = k.select((bits & top) != 0, ~bits, bits | top)
    return k.select(k.is_nan(x), k.const(0, key), bits if descending else ~bits)


def last_key(k: Builder, key_of: Callable[[Val], Val], n: Val, most: Val) -> tuple[Val, Val]:
    """Return the key at index ``most - 1`` of `n` descending keys, and its number of equals before index `most`."""
    counts = k.stack_ptr("i8", DIGITS)
    dtype = key_of(k.const(0, "i8")).dtype
    key, left = k.slot(0, dtype), k.slot(most)
    top = 8 * int(dtype[1:]) - 8
    for shift in range(top, -1, -8):
        with k.loop(0, DIGITS) as i:
            counts.store(0, i)
        with k.loop(0, n) as i:
            item = key_of(i)
            is_like_it = (item ^ key.value) >> shift < DIGITS if shift < top else k.const(1, "b1")
            with k.if_(is_like_it):
                at = counts + k.cast((item >> shift) & (DIGITS - 1), "i8")
                at.store(at.load() + 1)
        digit = k.slot(DIGITS - 1, "i8")
        with k.loop_while() as w:
            some = counts.load(digit.value)
            w.until(left.value <= some)
            left.value, digit.value = left.value - some, digit.value - 1
        key.value = key.value | (k.cast(digit.value, dtype) << shift)
    return key.value, left.value


def gather_row(k: Builder, items: Items, row: Ptr, a: SimpleNamespace, start: Val, nan: bool) -> Val:
    """Collect the NaNs of a row, or all other items, in order, from `start` on; return the next free position."""
    to = k.slot(start)
    with k.loop(0, a.columns) as i:
        item = row.plus_bytes(i * a.x_step).as_dtype(items.dtype).load(align=1)
        is_nan = k.is_nan(item) if item.is_float else k.const(0, "b1")
        with k.if_(is_nan if nan else ~is_nan):
            items.key(to.value).store(item)
            if items.places is not None:
                items.place(to.value).store(k.cast(i, items.index))
            to.value = to.value + 1
    return to.value


def insert(k: Builder, items: Items, n: Val, descending: bool) -> None:
    """Sort pieces of PIECE items by insertion."""
    with k.loop(0, n) as i:
        start, key = i - i % PIECE, items.key(i).load()
        place = items.place(i).load() if items.places is not None else None
        to = k.slot(i)
        with k.loop_while() as w:
            w.until(to.value <= start)
            other = items.key(to.value - 1).load()
            w.until(~comes_first(key, other, descending))
            items.set_from(to.value, items, to.value - 1)
            to.value = to.value - 1
        items.key(to.value).store(key)
        if place is not None:
            items.place(to.value).store(place)


def merge_all(k: Builder, now: Items, then: Items, n: Val, descending: bool) -> None:
    """Merge sorted pieces until one is left, in `now`."""
    width = k.slot(PIECE, "i8")
    with k.loop_while() as w:
        w.until(width.value >= n)
        with k.loop(0, n, width.value * 2) as low:
            middle, high = k.smaller(low + width.value, n), k.smaller(low + width.value * 2, n)
            merge(k, now, then, (low, middle, high), descending)
        now.swap(then)
        width.value = width.value * 2


def merge(k: Builder, source: Items, to: Items, edges: tuple[Val, Val, Val], descending: bool) -> None:
    """Merge ``low .. middle`` and ``middle .. high``; of equal items, those of the first piece come first."""
    low, middle, high = edges
    i, j, o = k.slot(low), k.slot(middle), k.slot(low)
    with k.if_(middle < high):
        crossed = comes_first(source.key(middle).load(), source.key(middle - 1).load(), descending)
        equal = middle - low == high - middle
        with k.if_(crossed & equal):
            merge_halves(k, source, to, edges, descending)
            i.value, j.value = middle, high
        with k.if_(crossed & ~equal), k.loop_while() as w:
            w.until((i.value >= middle) | (j.value >= high))
            right = forward(k, source, to, (i.value, j.value, o.value), descending)
            i.value, j.value, o.value = i.value + (1 - right), j.value + right, o.value + 1
    left = middle - i.value
    to.copy_from(o.value, source, i.value, left)
    to.copy_from(o.value + left, source, j.value, high - j.value)


def merge_halves(k: Builder, source: Items, to: Items, edges: tuple[Val, Val, Val], descending: bool) -> None:
    """Merge two pieces of one length from both ends at once: neither end can run out of items before the middle."""
    low, middle, high = edges
    i, j = k.slot(low), k.slot(middle)
    last_i, last_j = k.slot(middle - 1), k.slot(high - 1)
    with k.loop(0, middle - low) as n:
        right = forward(k, source, to, (i.value, j.value, low + n), descending)
        x, y = source.key(last_i.value).load(), source.key(last_j.value).load()
        crossed = comes_first(y, x, descending)
        to.set_from(high - 1 - n, source, either(k, crossed, last_i.value, last_j.value))
        left = k.cast(crossed, "i8")
        i.value, j.value = i.value + (1 - right), j.value + right
        last_i.value, last_j.value = last_i.value - left, last_j.value - (1 - left)


def forward(k: Builder, source: Items, to: Items, at: tuple[Val, Val, Val], descending: bool) -> Val:
    """Write the smaller of two items; return 1 if it was the second."""
    i, j, o = at
    right = comes_first(source.key(j).load(), source.key(i).load(), descending)
    to.set_from(o, source, either(k, right, j, i))
    return k.cast(right, "i8")


def either(k: Builder, condition: Val, x: Val, y: Val) -> Val:
    """Select without a branch, because no branch predictor would guess the choice."""
    choice = k.select(condition, x, y)
    assert isinstance(choice.v, ir.Instruction)
    choice.v.set_metadata("unpredictable", k.module.add_metadata([]))
    return choice


def comes_first(x: Val, y: Val, descending: bool) -> Val:
    """Return True if `x` must come before `y`; neither is a NaN."""
    return x > y if descending else x < y


def before(k: Builder, x: Val, y: Val) -> Val:
    """Return True if `x` comes before `y` in an ascending row with NaN last."""
    return (x < y) | (k.is_nan(y) & ~k.is_nan(x)) if x.is_float else x < y


def search(k: Builder, dtype: str, right: bool):
    """Find the insertion point of each `v` in the ascending row at `row`. Task: some rows, one block of columns."""

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        row = k.pointer(a.row, "u1")
        with k.loop(0, run.count) as i:
            v = run.item(1, dtype, i).load(align=1)

            def is_before(place: Val, v: Val = v) -> Val:
                item = row.plus_bytes(place * a.row_step).as_dtype(dtype).load(align=1)
                return ~before(k, v, item) if right else before(k, item, v)

            run.item(0, "i8", i).store(insertion_point(k, k.const(0, "i8"), a.n, is_before), align=1)

    each_run(k, ("out", "v"), body)


def insertion_point(k: Builder, low: Val, high: Val, is_before: Callable[[Val], Val]) -> Val:
    """Return the first index in ``low .. high`` for which `is_before` is false, or `high`."""
    first, last = k.slot(low), k.slot(high)
    with k.loop_while() as w:
        w.until(first.value >= last.value)
        middle = (first.value + last.value) >> 1
        above = is_before(middle)
        first.value, last.value = k.select(above, middle + 1, first.value), k.select(above, last.value, middle)
    return first.value


def distinct(k: Builder, dtype: str):
    """Write the first of each group of equal items of an ascending `x`, at most `most`, and their number. One task."""
    a = k.args()
    count = k.slot(0, "i8")
    with k.loop(0, a.n) as i:
        item, previous = a.x.load(i), a.x.load(k.larger(i - 1, 0))
        with k.if_((i == 0) | before(k, previous, item)):
            with k.if_(count.value < a.most):
                a.out.store(item, count.value)
            count.value = count.value + 1
    a.count.store(count.value)
