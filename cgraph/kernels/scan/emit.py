"""Cumulative sums, products, minima and maxima along one axis, in order: the same bits as NumPy's loops."""

from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.indexing import combine
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.move.emit import RowSpan, each_run


def along(k: Builder, dtype: str, how: str):
    """Compute ``out[j] = out[j - 1] how x[j]`` for `n` elements of each column. Task: some rows, one block of columns.

    Strided columns are walked one by one, with the running value in a register.
    """

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        with k.loop(0, run.count) as i:
            out, x = run.item(0, dtype, i), run.item(1, dtype, i)
            value = k.slot(x.load(align=1))
            out.store(value.value, align=1)
            with k.loop(1, a.n) as j:
                value.value = combine(k, how, value.value, x.plus_bytes(j * a.x_n).load(align=1))
                out.plus_bytes(j * a.out_n).store(value.value, align=1)

    each_run(k, ("out", "x"), body)


def across(k: Builder, dtype: str, how: str):
    """The same for contiguous columns: a vector of them at a time. Task: some rows, one block of columns."""
    lanes = k.target.lanes_of(dtype)

    def body(run: RowSpan, a: SimpleNamespace) -> None:
        def columns(i: Val, n: int) -> None:
            out, x = run.items(0, dtype) + i, run.items(1, dtype) + i
            value = k.slot(x.load(0, n, align=1))
            out.store(value.value, align=1)
            with k.loop(1, a.n) as j:
                value.value = combine(k, how, value.value, x.plus_bytes(j * a.x_n).load(0, n, align=1))
                out.plus_bytes(j * a.out_n).store(value.value, align=1)

        k.tail_loop(run.count, lanes, columns)

    each_run(k, ("out", "x"), body)
