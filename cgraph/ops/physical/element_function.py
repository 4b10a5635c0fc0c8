"""A function of one number that a convolution applies to each of its sums before it stores them."""

import numpy as np

from cgraph.kernels.expression import Program, Trace
from cgraph.ops.family import Pointwise
from cgraph.record import Record


class ElementFunction(Record):
    """A pointwise op whose operands are one array and numbers.

    Fields
        op: the op, which keeps the dtype
        operands: the numbers; None where the op reads the array
    """

    op: Pointwise
    operands: tuple[float | None, ...]

    def meaning(self, x: np.ndarray) -> np.ndarray:
        """Return the function of each element."""
        return self.op.meaning(*(x if value is None else np.asarray(value, x.dtype) for value in self.operands))

    def program(self, dtype: str) -> Program:
        """Return the function as a scalar program of one operand."""
        trace = Trace()
        x = trace.load(0, dtype)
        values = (x if value is None else trace.const(value, dtype) for value in self.operands)
        return trace.program(self.op.scalar(trace, *values))
