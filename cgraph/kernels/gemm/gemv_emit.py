"""Products of a matrix and a vector, bound by memory: dot products of rows, or sums of rows.

A sum runs over k in order, whatever the task.
"""

from functools import partial
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import (
    change_if,
    divmod_of,
    first_lanes,
    fold,
    masked_load,
    masked_store,
    put_where,
)
from cgraph.kernels.llvm.row_totals import totals
from cgraph.kernels.llvm.values import Ptr, Val


@final
def dot(k: Builder, dtype: str, rows: int) -> None:
    """Emit ``out[i] = sum over k of a[i, k] * b[k]`` with both contiguous along k. Task: `rows` rows of a matrix."""
    a = k.args()
    activation = ActivationEmitter(k, dtype, 0)
    with k.task_loop() as task:
        batch, panel = divmod_of(task, a.row_panels)
        inside = [k.smaller(panel * rows + i, a.m - 1) for i in range(rows)]
        starts = [a.a + (batch * a.a_batch + i * a.a_row) for i in inside]
        sums = dot_sums(k, a.k, starts, a.b + batch * a.b_batch)
        for i, y in zip(inside, sums):
            with change_if(k, a.bias != 0, [y]) as s:
                s.next = [y + (k.pointer(a.bias, dtype) + (batch * a.bias_batch + i * a.bias_row)).load()]
            place = a.out + (batch * a.o_batch + i * a.o_row)
            activation.store(s.values, partial(put_one, place))


def put_one(place: Ptr, _: int, y: Val) -> None:
    place.store(y)


def dot_sums(k: Builder, count: Val, starts: list[Ptr], b: Ptr) -> list[Val]:
    """Return the dot product of each row with `b`, two vectors at a time, then the rest under a mask."""
    lanes = k.target.lanes_of(b.dtype)
    pairs = [(start, half) for start in starts for half in (0, 1)]
    sums = [k.const(0, b.dtype, lanes)] * len(pairs)
    whole = count - count % (2 * lanes)
    with fold(k, 0, whole, sums, 2 * lanes) as s:
        right = [(b + s.i).load(half * lanes, lanes) for half in (0, 1)]
        lefts = [(start + s.i).load(half * lanes, lanes) for start, half in pairs]
        s.next = [k.fma(x, right[half], y) for x, (_, half), y in zip(lefts, pairs, s.values)]
    halves = [s.values[i] + s.values[i + 1] for i in range(0, len(pairs), 2)]
    with fold(k, whole, count, halves, lanes) as rest:
        mask = first_lanes(k, count - rest.i, lanes)
        last = masked_load(k, b + rest.i, mask)
        rest.next = [k.fma(masked_load(k, start + rest.i, mask), last, y) for start, y in zip(starts, rest.values)]
    return totals(k, rest.values)


@final
def row(k: Builder, dtype: str, unroll: int) -> None:
    """Emit ``out[j] = sum over k of a[k] * b[k, j]``, reading `unroll` rows of `b` at a time, each in sequence.

    Task: `width` columns of a matrix, whose sums stay in L1, in `out` itself.
    """
    a = k.args()
    lanes = k.target.lanes_of(dtype)
    with k.task_loop() as task:
        batch, panel = divmod_of(task, a.panels)
        start = panel * a.width
        count = k.smaller(a.width, a.n - start)
        out, left = a.out + (batch * a.o_batch + start), a.a + batch * a.a_batch
        b = a.b + (batch * a.b_batch + start)
        whole = a.k - a.k % unroll
        with k.loop(0, count, lanes) as j:
            masked_store(k, out + j, k.const(0, dtype, lanes), first_lanes(k, count - j, lanes))
        for low, high, rows in ((0, whole, unroll), (whole, a.k, 1)):
            with k.loop(low, high, rows) as i:
                scalars = [left.load((i + u) * a.a_step) for u in range(rows)]
                add_rows(k, out, b + i * a.b_step, a.b_step, scalars, count)
        finish_row(k, a, dtype, batch, start, out, count)


def add_rows(k: Builder, out: Ptr, b: Ptr, step: Val, scalars: list[Val], count: Val) -> None:
    """Emit ``out[j] += sum over u of scalars[u] * b[u, j]``, in order."""
    lanes = k.target.lanes_of(out.dtype)
    spread = [k.splat(x, lanes) for x in scalars]
    lines = [b + step * u for u in range(len(scalars))]
    whole = count - count % lanes
    with k.loop(0, whole, lanes) as j:
        sums = (out + j).load(lanes=lanes)
        for x, line in zip(spread, lines):
            sums = k.fma(x, (line + j).load(lanes=lanes), sums)
        out.store(sums, j)
    with k.if_(whole < count):
        mask = first_lanes(k, count - whole, lanes)
        sums = masked_load(k, out + whole, mask)
        for x, line in zip(spread, lines):
            sums = k.fma(x, masked_load(k, line + whole, mask), sums)
        masked_store(k, out + whole, sums, mask)


def finish_row(k: Builder, a: SimpleNamespace, dtype: str, batch: Val, start: Val, out: Ptr, count: Val) -> None:
    """Emit bias and activation of a finished row."""
    lanes = k.target.lanes_of(dtype)
    activation = ActivationEmitter(k, dtype, lanes)
    bias = k.pointer(a.bias, dtype) + (batch * a.bias_batch + start)
    with k.loop(0, count, lanes) as j:
        mask = first_lanes(k, count - j, lanes)
        y = masked_load(k, out + j, mask)
        with change_if(k, a.bias != 0, [y]) as s:
            s.next = [y + masked_load(k, bias + j, mask)]
        activation.store(s.values, partial(put_where, k, out + j, mask))
