"""Emitters of gather, scatter, triangles and nonzero: reads and writes at computed indices.

Negative indices count from the end. An index outside ``-extent .. extent - 1`` sets the word at `error` (unless that
address is 0); a read then takes the nearest element, a write is skipped, so memory is safe either way.
"""

from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.indexing import combine, set_error
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.move.emit import UNROLL, RowSpan, copy_items, each_run


def gather(k: Builder, itemsize: int, index: str, how: str):
    """Copy the elements ``indices * stride`` bytes behind `x` to `out`. Task: some rows, one block of columns.

    `how`: ``each`` column has its index; one index for a ``run`` that is contiguous in both; one for a ``strided`` run.
    """
    dtype = f"u{itemsize}"

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        bad = k.slot(0, "b1")

        def offset(column) -> Val:
            at, outside = resolve_index(k, run.item(2, index, k.val(column, "i8")).load(align=1), a.extent)
            bad.value = bad.value | outside
            return k.smaller(k.larger(at, 0), a.extent - 1) * a.stride

        def item(i: Val, moved: Val) -> None:
            run.item(0, dtype, i).store(run.item(1, dtype, i).plus_bytes(moved).load(align=1), align=1)

        def items(i: Val, n: int) -> None:
            for moved, j in [(offset(i + j), j) for j in range(n or 1)]:
                item(i + j, moved)

        if how == "each":
            k.tail_loop(run.count, UNROLL, items)
        elif how == "run":
            copy_items(k, run.items(0, dtype), run.items(1, dtype).plus_bytes(offset(0)), run.count)
        else:
            moved = offset(0)
            with k.loop(0, run.count) as i:
                item(i, moved)
        set_error(k, bad.value, a.error)

    each_run(k, ("out", "x", "indices"), body)


def scatter(k: Builder, dtype: str, index: str, how: str, same: bool):
    """Compute ``out[index] how= updates``, for `n` indices one after the other, so that equal ones do not conflict.

    `how`: ``set``, ``add``, ``mul``, ``min``, ``max``; `same`: all columns have one index and are contiguous.
    Task: some rows, one block of columns, all indices.
    """
    lanes = k.target.lanes_of(dtype)

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        def put(i: Val, n: int, j: Val, at: Val) -> None:
            place = run.item(0, dtype, i).plus_bytes(at * a.stride)
            update = run.item(1, dtype, i).plus_bytes(j * a.updates_n).load(0, n, align=1)
            place.store(update if how == "set" else combine(k, how, place.load(0, n, align=1), update), align=1)

        def index_of(column, j: Val) -> tuple[Val, Val]:
            where = run.item(2, index, k.val(column, "i8")).plus_bytes(j * a.indices_n)
            at, outside = resolve_index(k, where.load(align=1), a.extent)
            set_error(k, outside, a.error)
            return at, ~outside

        with k.loop(0, a.n) as j:
            if same:
                at, inside = index_of(0, j)
                with k.if_(inside):
                    k.tail_loop(run.count, lanes, lambda i, n: put(i, n, j, at))
                return
            with k.loop(0, run.count) as i:
                at, inside = index_of(i, j)
                with k.if_(inside):
                    put(i, 0, j, at)

    each_run(k, ("out", "updates", "indices"), body)


def inside(k: Builder, index: str):
    """Set the word at `error` if an index is outside its axis. Task: some rows, one block of columns."""

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        bad = k.slot(0, "b1")
        with k.loop(0, run.count) as i:
            _, outside = resolve_index(k, run.item(0, index, i).load(align=1), a.extent)
            bad.value = bad.value | outside
        set_error(k, bad.value, a.error)

    each_run(k, ("indices",), body)


def triangle(k: Builder, itemsize: int, upper: bool):
    """Keep the elements on and above the diagonal `diagonal` (or on and below it); the others become zero.

    Rows of the walk are rows of matrices, `height` per matrix. Task: some rows, one block of columns.
    """
    dtype = f"u{itemsize}"
    lanes, zero = k.target.lanes_of(dtype), k.const(0, dtype)

    def adjacent(run: RowSpan, edge: Val) -> None:
        rest = run.count - edge
        first, zeros, start, count = (0, edge, edge, rest) if upper else (edge, rest, 0, edge)
        blank, out, x = run.items(0, dtype) + first, run.items(0, dtype) + start, run.items(1, dtype) + start
        k.tail_loop(zeros, lanes, lambda i, n: blank.store(k.splat(zero, n) if n else zero, i, align=1))
        k.tail_loop(count, lanes, lambda i, n: out.store(x.load(i, n, align=1), i, align=1))

    def apart(run: RowSpan, edge: Val) -> None:
        with k.loop(*((0, edge) if upper else (edge, run.count))) as i:
            run.item(0, dtype, i).store(zero, align=1)
        with k.loop(*((edge, run.count) if upper else (0, edge))) as i:
            run.item(0, dtype, i).store(run.item(1, dtype, i).load(align=1), align=1)

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        edge = run.row % a.height + a.diagonal + (0 if upper else 1) - run.low
        edge = k.smaller(k.larger(edge, 0), run.count)
        if lanes == 1:
            apart(run, edge)
            return
        with k.if_else((run.steps[0] == itemsize) & (run.steps[1] == itemsize)) as (is_adjacent, is_apart):
            with is_adjacent:
                adjacent(run, edge)
            with is_apart:
                apart(run, edge)

    each_run(k, ("out", "x"), body)


def nonzero(k: Builder, dtype: str):
    """Write the coordinates of the nonzero elements of `x` (contiguous), at most `most`, and their number.

    `out` is int64 ``[rank, most]``; columns after the count are unchanged. One task.
    """
    a = k.args()
    count = k.slot(0, "i8")
    with k.loop(0, a.size) as i, k.if_(a.x.load(i) != 0):
        n = count.value
        count.value = n + 1
        with k.if_(n < a.most):
            coordinates(k, a, i, n)
    a.count.store(count.value)


def coordinates(k: Builder, a: SimpleNamespace, i: Val, n: Val) -> None:
    """Write the coordinates of element `i` as column `n`."""
    rest = k.slot(i)
    with k.loop(0, a.rank) as step:
        axis = a.rank - 1 - step
        extent = a.extents.load(axis)
        a.out.store(rest.value % extent, axis * a.most + n)
        rest.value = rest.value // extent


def resolve_index(k: Builder, index: Val, extent: Val) -> tuple[Val, Val]:
    """Return the index counted from the start, and whether it is outside."""
    index = k.cast(index, "i8")
    at = k.select(index < 0, index + extent, index)
    return at, (at < 0) | (at >= extent)
