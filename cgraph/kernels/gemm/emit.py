"""Matrix products: a register tile over panels, or over rows and columns in place; a plain loop.

    out[i, j] = activation(bias[i, j] + out[i, j] when `add` + sum over k of a[i, k] * b[k, j])

A panel of `a` has `rows` rows by k, a panel of `b` a few vectors of columns by k, so that the reduction reads both in
sequence. Source: Goto and van de Geijn 2008, Anatomy of high-performance matrix multiplication.
"""

from functools import partial
from types import SimpleNamespace

from cgraph.kernels.gemm.signature import unroll
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import (
    apart,
    change_if,
    choose,
    divmod_of,
    each_task,
    first_lanes,
    fold,
    masked_load,
    prefetch,
    put_where,
)
from cgraph.kernels.llvm.multiply import multiply_add
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.pairs.emit import add_pairs
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.record import Record

NEAR = 3  # rows that one register reaches: an address adds once or twice the distance of rows


class Tile(Record):
    """The params of `tile`.

    Fields
        dtype: of all values
        rows, vectors: rows and vectors of sums
        a_is_packed: `a` is in panels, else in rows
        b_dtype: of `b` in memory; for pairs of bfloat16 numbers `a` has pairs as well, and k counts them
        ahead: cache lines of `b` prefetched in each round, 0 if `b` is in L1 or L2
    """

    dtype: str
    rows: int
    vectors: int
    a_is_packed: bool
    b_dtype: str
    ahead: int

    @property
    def sums(self) -> list[tuple[int, int]]:
        """(row, vector) of each sum."""
        return [(i, v) for i in range(self.rows) for v in range(self.vectors)]

    @property
    def unroll(self) -> int:
        """Steps of a round, unrolled."""
        return unroll(self.a_is_packed)

    @property
    def line(self) -> int:
        """Elements of `b` in a cache line of 64 bytes."""
        return 64 // int(self.b_dtype[1:])


@final
def tile(k: Builder, *params) -> None:
    """Emit one tile of `rows` rows and `vectors` vectors of columns. Task order: matrix, and panels in either order."""
    p = Tile(*params)
    a = k.args()
    width = p.vectors * k.target.lanes_of(p.dtype)
    with each_task(k, a.outer, a.inner) as (batch, outer, inner):
        by_row = a.by_row != 0
        panel, row_panel = k.select(by_row, inner, outer), k.select(by_row, outer, inner)
        row, beyond = row_panel * p.rows, panel * width + width - a.n
        first = row if p.a_is_packed else k.larger(k.smaller(row, a.m - p.rows), 0)
        shift = k.select((a.overlap != 0) & (beyond > 0), beyond, 0)
        column = panel * width - shift
        b = a.b + (batch * a.b_batch + panel * a.b_panel - shift)
        start = row_panel * a.a_panel if p.a_is_packed else first * a.a_row
        left = (a.a + (batch * a.a_batch + start)).as_dtype(PAIRS if p.b_dtype == PAIRS else p.dtype)
        at = SimpleNamespace(
            rows=a.m - first,
            stored=row - first,
            columns=a.n - column,
            out=a.out + (batch * a.o_batch + first * a.o_row + column),
            bias=k.pointer(a.bias, p.dtype) + (batch * a.bias_batch + first * a.bias_row + column),
        )
        early = []
        if p.ahead:
            early = [b + (a.early + row_panel * (a.k // p.unroll * a.share))]
            prefetch_result(k, p, a, at)
        lefts = [left] if p.a_is_packed else [left + i * a.a_row for i in range(0, p.rows, NEAR)]
        sums = sum_products(k, p, a, b, lefts, early)
        with k.if_else((at.stored == 0) & (at.rows >= p.rows) & (at.columns >= width)) as (whole, cut):
            with whole:
                store_whole(k, p, a, at, sums)
            with cut:
                store_partial(k, p, a, at, sums)


def prefetch_result(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> None:
    """Prefetch the lines that are written, and those that are added to the sums."""
    added = choose(k, a.bias != 0, at.bias, at.out)
    added_row = k.select(a.bias != 0, a.bias_row, a.o_row)
    for i, v in p.sums:
        inside, lane = k.smaller(at.rows - 1, i), v * k.target.lanes_of(p.dtype)
        prefetch(k, at.out + (a.o_row * inside + lane), write=True)
        prefetch(k, added + (added_row * inside + lane))


def sum_products(k: Builder, p: Tile, a: SimpleNamespace, b: Ptr, lefts: list[Ptr], early: list[Ptr]) -> list[Val]:
    """Return all products of the tile, summed over k in order.

    `lefts`: the panel of `a`, or every third of its rows, from which an address reaches the next two without registers
    of their own. `early`: emits prefetches in between, if not None.
    """
    lanes = k.target.lanes_of(p.dtype)
    add = add_pairs if p.b_dtype == PAIRS else multiply_add
    sums = [k.const(0, p.dtype, lanes)] * len(p.sums)
    moving = [b, *early, *lefts]
    whole = a.k - a.k % p.unroll
    for low, high, steps in ((0, whole, p.unroll), (whole, a.k, 1)):
        with fold(k, low, high, [*moving, *sums], steps) as s:
            moving, sums = s.values[: len(moving)], s.values[len(moving) :]
            b, *rest = moving
            prefetch_early(k, p, rest[: len(early)])
            near = [apart(k, at) for at in rest[len(early) :]]
            for u in range(steps):
                weights = [b.load(v * lanes, lanes) for v in range(p.vectors)]
                if p.a_is_packed:
                    scalars = [near[0].load(u * p.rows + i) for i in range(p.rows)]
                else:
                    scalars = [(near[i // NEAR] + (i % NEAR) * a.a_row).load(u) for i in range(p.rows)]
                sums = add(k, sums, scalars, weights)
                b = b + a.b_step
            passed = steps * p.rows if p.a_is_packed else steps
            moved = [at + a.share for at in rest[: len(early)]] + [at + passed for at in near]
            s.next = [b, *moved, *sums]
        moving, sums = s.values[: len(moving)], s.values[len(moving) :]
    return sums


def prefetch_early(k: Builder, p: Tile, early: list[Ptr]) -> None:
    """Prefetch this round's lines of `b`."""
    for at in early:
        for i in range(p.ahead):
            prefetch(k, at + i * p.line)


def store_whole(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace, sums: list[Val]) -> None:
    lanes = sums[0].lanes
    places = [(at.out + a.o_row * i) + v * lanes for i, v in p.sums]
    with change_if(k, a.add != 0, sums) as s:
        s.next = [y + place.load(lanes=lanes) for y, place in zip(sums, places)]
    with change_if(k, a.bias != 0, s.values) as t:
        biases = [(at.bias + a.bias_row * i).load(v * lanes, lanes) for i, v in p.sums]
        t.next = [y + bias for y, bias in zip(s.values, biases)]
    ActivationEmitter(k, p.dtype, lanes).store(t.values, lambda i, y: places[i].store(y))


def store_partial(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace, sums: list[Val]) -> None:
    """Store the rows and columns inside the result, through a copy of the tile on the stack: short code, rarely run.

    The last tile of rows that are read in place ends with the matrix, and its first rows are stored by the one before.
    """
    lanes = sums[0].lanes
    copy = k.stack_ptr(p.dtype, len(sums) * lanes)
    for s, y in enumerate(sums):
        copy.store(y, s * lanes)
    with k.loop(at.stored, k.smaller(at.rows, p.rows)) as i, k.loop(0, p.vectors) as v:
        mask = first_lanes(k, at.columns - v * lanes, lanes)
        y = copy.load((i * p.vectors + v) * lanes, lanes)
        place = at.out + (i * a.o_row + v * lanes)
        with change_if(k, a.add != 0, [y]) as added:
            added.next = [y + masked_load(k, place, mask)]
        with change_if(k, a.bias != 0, added.values) as biased:
            biased.next = [added.values[0] + masked_load(k, at.bias + (i * a.bias_row + v * lanes), mask)]
        masked_put = partial(put_where, k, place, mask)
        ActivationEmitter(k, p.dtype, lanes).store(biased.values, masked_put)


@final
def simple(k: Builder, dtype: str) -> None:
    """Emit any dtype and any strides, one element after the other; ``b1`` is "or" of "and". Task: one row of a
    matrix.
    """
    a = k.args()
    with k.task_loop() as task, k.loop(0, a.n) as j:
        batch, row = divmod_of(task, a.m)
        left = a.a + (batch * a.a_batch + row * a.a_row)
        right = a.b + (batch * a.b_batch + j * a.b_column)
        with fold(k, 0, a.k, [k.const(0, dtype)]) as s:
            x, y = left.load(s.i * a.a_step), right.load(s.i * a.b_step)
            s.next = [s.values[0] | (x & y) if dtype == "b1" else s.values[0] + x * y]
        a.out.store(s.values[0], batch * a.o_batch + row * a.o_row + j * a.o_column)
