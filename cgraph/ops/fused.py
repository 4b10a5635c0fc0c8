"""Fused pointwise ops, and reductions of them: one loop, one kernel, no bytes for intermediate values."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of, dtype_of_code
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Work
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.pointwise.calls import fused_calls
from cgraph.kernels.target import Target
from cgraph.ops.family import Pointwise
from cgraph.ops.reduce import Reduction

Body = tuple[tuple[Pointwise, tuple[int, ...]], ...]


class FusedPointwise(Pointwise):
    """The last result of a list of pointwise ops.

    Fields
        count: number of operands
        body: each op with the positions of its operands: operands 0…count-1 first, then earlier results
    """

    takes_complex = True

    count: int
    body: Body
    takes_storage = True

    @property
    def name(self) -> str:
        names = list(dict.fromkeys(op.name for op, _ in self.body))
        return "+".join(names[:4]) + ("+…" if len(names) > 4 else "")

    def _walk(self, xs: tuple, one: Callable[[Pointwise, tuple], Any]) -> Any:
        values = list(xs)
        for op, places in self.body:
            values.append(one(op, tuple(values[i] for i in places)))
        return values[-1]

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        return self._walk(dtypes, lambda op, xs: op.dtype(*xs))

    def meaning(self, *xs):
        return self._walk(xs, lambda op, values: op.meaning(*values))

    def scalar(self, m, *xs):
        return self._walk(xs, lambda op, values: op.scalar(m, *values))


class FusedResults(Op):
    """Several results of a list of pointwise ops of one shape: one loop, which reads each operand once.

    Fields
        count, body: as of `FusedPointwise`
        results: the positions of the results; see `body`
    """

    takes_complex = True

    count: int
    body: Body
    results: tuple[int, ...]
    takes_storage = True

    @property
    def parts(self) -> list[FusedPointwise]:
        """Each result by itself."""
        return [FusedPointwise(self.count, self.body[: i + 1 - self.count]) for i in self.results]

    @property
    def name(self) -> str:
        return FusedPointwise(self.count, self.body).name

    def infer(self, *specs: Spec) -> Bundle:
        return Bundle(tuple(part.infer(*specs) for part in self.parts))

    def meaning(self, *xs):
        return tuple(part.meaning(*xs) for part in self.parts)

    def work(self, target: Target, *specs: Spec) -> Work:
        codes = tuple(code_of(s.dtype) for s in specs)
        program, positions = joint_program(self, codes)
        return Work(lambda outs, *xs: fused_calls(target, program, positions, outs, xs), strided=True)


@lru_cache(maxsize=4096)
def joint_program(op: FusedResults, codes: tuple[str, ...]) -> tuple[Program, tuple[int, ...]]:
    """Return the instructions of all results for operands of these dtypes, and the results' positions."""
    trace, dtypes = Trace(), [dtype_of_code(code) for code in codes]
    values: list[Any] = [trace.load(i, code) for i, code in enumerate(codes)]
    for inner, places in op.body:
        values.append(inner.scalar(trace, *(values[i] for i in places)))
        dtypes.append(inner.dtype(*(dtypes[i] for i in places)))
    return trace.joint_program(*(trace.cast(values[i], code_of(dtypes[i])) for i in op.results))


class FusedReduction(Op):
    """A reduction of a pointwise op's result, whose elements go from registers into the sum without being stored.

    Operands
        those of the pointwise op
    Fields
        reduction: the reduction and its axes
        inner: the pointwise op
    """

    takes_complex = True

    reduction: Reduction
    inner: Pointwise
    takes_storage = True

    @property
    def name(self) -> str:
        return f"{self.reduction.name} of {self.inner.name}"

    def infer(self, *specs: Spec) -> Spec:
        return self.reduction.infer(self.inner.infer(*specs))

    def meaning(self, *xs):
        return self.reduction.meaning(self.inner.meaning(*xs))

    def row_rule(self, *specs: Spec) -> RowRule | None:
        return None if 0 in self.reduction.axes else rows_of_all(self, *(x.shape for x in specs))

    def work(self, target: Target, *specs: Spec) -> Work:
        program = reduced_program(self.inner, self.reduction, tuple(code_of(x.dtype) for x in specs))
        return self.reduction.work_of(target, program, specs[0].shape)


@lru_cache(maxsize=4096)
def reduced_program(inner: Pointwise, reduction: Reduction, codes: tuple[str, ...]) -> Program:
    """Return the inner op's scalar function, converted to the dtype of the reduction."""
    trace = Trace()
    result = inner.scalar(trace, *(trace.load(i, code) for i, code in enumerate(codes)))
    dtype = inner.dtype(*map(dtype_of_code, codes))
    return trace.program(trace.cast(trace.cast(result, code_of(dtype)), code_of(reduction.dtype(dtype))))
