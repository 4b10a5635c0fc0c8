"""Normalisation of short rows by their own mean and variance, some rows at a time. `out` may be `x`."""

from collections.abc import Callable

from cgraph.kernels.llvm.accumulate import Accumulator
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.pointwise.row_block import RowBlock
from cgraph.kernels.views.layout import BLOCK_ROWS


def rows(k: Builder, dtype: str, scales: str, lanes: int) -> None:
    """`scales`: ``element`` (one per element of a row), ``none``, or ``root`` (one per element, and the mean is taken
    as 0). Task: some rows.
    """
    a = k.args()
    block = NormBlock(k, Accumulator(k, "sum", dtype, short=True), scales, a.columns, lanes)
    epsilon = k.cast(a.epsilon, dtype)
    first, last = k.tasks()
    low, high = first * a.each, k.smaller(last * a.each, a.rows)
    whole = low + (high - low) // BLOCK_ROWS * BLOCK_ROWS
    for begin, end, members in ((low, whole, BLOCK_ROWS), (whole, high, 1)):
        with k.loop(begin, end, members) as row:
            xs, outs = ([p + (row + i) * a.columns for i in range(members)] for p in (a.x, a.out))
            block.emit(xs, outs, (a.scale, a.shift), epsilon)


class NormBlock(RowBlock):
    """Emits the passes over some rows: the mean, the variance about it, the result."""

    def __init__(self, k: Builder, total: Accumulator, scales: str, columns: Val, lanes: int) -> None:
        super().__init__(k, columns, lanes)
        self.sum, self.scales = total, scales
        self.count = k.cast(columns, total.dtype)

    def emit(self, xs: list[Ptr], outs: list[Ptr], factors: tuple[Ptr, Ptr], epsilon: Val) -> None:
        k, ends = self.k, [x.load(self.end, self.lanes) for x in xs]
        centred = self.centred(xs, ends)
        squares, lane = self.mean([y * y for y in centred(self.end, ends)], lambda c: [y * y for y in centred(c)])
        inverse = self.spread(1.0 / k.intrinsic("sqrt", squares + epsilon), lane)

        def results(column: Val, values: list[Val] | None = None) -> list[Val]:
            scaled = [y * f for y, f in zip(centred(column, values), inverse)]
            if self.scales != "none":
                scale = factors[0].load(column, self.lanes)
                scaled = [y * scale for y in scaled]
            if self.scales == "element":
                shift = factors[1].load(column, self.lanes)
                scaled = [y + shift for y in scaled]
            return scaled

        last = results(self.end, ends)
        with self.vectors() as column:
            self.store(outs, results(column), column)
        self.store(outs, last, self.end)

    def centred(self, xs: list[Ptr], ends: list[Val]) -> Callable[..., list[Val]]:
        """Return a function of a column that emits the rows' elements there less their mean; those in a second operand
        are not loaded.
        """

        def loaded(column: Val, values: list[Val] | None = None) -> list[Val]:
            return values or [x.load(column, self.lanes) for x in xs]

        if self.scales == "root":
            return loaded
        means = self.spread(*self.mean(ends, loaded))
        return lambda column, values=None: [x - m for x, m in zip(loaded(column, values), means)]

    def mean(self, ends: list[Val], terms: Callable[[Val], list[Val]]) -> tuple[Val, list[int]]:
        """Return the mean of the terms of each row in a lane, and its lane."""
        total, lane = self.total(self.sum, ends, terms)
        return total / self.count, lane

    def store(self, outs: list[Ptr], values: list[Val], column: Val) -> None:
        """Store a vector of each row."""
        for out, y in zip(outs, values):
            out.store(y, column)
