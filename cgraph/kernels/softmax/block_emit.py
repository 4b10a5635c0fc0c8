"""Softmax, its logarithm, and the logarithm of the sum of exponentials of contiguous rows, some rows at a time.

For a row of a hundred elements, joining its lanes takes longer than its exponentials, so rows are joined together.
Exponentials are scaled by a power of two (`large_exp`), which the quotient removes. `out` may be `x`.
"""

from collections.abc import Callable

from cgraph.kernels.llvm.accumulate import Accumulator, get, put
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.row_totals import join_rows
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.vexp import UPSCALE, large_exp
from cgraph.kernels.llvm.vlog import log
from cgraph.kernels.pointwise.row_block import RowBlock
from cgraph.kernels.softmax.emit import finite_or_zero
from cgraph.kernels.views.layout import BLOCK_ROWS
from cgraph.kernels.walk.emit import walk_groups

REGISTERS = 4  # of a vector of several rows, whose operations overlap


def rows(k: Builder, kind: str, dtype: str, lanes: int, is_short: bool) -> None:
    """`kind`: ``softmax``, ``log_softmax`` or ``logsumexp``, whose out has one element per row. Task: some rows."""
    a = k.args()
    block = SoftmaxBlock(k, kind, Accumulator(k, "sum", dtype, short=is_short), lanes, a.columns)
    first, last = k.tasks()

    def group(_: Val, offsets: list[list[Val]]) -> None:
        block.emit(*([k.pointer(at + o[i], dtype) for o in offsets] for i, at in enumerate((a.x, a.out))))

    walk_groups(k, a.axes, a.rank, 2, first * a.each, k.smaller(last * a.each, a.rows), BLOCK_ROWS, group)


class SoftmaxBlock(RowBlock):
    """Emits the passes over some rows: the maximum, the exponentials and their sum, the quotients."""

    def __init__(self, k: Builder, kind: str, total: Accumulator, lanes: int, columns: Val) -> None:
        super().__init__(k, columns, lanes)
        self.kind, self.sum = kind, total

    def emit(self, xs: list[Ptr], outs: list[Ptr]) -> None:
        most = self.maxima(xs)
        ends = [self.below(x.load(self.end, self.lanes), m) for x, m in zip(xs, most)]
        terms = self.exponentials(ends)
        total, lane = self.total(self.sum, terms, lambda column: self.terms(xs, most, outs, column))
        if self.kind == "softmax":
            factors = self.spread(1.0 / total, lane)
            self.write(outs, outs, lambda e, i: e * factors[i])
            self.store(outs, [e * f for e, f in zip(terms, factors)])
            return
        logs = log(self.k, total * 2.0 ** -UPSCALE[self.sum.dtype])
        if self.kind == "logsumexp":
            for out, i, m in zip(outs, lane, most):
                out.store(self.k.lane(m, 0) + self.k.lane(logs, i))
            return
        logarithms = self.spread(logs, lane)
        self.write(xs, outs, lambda x, i: (x - most[i]) - logarithms[i])
        self.store(outs, [x - y for x, y in zip(ends, logarithms)])

    def maxima(self, xs: list[Ptr]) -> list[Val]:
        """Return the maximum of each row in all lanes. A NaN may be passed over: the sums meet it again."""
        k = self.k
        best = [k.slot(x.load(self.end, self.lanes)) for x in xs]
        with self.vectors() as column:
            put(best, [k.larger(x.load(column, self.lanes), b) for x, b in zip(xs, get(best))])
        state, lane = join_rows(k, [[b] for b in get(best)], lambda x, y: [k.larger(x[0], y[0])])
        return self.spread(state[0], lane)

    def below(self, x: Val, most: Val) -> Val:
        """Return ``x - most``; of logsumexp, where inf - inf would make a NaN of an infinity, any number at most 0."""
        if self.kind != "logsumexp":
            return x - most
        y = x - finite_or_zero(self.k, most)
        return self.k.select(y > 0.0, self.k.const(0.0, y.dtype, y.lanes), y)

    def terms(self, xs: list[Ptr], most: list[Val], outs: list[Ptr], column: Val) -> list[Val]:
        """Return the scaled exponentials of the vectors at `column`; of softmax, write them to out."""
        terms = self.exponentials([self.below(x.load(column, self.lanes), m) for x, m in zip(xs, most)])
        for out, term in zip(outs, terms) if self.kind == "softmax" else ():
            out.store(term, column)
        return terms

    def exponentials(self, xs: list[Val]) -> list[Val]:
        """Return the scaled exponentials of some rows, computed in vectors of `REGISTERS` registers."""
        k, lanes = self.k, self.lanes
        each = max(1, REGISTERS * k.target.lanes_of(self.sum.dtype) // lanes)
        if len(xs) > each:
            return self.exponentials(xs[:each]) + self.exponentials(xs[each:])
        wide = xs
        while len(wide) > 1:
            wide = [k.join(x, y) for x, y in zip(wide[::2], wide[1::2])]
        y = large_exp(k, wide[0])
        return [k.slice(y, i * lanes, lanes) for i in range(len(xs))]

    def write(self, sources: list[Ptr], outs: list[Ptr], f: Callable[[Val, int], Val]) -> None:
        """Compute ``out = f(source, row)`` except for the last vector."""
        with self.vectors() as column:
            for i, (source, out) in enumerate(zip(sources, outs)):
                out.store(f(source.load(column, self.lanes), i), column)

    def store(self, outs: list[Ptr], ends: list[Val]) -> None:
        """Store the last vector of each row."""
        for out, y in zip(outs, ends):
            out.store(y, self.end)
