"""Packing of matrices of bytes: rows as channel-blocked pixels, columns as panels of filters."""

from collections.abc import Iterator
from contextlib import contextmanager

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP, as_vector, dots
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of, first_lanes, fold, masked_load, total, transpose
from cgraph.kernels.llvm.values import Ptr, Val

SIGNS = -0x7F7F7F80  # 0x80808080: four bytes less 128, as numbers with signs
ONES = 0x01010101


@final
def rows(k: Builder, near: bool, sums: bool) -> None:
    """Pack the columns of a row, 0 beyond them, and add up the row. Task: one row of one matrix."""
    a = k.args()
    lanes = k.target.lanes
    with k.task_loop() as task:
        image, row = divmod_of(task, a.rows)
        x = a.x + (image * a.x_image + row * a.x_row)
        out = a.out + (image * a.o_image + row * lanes)
        with fold(k, 0, a.blocks, [k.const(0, "i4", lanes)]) as s:
            column = s.i * lanes
            value = some_bytes(k, x + column * a.x_step, a.k - column, a.x_step, near)
            (out + s.i * a.o_plane).store(value)
            s.next = [s.values[0] + k.cast(value, "i4")]
        if sums:
            k.pointer(a.terms, "i4").store(total(k, s.values[0]) * k.cast(a.factor, "i4"), task)


def some_bytes(k: Builder, x: Ptr, count: Val, step: Val, near: bool) -> Val:
    """Return a vector of strided bytes, 0 from `count` on."""
    lanes = k.target.lanes
    if near:
        return masked_load(k, x, first_lanes(k, count, lanes))
    copy = k.stack_ptr("u1", lanes)
    copy.store(k.const(0, "u1", lanes))
    with k.loop(0, k.smaller(count, lanes)) as i:
        copy.store((x + i * step).load(), i)
    return copy.load(lanes=lanes)


@final
def along_k(k: Builder, vectors: int) -> None:
    """Pack columns of contiguous bytes: squares of groups are transposed in registers. Task: one panel."""
    lanes = k.target.lanes
    with each_panel(k, vectors) as (a, y, out, column, starts), k.loop(0, vectors) as v:
        lines = [y + k.smaller(v * lanes + i, a.n - column - 1) * a.y_step for i in range(lanes)]
        with fold(k, 0, a.groups, [k.const(0, "i4", lanes)], lanes) as s:
            at, (added,) = s.i * GROUP, s.values
            inside = first_lanes(k, a.k - at, GROUP * lanes)
            square = transpose(k, [as_vector(k, masked_load(k, x + at, inside), "i4", lanes) for x in lines])
            for g, group in enumerate(square):
                with k.if_(s.i + g < a.groups):
                    (out + (s.i + g) * (vectors * lanes)).store(group ^ SIGNS, v * lanes)
                added = added_up(k, added, group)
            s.next = [added]
        starts.store(s.values[0] * k.cast(a.factor, "i4") + k.cast(a.first, "i4"), v * lanes)


def added_up(k: Builder, added: Val, group: Val) -> Val:
    """Return the sums of columns plus four more of their bytes."""
    ones = as_vector(k, k.splat(k.const(ONES, "i4"), group.lanes), "i1", GROUP * group.lanes)
    return dots(k, [added], [group], [ones])[0]


@final
def across(k: Builder, vectors: int, near: bool) -> None:
    """Pack columns that are adjacent or strided, four rows at a time. Task: one panel."""
    lanes = k.target.lanes
    with each_panel(k, vectors) as (a, y, out, column, starts), k.loop(0, vectors) as v:
        count, y = a.n - column - v * lanes, y + v * lanes * a.y_step
        with fold(k, 0, a.groups, [k.const(0, "i4", lanes)]) as s:
            group, added = k.const(0, "i4", lanes), s.values[0]
            for i in range(GROUP):
                row = s.i * GROUP + i
                there = k.select(row < a.k, count, 0)
                part = k.cast(some_bytes(k, y + k.smaller(row, a.k - 1) * a.y_row, there, a.y_step, near), "i4")
                group, added = group | (part << 8 * i), added + part
            (out + s.i * (vectors * lanes)).store(group ^ SIGNS, v * lanes)
            s.next = [added]
        starts.store(s.values[0] * k.cast(a.factor, "i4") + k.cast(a.first, "i4"), v * lanes)


@contextmanager
def each_panel(k: Builder, vectors: int) -> Iterator[tuple]:
    """Yield for each task the arguments, the panel's first column, its destination and number, and that of its sums."""
    a = k.args()
    width = vectors * k.target.lanes
    with k.task_loop() as task:
        image, panel = divmod_of(task, a.panels)
        column = panel * width
        y = a.y + (image * a.y_image + column * a.y_step)
        out = a.out + (image * a.o_image + panel * a.groups * width)
        yield a, y, out, column, a.starts + (image * a.s_image + column)
