"""Walks over arrays of any rank: the flat position of a row becomes one byte offset per operand.

The axes of a walk are a table of integers: for each axis, fastest first, its extent and then each operand's stride in
bytes. Divisions are done once for a run of rows along the first axis, never for each element.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cgraph.kernels.llvm import storage
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import divmod_of
from cgraph.kernels.llvm.values import Ptr, Val


def walk(
    k: Builder, axes: Ptr, rank: Val, operands: int, low: Val, high: Val, body: Callable[[Val, list[Val]], None]
) -> None:
    """Emit ``body(row, offsets)`` for each flat position in ``low .. high``; `rank` >= 1."""
    with each_run(k, axes, rank, operands, low, high) as (start, count, offsets, steps), k.loop(0, count) as j:
        body(start + j, [at + j * step for at, step in zip(offsets, steps)])


def walk_groups(
    k: Builder,
    axes: Ptr,
    rank: Val,
    operands: int,
    low: Val,
    high: Val,
    group: int,
    body: Callable[[Val, list[list[Val]]], None],
) -> None:
    """As `walk`, with several positions at a time if they are contiguous along the fastest axis.

    ``body(row, offsets)`` gets the offsets of one position, or of `group` of them; it is emitted twice.
    """
    with each_run(k, axes, rank, operands, low, high) as (start, count, offsets, steps):
        whole = count // group * group
        for first, last, members in ((0, whole, group), (whole, count, 1)):
            with k.loop(first, last, members) as j:
                here = [[at + (j + i) * step for at, step in zip(offsets, steps)] for i in range(members)]
                body(start + j, here)


@contextmanager
def each_run(
    k: Builder, axes: Ptr, rank: Val, operands: int, low: Val, high: Val
) -> Iterator[tuple[Val, Val, list[Val], list[Val]]]:
    """Yield the runs of positions along the fastest axis: the first, the count, its offsets, and their steps."""
    row, extent = k.slot(low), axes.load(0)
    steps = [axes.load(1 + i) for i in range(operands)]
    with k.loop_while() as w:
        w.until(row.value >= high)
        start = row.value
        offsets = offsets_of(k, axes, rank, operands, start)
        count = k.smaller(high - start, extent - k.cast(divmod_of(k.count(start), k.count(extent))[1], "i8"))
        yield start, count, offsets, steps
        row.value = start + count


def offsets_of(k: Builder, axes: Ptr, rank: Val, operands: int, row: Val) -> list[Val]:
    """Return the byte offset of each operand at the flat position `row`."""
    rest = k.slot(k.count(row))
    offsets = [k.slot(0, "i8") for _ in range(operands)]
    with k.loop(0, rank) as axis:
        entry = axes + axis * (operands + 1)
        rest.value, place = divmod_of(rest.value, k.count(entry.load(0)))
        for i, offset in enumerate(offsets):
            offset.value = offset.value + k.cast(place, "i8") * entry.load(1 + i)
    return [offset.value for offset in offsets]


def load_strided(k: Builder, at: Ptr, stride: Val, lanes: int) -> Val:
    """Load `lanes` elements, `stride` bytes apart."""
    if not lanes:
        return at.load()
    raw = at.as_dtype("u1") if at.dtype == "b1" else at
    kind = storage.register_dtype(raw.dtype)
    vector = k.const(0, kind, lanes)
    for i in range(lanes):
        one = raw.plus_bytes(stride * i).load()
        vector = k.wrap(k.b.insert_element(vector.v, one.v, k.const(i, "i4").v), kind, lanes)
    return vector != 0 if at.dtype == "b1" else vector


def store_strided(k: Builder, at: Ptr, stride: Val, value: Val) -> None:
    """Store the lanes of `value`, `stride` bytes apart."""
    for i in range(value.lanes):
        at.plus_bytes(stride * i).store(k.lane(value, i))
