"""Pooling over one, two and three axes: the maximum of each window, and the ops of its gradient.

The gradient of max pooling goes to the index of the largest element, the first of equal ones. The index is a node of
its own. Adding elements at indices and taking elements at indices are each other's gradients.
"""

from functools import partial
from math import prod
from typing import Any, ClassVar

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.kernel import Call, View, split_scratch
from cgraph.kernels.pool.calls import pool_calls, volume_pool_calls
from cgraph.kernels.pool_indices.calls import place_calls, spread_calls
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.target import Target
from cgraph.kernels.views.window import Window
from cgraph.kernels.views.window_views import PLACE, repeat_axes, select_matches, window_places
from cgraph.ops.family import real_node
from cgraph.ops.leaf import as_node
from cgraph.ops.window import (
    Sizes,
    Windows,
    pads,
    reverse_axes,
    sizes,
)
from cgraph.record import replace
from cgraph.system.alignment import aligned


class Pool(Op):
    """One element from each window of ``[n, c, ...]``.

    Fields
        window, stride, pad, dilation: geometry of the windows; see `cgraph.ops.window`
        ceil: a last window may extend beyond the padding, if it begins before it
    Raises
        ShapeError: a window does not fit, or contains padding only
    """

    window: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool
    kind: ClassVar[str] = ""

    @property
    def moves(self) -> Windows:
        return Windows(self.window, self.stride, self.pad, self.dilation)

    def results(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of windows along each axis of ``[n, c, ...]``."""
        counts = (self.moves.ceil_result if self.ceil else self.moves.result)(shape[2:])
        if self.moves.leave_out(shape[2:], counts):
            raise ShapeError(f"a window {list(self.window)} contains only padding {list(self.pad)}; use less padding")
        return counts

    def infer(self, x: Spec) -> Spec:
        if x.ndim != len(self.window) + 2:
            raise ShapeError(f"the operand {x} has {x.ndim} axes; pass one of {len(self.window) + 2}")
        if x.dtype.kind == "b":
            raise DTypeError(f"pooling of bool {x} is not supported; convert with astype first")
        return Spec((*x.shape[:2], *self.results(x.shape)), x.dtype)

    def outside(self, dtype: np.dtype) -> float | int:
        """Return the value of the padding."""
        return 0

    def windows_of(self, x: np.ndarray) -> np.ndarray:
        """Return the elements of each window, flat: ``[n, c, *results, window]``."""
        results = self.results(x.shape)
        windows = self.moves.windows_of(self.moves.padded_array(x, results, self.outside(x.dtype)), results)
        return windows.reshape(*x.shape[:2], *results, prod(self.window))

    def scratch_nbytes(self, x: Spec | View) -> tuple[int, int]:
        """Return the bytes of the padded operand and of the reduction's partial sums."""
        results = self.results(x.shape)
        code, size = (code_of(x.dtype), x.dtype.itemsize) if isinstance(x, Spec) else (x.dtype, x.itemsize)
        shape = (*x.shape[:2], *results, *self.window)
        parts = reduce_nbytes(self.kind, code, shape, self.over)
        return self.moves.padded_nbytes(x.shape, results, size), parts

    def flat_window(self, x: Spec | View) -> Window | None:
        """Return the window over images of floats, whose kernels need no copy; None for anything else."""
        if len(self.window) != 2 or (x.dtype if isinstance(x, View) else code_of(x.dtype))[0] != "f":
            return None
        return Window(self.window, self.stride, self.pad, self.dilation)  # type: ignore[arg-type]

    def volume_windows(self, x: Spec) -> tuple[Window, Window] | None:
        """Return the window over frames and that along the depth of volumes of floats; None for anything else."""
        if len(self.window) != 3 or x.dtype.kind != "f":
            return None
        along = Window(
            (self.window[0], 1), (self.stride[0], 1), (self.pad[0], 0, self.pad[3], 0), (self.dilation[0], 1)
        )
        frame = self.pad[1:3] + self.pad[4:]
        return Window(self.window[1:], self.stride[1:], frame, self.dilation[1:]), along  # type: ignore[arg-type]

    def kernel_work(self, target: Target, x: Spec, kind: str, count_pad: bool) -> Work | None:
        """Return the work of the pooling kernels, for images and volumes of floats; None for anything else."""
        window, windows = self.flat_window(x), self.volume_windows(x)
        if window is not None:
            return Work(lambda out, x: list(pool_calls(target, out, x, window, kind, count_pad).calls))
        if windows is not None:
            return Work(lambda out, x: list(volume_pool_calls(target, out, x, windows, kind, count_pad).calls))
        return None

    @property
    def over(self) -> tuple[int, ...]:
        """The axes of a window in the view of all windows."""
        axes = len(self.window)
        return tuple(range(2 + axes, 2 + 2 * axes))

    def work(self, target: Target, x: Spec) -> Work:
        m = Trace()
        program = m.program(m.load(0, code_of(x.dtype)))
        return Work(partial(self.reduction_calls, target, program), sum(map(aligned, self.scratch_nbytes(x))))

    def reduction_calls(
        self, target: Target, program: Program, out: View, x: View, *more: View, workspace: View | None = None
    ) -> list[Call]:
        """Reduce every window of `x`; `more` are further operands, as views of all windows."""
        scratch, parts = split_scratch(workspace, *self.scratch_nbytes(x))
        results = self.results(x.shape)
        calls, x = self.moves.padded_view(target, x, results, self.outside(np.dtype(x.dtype)), scratch)
        windows = self.moves.window_view(x, results)
        return calls + reduce_calls(target, self.kind, program, out, windows, *more, axes=self.over, workspace=parts)


class MaxPool(Pool):
    """The largest element of each window. Padding is never the largest; NaN always is."""

    kind = "max"

    def outside(self, dtype: np.dtype) -> float | int:
        return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)

    def meaning(self, x):
        return self.windows_of(x).max(-1)

    def row_rule(self, x: Spec) -> RowRule | None:
        return rows_of_all(self, x.shape)

    def work(self, target: Target, x: Spec) -> Work:
        return self.kernel_work(target, x, "max", False) or super().work(target, x)

    def grad(self, node, g):
        x = node.operands[0]
        indices = apply(sibling(self, MaxPoolIndices), x)
        return (apply(sibling(self, ScatterToIndices, x.shape[2:]), indices, g),)


class MaxPoolIndices(MaxPool):
    """The index of the largest element in each window, in C order; the first of equal ones."""

    kind = "argmax"

    def infer(self, x: Spec) -> Spec:
        return Spec(super().infer(x).shape, PLACE)

    def meaning(self, x):
        return self.windows_of(x).argmax(-1).astype(PLACE)

    def work(self, target: Target, x: Spec) -> Work:
        window = self.flat_window(x)
        if window is None:
            return Pool.work(self, target, x)
        return Work(lambda out, x: list(place_calls(target, out, x, window).calls))

    def grad(self, node, g):
        return (None,)


def scatter_to_windows(target: Target, window: Window, out: View, indices: View, g: View) -> list[Call]:
    """Add elements up at their indices."""
    return list(spread_calls(target, out, indices, g, window).calls) if out.size else []


class TakeAtIndices(Pool):
    """The element at an index of each window of `x`: the adjoint of ScatterToIndices.

    Operands
        indices: as MaxPoolIndices returns them
        x: ``[n, c, ...]``
    """

    kind = "sum"

    def infer(self, indices: Spec, x: Spec) -> Spec:  # type: ignore[override]
        result = super().infer(x)
        if indices.shape != result.shape or indices.dtype != PLACE:
            raise ShapeError(f"indices {indices} do not fit; pass int32{list(result.shape)}, one for each window")
        return result

    def meaning(self, indices, x):
        return np.take_along_axis(self.windows_of(x), indices[..., None], -1)[..., 0]

    def work(self, target: Target, indices: Spec, x: Spec) -> Work:  # type: ignore[override]
        program = select_matches(code_of(x.dtype))

        def calls(out: View, indices: View, x: View, workspace: View | None = None) -> list[Call]:
            every_index = repeat_axes(indices, len(indices.shape), *self.window)
            return self.reduction_calls(
                target, program, out, x, every_index, window_places(self.window), workspace=workspace
            )

        return replace(super().work(target, x), calls=calls)

    def grad(self, node, g):
        indices, x = node.operands
        return None, apply(sibling(self, ScatterToIndices, x.shape[2:]), indices, g)


class ScatterToIndices(Pool):
    """Elements added up at their indices in the windows: the gradient of max pooling.

    Operands
        indices: as MaxPoolIndices returns them
        g: one element for each window
    Fields
        shape: lengths of the result's axes after the channels
    """

    shape: tuple[int, ...]
    kind = "sum"

    def infer(self, indices: Spec, g: Spec) -> Spec:  # type: ignore[override]
        shape = (*g.shape[:2], *self.shape)
        if indices.shape != g.shape or indices.dtype != PLACE or self.results(shape) != g.shape[2:]:
            raise ShapeError(
                f"indices {indices} and elements {g} do not fit windows over {list(self.shape)}; pass one each"
            )
        return Spec(shape, g.dtype)

    def meaning(self, indices, g):
        parts = (np.where(indices == i, g, 0).astype(g.dtype) for i in range(prod(self.window)))
        return self.moves.fold(parts, self.shape)

    def pieces(self, leading: tuple[int, ...], code: str) -> tuple[int, int, int]:
        """Return the bytes of the spread indices and elements, and of the reduction's partial sums."""
        shape = (*leading, *self.shape, *self.window)
        nbytes = (self.moves.spread_nbytes(self.shape, leading, n) for n in (PLACE.itemsize, int(code[1:])))
        return (*nbytes, reduce_nbytes("sum", code, shape, self.over))  # type: ignore[return-value]

    def work(self, target: Target, indices: Spec, g: Spec) -> Work:  # type: ignore[override]
        window = self.flat_window(g)
        if window is not None:
            return Work(partial(scatter_to_windows, target, window))
        return Work(partial(self.calls, target), sum(map(aligned, self.pieces(g.shape[:2], code_of(g.dtype)))))

    def calls(self, target: Target, out: View, indices: View, g: View, workspace: View | None = None) -> list[Call]:
        """Spread indices and elements, then sum over the windows that contain each element."""
        if out.size == 0:
            return []
        first, second, parts = split_scratch(workspace, *self.pieces(g.shape[:2], g.dtype))
        place_calls, indices = self.moves.spread_view(target, indices, self.shape, -1, first)
        calls, g = self.moves.spread_view(target, g, self.shape, 0, second)
        ones = (1,) * len(self.window)
        steps = Windows(self.window, ones, (0,) * len(self.pad), self.dilation)
        axes = range(len(self.window))
        views = (steps.window_view(g, self.shape), steps.window_view(indices, self.shape))
        order = reverse_axes(window_places(self.window), axes)
        program = select_matches(g.dtype)
        sums = reduce_calls(target, "sum", program, out, *views, order, axes=self.over, workspace=parts)
        return place_calls + calls + sums

    def grad(self, node, g):
        return None, apply(sibling(self, TakeAtIndices), node.operands[0], g)


def sibling(op: Pool, kind: Any, *rest: Any) -> Op:
    """Return another op of this file with the window geometry of `op`."""
    return kind(op.window, op.stride, op.pad, op.dilation, op.ceil, *rest)


# -- public functions -------------------------------------------------------------------------------------------------


def pool_node(op: Any, axes: int, x: Any, window: Sizes, stride: Any, pad: Sizes, dilation: Sizes, *rest: bool) -> Node:
    x = as_node(x)
    size = sizes(window, axes, "window")
    step = size if stride is None else sizes(stride, axes, "stride")
    return apply(op(size, step, pads(pad, axes), sizes(dilation, axes, "dilation"), *rest), x)


@public
def max_pool1d(
    x: Any, window: Sizes, stride: Sizes | None = None, pad: Sizes = 0, ceil: bool = False, dilation: Sizes = 1
) -> Node:
    """Return the largest element of each window of ``[n, c, w]``; the stride is the window by default."""
    return pool_node(MaxPool, 1, x, window, stride, pad, dilation, ceil)


@public
def max_pool2d(
    x: Any, window: Sizes, stride: Sizes | None = None, pad: Sizes = 0, ceil: bool = False, dilation: Sizes = 1
) -> Node:
    """Return the largest element of each window of ``[n, c, h, w]``; the stride is the window by default."""
    return pool_node(MaxPool, 2, x, window, stride, pad, dilation, ceil)


@public
def max_pool3d(
    x: Any, window: Sizes, stride: Sizes | None = None, pad: Sizes = 0, ceil: bool = False, dilation: Sizes = 1
) -> Node:
    """Return the largest element of each window of ``[n, c, d, h, w]``; the stride is the window by default."""
    return pool_node(MaxPool, 3, x, window, stride, pad, dilation, ceil)


@public
def global_max_pool(x: Any) -> Node:
    """Return the largest element of each channel of ``[n, c, ...]`` as ``[n, c, 1, ...]``."""
    x = real_node(x)
    return x.max(tuple(range(2, x.ndim)), keepdims=True)
