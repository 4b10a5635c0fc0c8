"""FirstRows and FirstWrites: ops of which a run computes as many rows as a count says, rounded up to a few sizes."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cgraph.ir.graph import Node, Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Part, Work
from cgraph.kernels.kernel import Between, End, View, marker_call
from cgraph.kernels.target import Target
from cgraph.ops.take import Scatter
from cgraph.record import Record, replace

UNBOUNDED = (1 << 63) - 1
LEAST_NBYTES = 4096  # rows of fewer bytes take about as long as the choice of a smaller number


class RowSize(Record, eq=False):
    """The work for some number of rows.

    Fields
        low, high: the counts for which it runs: ``low < count <= high``
        rows: number of rows
        places: indices of the views of which it takes that many rows; the result's is 0, that of operand i is i + 1
    """

    low: int
    high: int
    rows: int
    places: tuple[int, ...]
    work: Work

    def views(self, views: Sequence[View]) -> list[View]:
        """Return the rows of result and operands."""
        return [first(x, self.rows) if i in self.places else x for i, x in enumerate(views)]

    def needs(self, views: Sequence[View]) -> int:
        out, *xs = self.views(views)
        return self.work.needs(out, xs)


class Counted(Op):
    """Base of ops that run `op` for as many rows as their last operand counts, rounded up; int64 scalar."""

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

    def work(self, target: Target, *specs: Spec) -> Work:
        """Return the work for each of a few numbers of rows, of which a run chooses one; a GPU computes all rows."""
        if target.code == "ptx":
            return without_count(self.op.work(target, *specs[:-1]))
        sizes = self.sizes(target, specs[:-1])

        def parts(out: View, *xs: View, workspace: View | None = None) -> Iterator[Part]:
            count = xs[-1]
            for size in sizes:
                case, (rows, *operands) = Between(size.low, size.high), size.views((out, *xs[:-1]))
                yield Part("", [marker_call(case, count.at)])
                yield from size.work.parts("", rows, operands, workspace)
                yield Part("", [marker_call(End(case))])

        def exact(out: View, *xs: View) -> int:
            return max(size.needs((out, *xs[:-1])) for size in sizes)

        works = [size.work for size in sizes]
        overwrites = tuple(i for i in works[-1].overwrites if all(i in w.overwrites for w in works))
        strided, most = all(w.strided for w in works), max(w.nbytes for w in works)
        return Work(parts, most, overwrites, strided, exact=exact if any(w.exact for w in works) else None)

    def sizes(self, target: Target, specs: tuple[Spec, ...]) -> list[RowSize]:
        """Return the sizes from the smallest to all rows."""
        raise NotImplementedError(f"{self.name} does not define sizes")


class FirstRows(Counted):
    """The first rows of `op`'s result, which a count says; those from it on are arbitrary. `op` has a `row_rule`."""

    def meaning(self, *operands: Any) -> Any:
        """Compute the rows that count from those of the operands, and no others; the rest is zero."""
        *xs, count = operands
        specs = [Spec(x.shape, x.dtype) for x in xs]
        whole, rule = self.op.infer(*specs), self.op.row_rule(*specs)
        assert rule is not None and isinstance(whole, Spec)
        rows, out = min(max(int(count), 0), whole.shape[0]), np.zeros(whole.shape, whole.dtype)
        if rows:
            out[:rows] = rule.first(rows).meaning(*(x[:rows] if i in rule.operands else x for i, x in enumerate(xs)))
        return out

    def sizes(self, target: Target, specs: tuple[Spec, ...]) -> list[RowSize]:
        whole, rule = self.op.infer(*specs), self.op.row_rule(*specs)
        assert rule is not None and isinstance(whole, Spec)
        return sizes_of(rule, row_counts(whole.shape[0], least_rows(self.op, rule, specs)), 0, (0,), target, specs)


class FirstWrites(Counted):
    """A scatter of at least as many positions and updates as a count says; those from it on may be left out.

    Whoever applies it promises that no result depends on what these write. Operands: those of the scatter, the count.
    """

    op: Scatter

    def meaning(self, *operands: Any) -> Any:
        x, indices, updates, count = operands
        rows = max(int(count), 0)
        return self.op.meaning(x, indices[:rows], updates[:rows])

    def sizes(self, target: Target, specs: tuple[Spec, ...]) -> list[RowSize]:
        rule = RowRule((1, 2), lambda rows: self.op)
        counts = row_counts(specs[1].shape[0], least_rows(self.op, rule, specs))
        return sizes_of(rule, counts, -UNBOUNDED, (), target, specs)


def without_count(work: Work) -> Work:
    """Return the work of an op as that of a step with one more operand, which is not read."""

    def calls(out: View, *xs: View, **more: Any) -> Any:
        return work.calls(out, *xs[:-1], **more)

    def exact(out: View, *xs: View) -> int:
        return work.needs(out, xs[:-1])

    return replace(work, calls=calls, exact=exact)


def sizes_of(
    rule: RowRule, counts: Sequence[int], low: int, out: tuple[int, ...], target: Target, specs: Sequence[Spec]
) -> list[RowSize]:
    """Return the work for these numbers of rows, in ascending order; `low` is the count up to which nothing runs."""
    sizes, places = [], (*out, *(i + 1 for i in rule.operands))
    for n in counts:
        cut_specs = [Spec((n, *x.shape[1:]), x.dtype) if i in rule.operands else x for i, x in enumerate(specs)]
        high = n if n < counts[-1] else UNBOUNDED
        sizes.append(RowSize(low, high, n, places, rule.first(n).work(target, *cut_specs)))
        low = n
    return sizes


def least_rows(op: Op, rule: RowRule, specs: Sequence[Spec]) -> int:
    """Return the smallest number of rows that is worth a choice.

    It is 1 for products, whose rows take long, and for ops that can fail at a row: operands may have no more rows.
    """
    if op.can_fail or op.multiply_adds(*specs):
        return 1
    row_nbytes = sum(specs[i].nbytes // max(specs[i].shape[0], 1) for i in rule.operands)
    return LEAST_NBYTES // max(row_nbytes, 1)


def row_counts(n: int, least: int = 1) -> list[int]:
    """Return those of 1, 2, 3, 4, 6, 8, 12, 16, 24 … from `least` to below n, then n: of more than `least` rows a run
    computes at most half as many again.
    """
    counts, power = [], 1
    while power < n:
        counts += [power, power * 3 // 2] if power > 1 else [1]
        power *= 2
    return [*[c for c in counts if least <= c < n], n]


def first(view: View, rows: int) -> View:
    """Return the first rows of a view."""
    return replace(view, shape=(rows, *view.shape[1:]))
