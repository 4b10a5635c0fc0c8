"""Average pooling over one, two and three axes, and its adjoint."""

from functools import partial
from math import prod
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.expression import Trace
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, split_scratch
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.target import Target
from cgraph.ops.leaf import Const, as_node
from cgraph.ops.pool import Pool, pool_node, sibling
from cgraph.ops.window import Sizes, Windows
from cgraph.record import replace
from cgraph.system.alignment import aligned


class AvgPool(Pool):
    """The mean of each window.

    Fields
        count_pad: padding counts as elements of a window; elements beyond the padding, which `ceil` adds, never count
    """

    count_pad: bool
    kind = "sum"

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind != "f":
            raise DTypeError(f"average pooling needs floats, not {x.dtype}; convert with astype first")
        return super().infer(x)

    def divisor(self, x: Any) -> np.ndarray:
        """Return the number of elements that count in each window: ``[*results]`` in the operand's dtype."""
        counts = self.moves.counts(x.shape[2:], self.results(x.shape), self.count_pad)
        return counts.astype(x.dtype)

    def meaning(self, x):
        return self.windows_of(x).sum(-1) / self.divisor(x)

    def row_rule(self, x: Spec) -> RowRule | None:
        return rows_of_all(self, x.shape)

    def work(self, target: Target, x: Spec) -> Work:
        work = self.kernel_work(target, x, "mean", self.count_pad)
        if work is not None:
            return work
        summed, counts, code = super().work(target, x), self.divisor(x), code_of(x.dtype)
        m = Trace()
        quotient = m.program(m.load(0, code) / m.load(1, code))
        by = contiguous(Pointer(counts), counts.shape, code)

        def calls(out: View, x: View, workspace: View | None = None) -> list[Call]:
            return summed.calls(out, x, workspace=workspace) + pointwise_calls(target, quotient, out, out, by)

        return replace(summed, calls=calls)

    def grad(self, node, g):
        x = node.operands[0]
        return (apply(sibling(self, SpreadToWindows, x.shape[2:]), g / Const(self.divisor(x))),)


class SpreadToWindows(Pool):
    """Each element added to its whole window: the adjoint of the sum over windows.

    Fields
        shape: lengths of the result's axes after the channels
    """

    shape: tuple[int, ...]
    kind = "sum"

    def infer(self, g: Spec) -> Spec:
        shape = (*g.shape[:2], *self.shape)
        if self.results(shape) != g.shape[2:]:
            raise ShapeError(
                f"windows over {list(self.shape)} give {list(self.results(shape))} results, not {list(g.shape[2:])}"
            )
        return Spec(shape, g.dtype)

    def meaning(self, g):
        return self.moves.fold((g for _ in range(prod(self.window))), self.shape)

    def pieces(self, leading: tuple[int, ...], code: str) -> tuple[int, int]:
        """Return the bytes of the spread elements and of the reduction's partial sums."""
        shape = (*leading, *self.shape, *self.window)
        spread = self.moves.spread_nbytes(self.shape, leading, int(code[1:]))
        return spread, reduce_nbytes("sum", code, shape, self.over)

    def work(self, target: Target, g: Spec) -> Work:
        return Work(partial(self.calls, target), sum(map(aligned, self.pieces(g.shape[:2], code_of(g.dtype)))))

    def calls(self, target: Target, out: View, g: View, workspace: View | None = None) -> list[Call]:
        """Spread the elements, then sum over the windows that contain each of them."""
        if out.size == 0:
            return []
        scratch, parts = split_scratch(workspace, *self.pieces(g.shape[:2], g.dtype))
        calls, g = self.moves.spread_view(target, g, self.shape, 0, scratch)
        steps = Windows(self.window, (1,) * len(self.window), (0,) * len(self.pad), self.dilation)
        m = Trace()
        windows = steps.window_view(g, self.shape)
        program = m.program(m.load(0, g.dtype))
        return calls + reduce_calls(target, "sum", program, out, windows, axes=self.over, workspace=parts)

    def grad(self, node, g):
        counts = self.moves.counts(self.shape, node.operands[0].shape[2:], False)
        mean = apply(sibling(self, AvgPool, False), g)
        return (mean * Const(counts.astype(g.dtype)),)


# -- public functions -------------------------------------------------------------------------------------------------


@public
def avg_pool1d(
    x: Any, window: Sizes, stride: Sizes | None = None, pad: Sizes = 0, ceil: bool = False, count_pad: bool = False
) -> Node:
    """Return the mean of each window of ``[n, c, w]``. With `count_pad`, padding counts as elements."""
    return pool_node(AvgPool, 1, x, window, stride, pad, 1, ceil, count_pad)


@public
def avg_pool2d(
    x: Any, window: Sizes, stride: Sizes | None = None, pad: Sizes = 0, ceil: bool = False, count_pad: bool = False
) -> Node:
    """Return the mean of each window of ``[n, c, h, w]``. With `count_pad`, padding counts as elements."""
    return pool_node(AvgPool, 2, x, window, stride, pad, 1, ceil, count_pad)


@public
def avg_pool3d(
    x: Any, window: Sizes, stride: Sizes | None = None, pad: Sizes = 0, ceil: bool = False, count_pad: bool = False
) -> Node:
    """Return the mean of each window of ``[n, c, d, h, w]``. With `count_pad`, padding counts as elements."""
    return pool_node(AvgPool, 3, x, window, stride, pad, 1, ceil, count_pad)


@public
def global_avg_pool(x: Any) -> Node:
    """Return the mean of each channel of ``[n, c, ...]`` as ``[n, c, 1, ...]``."""
    x = as_node(x)
    return x.mean(tuple(range(2, x.ndim)), keepdims=True)
