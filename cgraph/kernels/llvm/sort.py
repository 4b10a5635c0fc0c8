"""Stable sorting of rows, with the places the items came from, and binary search.

Merge sort from the bottom up (Knuth, The Art of Computer Programming 3, 5.2.4) after insertion sort of short pieces;
two pieces that are in order already are copied whole. O(n log n) comparisons, two buffers of n. One row is one
thread's work. NaN comes last in either direction; -0 equals 0.
"""

from dataclasses import dataclass
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder, Ptr, Slot, Val
from cgraph.kernels.llvm.move import Run, copy_bytes, each_run

PIECE = 8  # items sorted by insertion


@dataclass(frozen=True)
class Items:
    """Keys and, when wanted, where each came from: two arrays that move together. Addresses are variables."""

    k: Builder
    keys: Slot
    places: Slot | None
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
        copy_bytes(self.k, self.key(i), other.key(j), count * int(self.dtype[1:]))
        if self.places is not None:
            copy_bytes(self.k, self.place(i), other.place(j), count * int(self.index[1:]))

    def swap(self, other: "Items") -> None:
        for mine, its in ((self.keys, other.keys), (self.places, other.places)):
            if mine is not None and its is not None:
                mine.value, its.value = its.value, mine.value


def rows(k: Builder, dtype: str, index: str, descending: bool, values: bool):
    """Sort rows of `n` items and write the first `most` values (when `values`) and places (when `index` is a dtype).

    Every group of rows has `group_bytes` of scratch for two buffers of keys and two of places. Task: a group of rows.
    """

    def body(run: Run, a: SimpleNamespace) -> None:
        n, at = a.columns, run.row // a.each * a.group_bytes + a.scratch
        place_bytes, key_bytes = n * (int(index[1:]) if index else 0), n * int(dtype[1:])

        def buffer(i: int) -> Items:
            keys = k.slot(at + place_bytes * 2 + key_bytes * i)
            return Items(k, keys, k.slot(at + place_bytes * i) if index else None, dtype, index)

        now, then = buffer(0), buffer(1)
        with k.loop(0, n) as i:
            now.key(i).store(run.item(2, dtype, i).load(align=1))
            if index:
                now.place(i).store(k.cast(i, index))
        insert(k, now, n, descending)
        merge_all(k, now, then, n, descending)
        with k.loop(0, a.most) as i:
            if values:
                run.item(0, dtype, i).store(now.key(i).load(), align=1)
            if index:
                run.item(1, index, i).store(now.place(i).load(), align=1)

    each_run(k, ("values", "places", "x"), body, most="i8", scratch="i8", group_bytes="i8")


def insert(k: Builder, items: Items, n: Val, descending: bool) -> None:
    """Sort pieces of PIECE items, each by inserting its items one by one."""
    with k.loop(0, n) as i:
        start, key = i - i % PIECE, items.key(i).load()
        place = items.place(i).load() if items.places is not None else None
        to = k.slot(i)
        with k.loop_while() as w:
            w.until(to.value <= start)
            w.until(~before(k, key, items.key(to.value - 1).load(), descending))
            items.set_from(to.value, items, to.value - 1)
            to.value = to.value - 1
        items.key(to.value).store(key)
        if place is not None:
            items.place(to.value).store(place)


def merge_all(k: Builder, now: Items, then: Items, n: Val, descending: bool) -> None:
    """Merge sorted pieces until there is one; it ends up in `now`."""
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
        crossed = before(k, source.key(middle).load(), source.key(middle - 1).load(), descending)
        with k.if_(crossed), k.loop_while() as w:
            w.until((i.value >= middle) | (j.value >= high))
            right = before(k, source.key(j.value).load(), source.key(i.value).load(), descending)
            to.set_from(o.value, source, k.select(right, j.value, i.value))
            step = k.cast(right, "i8")
            i.value, j.value, o.value = i.value + (1 - step), j.value + step, o.value + 1
    left = middle - i.value
    to.copy_from(o.value, source, i.value, left)
    to.copy_from(o.value + left, source, j.value, high - j.value)


def before(k: Builder, x: Val, y: Val, descending: bool) -> Val:
    """Whether `x` has to come before `y`."""
    smaller = x > y if descending else x < y
    return smaller | (k.is_nan(y) & ~k.is_nan(x)) if x.is_float else smaller


def search(k: Builder, dtype: str, right: bool):
    """Where each `v` is to be inserted into the ascending row at `row`. Task: some rows, one block of columns."""

    def body(run: Run, a: SimpleNamespace) -> None:
        row = k.pointer(a.row, "u1")
        with k.loop(0, run.count) as i:
            v = run.item(1, dtype, i).load(align=1)
            low, high = k.slot(0, "i8"), k.slot(a.n)
            with k.loop_while() as w:
                w.until(low.value >= high.value)
                middle = (low.value + high.value) >> 1
                item = row.plus_bytes(middle * a.row_step).as_dtype(dtype).load(align=1)
                above = ~before(k, v, item, False) if right else before(k, item, v, False)
                low.value, high.value = k.select(above, middle + 1, low.value), k.select(above, high.value, middle)
            run.item(0, "i8", i).store(low.value, align=1)

    each_run(k, ("out", "v"), body, row="i8", row_step="i8", n="i8")


def distinct(k: Builder, dtype: str):
    """The first of each group of equal items of an ascending contiguous `x`, at most `most`; how many. One task."""
    a = k.args(out=f"{dtype}*", count="i8*", x=f"{dtype}*", n="i8", most="i8")
    found = k.slot(0, "i8")
    with k.loop(0, a.n) as i:
        item, previous = a.x.load(i), a.x.load(k.larger(i - 1, 0))
        with k.if_((i == 0) | before(k, previous, item, False)):
            with k.if_(found.value < a.most):
                a.out.store(item, found.value)
            found.value = found.value + 1
    a.count.store(found.value)
