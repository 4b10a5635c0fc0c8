"""FirstRows: an op of which a run computes as many rows as a count says, rounded up to one of a few sizes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cgraph.ir.graph import Node, Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Part, Work
from cgraph.kernels.kernel import Between, End, View, marker_call
from cgraph.kernels.target import Target
from cgraph.record import Record, replace

UNBOUNDED = (1 << 63) - 1


class Size(Record, eq=False):
    """The work for some number of rows.

    Fields
        low, high: the counts for which it runs: ``low < count <= high``
        rows: number of rows
        row_operands: indices of the operands of which it reads that many rows
    """

    low: int
    high: int
    rows: int
    row_operands: tuple[int, ...]
    work: Work

    def views(self, out: View, xs: tuple[View, ...]) -> tuple[View, list[View]]:
        """Return the rows of the result and of the operands."""
        return first(out, self.rows), [first(x, self.rows) if i in self.row_operands else x for i, x in enumerate(xs)]

    def needs(self, out: View, xs: tuple[View, ...]) -> int:
        return self.work.needs(*self.views(out, xs))


class FirstRows(Op):
    """The first rows of `op`'s result; those from `count` on are arbitrary.

    Operands
        those of `op`, then the count: int64 scalar
    """

    takes_complex = True

    op: Op

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def can_fail(self) -> bool:  # type: ignore[override]
        return self.op.can_fail

    @property
    def takes_storage(self) -> bool:  # type: ignore[override]
        return self.op.takes_storage

    def reason(self, node: Node) -> Any:
        return self.op.reason(node)

    def multiply_adds(self, *specs: Spec) -> int:
        return self.op.multiply_adds(*specs[:-1])

    def infer(self, *specs: Spec) -> Any:
        return self.op.infer(*specs[:-1])

    def meaning(self, *xs: Any) -> Any:
        """Compute the rows that count on those of the operands, and no others; the rest is zero."""
        *xs, count = xs  # type: ignore[assignment]
        specs = [Spec(x.shape, x.dtype) for x in xs]
        whole, rule = self.op.infer(*specs), self.op.row_rule(*specs)
        assert rule is not None and isinstance(whole, Spec)
        rows = min(max(int(count), 0), whole.shape[0])
        out = np.zeros(whole.shape, whole.dtype)
        if rows:
            out[:rows] = rule.first(rows).meaning(*(x[:rows] if i in rule.operands else x for i, x in enumerate(xs)))
        return out

    def work(self, target: Target, *specs: Spec) -> Work:
        sizes = self.sizes(target, specs[:-1])

        def parts(out: View, *xs: View, workspace: View | None = None) -> Iterator[Part]:
            *xs, count = xs  # type: ignore[assignment]
            for size in sizes:
                case = Between(size.low, size.high)
                yield Part("", [marker_call(case, count.at)])
                yield from size.work.parts("", *size.views(out, xs), workspace)  # type: ignore[arg-type]
                yield Part("", [marker_call(End(case))])

        def exact(out: View, *xs: View) -> int:
            return max(size.needs(out, xs[:-1]) for size in sizes)

        works = [size.work for size in sizes]
        overwrites = tuple(i for i in works[-1].overwrites if all(i in w.overwrites for w in works))
        strided, most = all(w.strided for w in works), max(w.nbytes for w in works)
        return Work(parts, most, overwrites, strided, exact=exact if any(w.exact for w in works) else None)

    def sizes(self, target: Target, specs: tuple[Spec, ...]) -> list[Size]:
        """Return the sizes from the smallest to all rows."""
        whole, rule = self.op.infer(*specs), self.op.row_rule(*specs)
        assert rule is not None and isinstance(whole, Spec)
        counts = row_counts(whole.shape[0])
        works = [work_of_first(self.op, rule, n, target, specs) for n in counts]
        bounds = zip([0, *counts], [*counts[:-1], UNBOUNDED])
        return [Size(low, high, n, rule.operands, w) for (low, high), n, w in zip(bounds, counts, works)]


def work_of_first(op: Op, rule: RowRule, rows: int, target: Target, specs: tuple[Spec, ...]) -> Work:
    """Return the work for some first rows."""
    taken = [Spec((rows, *x.shape[1:]), x.dtype) if i in rule.operands else x for i, x in enumerate(specs)]
    return rule.first(rows).work(target, *taken)


def row_counts(n: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, 16, 24 … below n, then n: a run computes at most half as many rows again."""
    counts, power = [], 1
    while power < n:
        counts += [power, power * 3 // 2] if power > 1 else [1]
        power *= 2
    return [*[c for c in counts if c < n], n]


def first(view: View, rows: int) -> View:
    """Return the first rows of a view."""
    return replace(view, shape=(rows, *view.shape[1:]))
