"""Convolution over one, two and three axes, its transpose, and the gradient for filters.

Each of the three is a gradient of the others. The kernels here are generic: a sum of products over a view of all
windows, for any shape and layout. Lowering replaces them where faster kernels apply.
"""

from functools import partial
from math import prod
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.gemm.contraction import Contraction
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, split_scratch
from cgraph.kernels.move.calls import fill_calls
from cgraph.kernels.target import Target
from cgraph.kernels.views.window_views import reorder_axes, repeat_axes, split_axis
from cgraph.ops.family import common_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.pad import Pad
from cgraph.ops.window import (
    Sizes,
    Windows,
    pads,
    reverse_axes,
    sizes,
)
from cgraph.system.alignment import aligned


class Conv(Op):
    """Cross-correlation of images with filters, as in convolutional networks.

    ``out[n,k,p,q] = sum over c,r,s of x[n, c, p*stride + r*dilation - top, q*stride + s*dilation - left] * f[k,c,r,s]``
    with `x` taken as zero outside the image; with groups, c runs over the channels of k's group.

    Operands
        x: images ``[n, c, ...]``
        f: filters ``[k, c / groups, ...]``
    Fields
        stride: elements from one window to the next along each axis, >= 1
        pad: zeros before each axis, then after each axis: ``(top, left, bottom, right)``
        dilation: elements from one filter element to the next, >= 1
        groups: number of channel groups that are convolved separately
    Result
        ``[n, k, ...]``, with ``p = (h + top + bottom - ((r - 1) * dilation + 1)) // stride + 1``
    Raises
        ShapeError: channels and groups do not fit, or a filter is larger than the padded image
    Source
        ONNX operator Conv; Dumoulin and Visin 2016, arXiv:1603.07285
    """

    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    is_layer = True

    def moves(self, window: tuple[int, ...]) -> Windows:
        return Windows(window, self.stride, self.pad, self.dilation)

    def infer(self, x: Spec, f: Spec) -> Spec:
        check(self, x, f)
        if x.shape[1] != f.shape[1] * self.groups or f.shape[0] % self.groups:
            raise ShapeError(
                f"images have {x.shape[1]} channels, {f.shape[0]} filters in {self.groups} groups "
                f"read {f.shape[1] * self.groups}; pass filters [k, c / groups, ...] with k a multiple of groups"
            )
        return Spec((x.shape[0], f.shape[0], *self.moves(f.shape[2:]).result(x.shape[2:])), x.dtype)

    def meaning(self, x, f):
        moves = self.moves(f.shape[2:])
        results = moves.result(x.shape[2:])
        products = self.sum_windows("ngc{p}{r},gkc{r}->ngk{p}", moves, x, results, split_groups(f, 0, self.groups))
        return products.reshape(x.shape[0], f.shape[0], *results)

    def sum_windows(self, equation: str, moves: Windows, x: Any, results: tuple[int, ...], y: Any) -> Any:
        """Return the einsum of the windows of images and `y`; ``{p}`` are axes of the results, ``{r}`` of a window."""
        windows = moves.windows_of(moves.padded_array(x, results, 0), results)
        axes = len(self.stride)
        text = equation.format(p="pqu"[:axes], r="rsv"[:axes])
        return np.einsum(text, split_groups(windows, 1, self.groups), y, optimize=True)

    def row_rule(self, x: Spec, f: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: self)

    def multiply_adds(self, x: Spec, f: Spec) -> int:
        return self.infer(x, f).size * prod(f.shape[1:])

    def work(self, target: Target, x: Spec, f: Spec) -> Work:
        nbytes = self.scratch_nbytes(target, x, f)
        return Work(partial(self.calls, target, nbytes), sum(map(aligned, nbytes)))

    def scratch_nbytes(self, target: Target, x: Spec, f: Spec) -> tuple[int, int]:
        """Return the bytes of the padded or spread images and of the products."""
        result = self.infer(x, f)
        if result.size == 0 or x.size == 0 or f.size == 0:
            return 0, 0
        out, x_view, f_view = (abstract_view(spec) for spec in (result, x, f))
        image = self.image_nbytes(x, f)
        _, image_view = self.image(target, x_view, f_view, contiguous(NOWHERE, (image,), "u1"))
        return image, self.products(target, out, image_view, f_view).nbytes

    def image_nbytes(self, x: Spec, f: Spec) -> int:
        moves = self.moves(f.shape[2:])
        return moves.padded_nbytes(x.shape, moves.result(x.shape[2:]), x.dtype.itemsize)

    def image(self, target: Target, x: View, f: View, workspace: View | None) -> tuple[list[Call], View]:
        """Return the calls that pad the images, and a view of the padded images."""
        moves = self.moves(f.shape[2:])
        return moves.padded_view(target, x, moves.result(x.shape[2:]), 0, workspace)

    def calls(
        self, target: Target, nbytes: tuple[int, int], out: View, x: View, f: View, workspace: View | None = None
    ) -> list[Call]:
        """Prepare the images, then compute the products."""
        if out.size == 0:
            return []
        if x.size == 0 or f.size == 0:
            return fill_calls(target, out, 0)
        image, products = split_scratch(workspace, *nbytes)
        calls, x = self.image(target, x, f, image)
        return calls + self.products(target, out, x, f).calls(products)

    def products(self, target: Target, out: View, x: View, f: View) -> Contraction:
        """Return the sum of products over the windows of the padded images."""
        moves, results = self.moves(f.shape[2:]), out.shape[2:]
        windows = split_axis(moves.window_view(x, results), 1, self.groups)  # [n, g, c, p.., r..]
        filters = split_axis(f, 0, self.groups)  # [g, k, c, r..]
        axes = len(results)
        k = filters.shape[1]
        order = (0, 1, *range(3, 3 + axes), 2, *range(3 + axes, 3 + 2 * axes))
        windows = repeat_axes(reorder_axes(windows, order), 2, k)  # [n, g, k, p.., c, r..]
        filters = repeat_axes(repeat_axes(filters, 2, *results), 0, x.shape[0])
        over = tuple(range(3 + axes, 4 + 2 * axes))
        return Contraction(target, split_axis(out, 1, self.groups), windows, filters, over)

    def grad(self, node, g):
        x, f = node.operands
        to_x = apply(sibling(self, ConvTranspose, x.shape[2:]), g, f)
        return to_x, apply(sibling(self, ConvFilters, f.shape[2:]), x, g)


class Conv1d(Conv):
    """Cross-correlation of sequences ``[n, c, w]`` with filters; see Conv."""


class Conv2d(Conv):
    """Cross-correlation of images ``[n, c, h, w]`` with filters; see Conv."""


class Conv3d(Conv):
    """Cross-correlation of volumes ``[n, c, d, h, w]`` with filters; see Conv."""


CONV = {1: Conv1d, 2: Conv2d, 3: Conv3d}


class ConvTranspose(Conv):
    """The adjoint of Conv for its images: every element spreads its filter over the result.

    Operands
        x: ``[n, k, ...]``, of the shape of a result of that Conv
        f: its filters ``[k, c / groups, ...]``
    Fields
        shape: lengths of the result's axes after the channels
    Result
        ``[n, c, ...]``
    Raises
        ShapeError: that Conv of images of `shape` does not give the shape of `x`
    """

    shape: tuple[int, ...]

    def infer(self, x: Spec, f: Spec) -> Spec:
        check(self, x, f)
        if x.shape[1] != f.shape[0] or f.shape[0] % self.groups:
            raise ShapeError(
                f"images have {x.shape[1]} channels, but there are {f.shape[0]} filters in {self.groups} groups; "
                "pass filters [k, c / groups, ...] for images [n, k, ...]"
            )
        if self.moves(f.shape[2:]).result(self.shape) != x.shape[2:]:
            raise ShapeError(
                f"a convolution of {list(self.shape)} does not give {list(x.shape[2:])}; change output_pad"
            )
        return Spec((x.shape[0], f.shape[1] * self.groups, *self.shape), x.dtype)

    def meaning(self, x, f):
        shape = (x.shape[0], f.shape[1] * self.groups, *x.shape[2:])
        if not x.size or not f.size:
            return np.zeros((*shape[:2], *self.shape), x.dtype)
        x, f, moves = split_groups(x, 1, self.groups), split_groups(f, 0, self.groups), self.moves(f.shape[2:])
        parts = (np.einsum("ngk...,gkc->ngc...", x, f[(..., *tap)], optimize=True) for tap in np.ndindex(moves.window))
        return moves.fold((part.reshape(shape) for part in parts), self.shape)

    def multiply_adds(self, x: Spec, f: Spec) -> int:
        return x.size * prod(f.shape[1:])

    def image_nbytes(self, x: Spec, f: Spec) -> int:
        return self.moves(f.shape[2:]).spread_nbytes(self.shape, x.shape[:2], x.dtype.itemsize)

    def image(self, target: Target, x: View, f: View, workspace: View | None) -> tuple[list[Call], View]:
        """Return the calls that spread the elements apart, and a view of the spread elements."""
        return self.moves(f.shape[2:]).spread_view(target, x, self.shape, 0, workspace)

    def products(self, target: Target, out: View, x: View, f: View) -> Contraction:
        """Return the sum of products over windows of the spread elements, with reversed filters."""
        moves = self.moves(f.shape[2:])
        ones = (1,) * len(self.shape)
        steps = Windows(moves.window, ones, (0,) * len(self.pad), self.dilation)
        windows = split_axis(steps.window_view(x, self.shape), 1, self.groups)  # [n, g, k, i.., r..]
        axes = len(self.shape)
        filters = split_axis(f, 0, self.groups)  # [g, k, c, r..]
        filters = reverse_axes(filters, range(3, 3 + axes))
        order = (0, 1, *range(3, 3 + axes), 2, *range(3 + axes, 3 + 2 * axes))
        windows = repeat_axes(reorder_axes(windows, order), 2, f.shape[1])  # [n, g, c, i.., k, r..]
        filters = reorder_axes(filters, (0, 2, 1, *range(3, 3 + axes)))
        filters = repeat_axes(repeat_axes(filters, 2, *self.shape), 0, x.shape[0])
        over = tuple(range(3 + axes, 4 + 2 * axes))
        return Contraction(target, split_axis(out, 1, self.groups), windows, filters, over)

    def grad(self, node, g):
        x, f = node.operands
        conv = sibling(self, CONV[len(self.shape)])
        return apply(conv, g, f), apply(sibling(self, ConvFilters, f.shape[2:]), g, x)


class ConvFilters(Conv):
    """The adjoint of Conv for its filters.

    Operands
        x: images ``[n, c, ...]``
        g: ``[n, k, ...]``, of the shape of the result
    Fields
        window: lengths of the filters' axes after the channels
    Result
        ``[k, c / groups, ...]``
    """

    window: tuple[int, ...]

    def infer(self, x: Spec, g: Spec) -> Spec:
        check(self, x, g)
        if x.shape[0] != g.shape[0] or x.shape[1] % self.groups or g.shape[1] % self.groups:
            raise ShapeError(f"images {x} and results {g} do not fit {self.groups} groups")
        if self.moves(self.window).result(x.shape[2:]) != g.shape[2:]:
            raise ShapeError(
                f"windows {list(self.window)} over {list(x.shape[2:])} do not give results {list(g.shape[2:])}"
            )
        return Spec((g.shape[1], x.shape[1] // self.groups, *self.window), x.dtype)

    def row_rule(self, x: Spec, g: Spec) -> None:
        return None

    def meaning(self, x, g):
        moves, gradients = self.moves(self.window), split_groups(g, 1, self.groups)
        products = self.sum_windows("ngc{p}{r},ngk{p}->gkc{r}", moves, x, g.shape[2:], gradients)
        return products.reshape(g.shape[1], *products.shape[2:])

    def multiply_adds(self, x: Spec, g: Spec) -> int:
        return g.size * prod(self.infer(x, g).shape[1:])

    def image_nbytes(self, x: Spec, g: Spec) -> int:
        return self.moves(self.window).padded_nbytes(x.shape, g.shape[2:], x.dtype.itemsize)

    def image(self, target: Target, x: View, g: View, workspace: View | None) -> tuple[list[Call], View]:
        """Return the calls that pad the images, and a view of the padded images."""
        return self.moves(self.window).padded_view(target, x, g.shape[2:], 0, workspace)

    def products(self, target: Target, out: View, x: View, g: View) -> Contraction:
        """Return the sum over images and windows of the window's elements times the gradient of the result."""
        moves, results = self.moves(self.window), g.shape[2:]
        windows = split_axis(moves.window_view(x, results), 1, self.groups)  # [n, g, c, p.., r..]
        axes = len(results)
        order = (1, 2, *range(3 + axes, 3 + 2 * axes), 0, *range(3, 3 + axes))
        windows = repeat_axes(reorder_axes(windows, order), 1, g.shape[1] // self.groups)  # [g, k, c, r.., n, p..]
        gradients = reorder_axes(split_axis(g, 1, self.groups), (1, 2, 0, *range(3, 3 + axes)))  # [g, k, n, p..]
        gradients = repeat_axes(gradients, 2, x.shape[1] // self.groups, *self.window)
        over = tuple(range(3 + axes, 4 + 2 * axes))
        return Contraction(target, split_axis(out, 0, self.groups), windows, gradients, over)

    def grad(self, node, g):
        x, result = node.operands
        conv = sibling(self, CONV[len(self.window)])
        return apply(sibling(self, ConvTranspose, x.shape[2:]), result, g), apply(conv, x, g)


def check(op: Conv, x: Spec, y: Spec) -> None:
    """Check ranks and dtypes. DTypeError or ShapeError otherwise."""
    if x.dtype != y.dtype or x.dtype.kind == "b":
        raise DTypeError(f"images are {x.dtype} and filters {y.dtype}; use astype to give them one dtype of numbers")
    ndim = len(op.stride) + 2
    if x.ndim != ndim or y.ndim != ndim:
        raise ShapeError(f"images {x} and filters {y} must have {ndim} axes each; reshape them or use another conv")


def sibling(op: Conv, kind: Any, *rest: Any) -> Op:
    """Return another op of this file with the window geometry of `op`."""
    return kind(op.stride, op.pad, op.dilation, op.groups, *rest)


def split_groups(x: np.ndarray, axis: int, groups: int) -> np.ndarray:
    """Split an axis into groups and the elements of a group."""
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


NOWHERE = Pointer(None)


def abstract_view(spec: Spec) -> View:
    """Return a view of a value at no address, for computing sizes."""
    return contiguous(NOWHERE, spec.shape, code_of(spec.dtype))


# -- public functions -------------------------------------------------------------------------------------------------


def conv_node(axes: int, x: Any, f: Any, stride: Sizes, pad: Sizes, dilation: Sizes, groups: int) -> Node:
    x, f = same_dtype(x, f)
    geometry = sizes(stride, axes, "stride"), pads(pad, axes), sizes(dilation, axes, "dilation")
    sizes(groups, 1, "groups")
    return apply(CONV[axes](*geometry, groups), x, f)


def same_dtype(x: Any, f: Any) -> list[Node]:
    dtype = common_dtype(x, f)
    return [as_node(v, dtype).astype(dtype) for v in (x, f)]


@public
def conv1d(x: Any, f: Any, stride: Sizes = 1, pad: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Node:
    """Cross-correlate sequences ``[n, c, w]`` with filters ``[k, c / groups, r]``; see conv2d."""
    return conv_node(1, x, f, stride, pad, dilation, groups)


@public
def conv2d(x: Any, f: Any, stride: Sizes = 1, pad: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Node:
    """Cross-correlate images ``[n, c, h, w]`` with filters ``[k, c / groups, r, s]``, as in convolutional networks.

    Parameters
        stride: elements from one window to the next; one integer, or one for each axis
        pad: zeros around the image: one integer, ``(rows, columns)`` or ``(top, left, bottom, right)``
        dilation: elements from one filter element to the next; one integer, or one for each axis
        groups: number of channel groups that are convolved separately
    Returns
        ``[n, k, p, q]``, with ``p = (h + top + bottom - ((r - 1) * dilation + 1)) // stride + 1``
    Raises
        ShapeError: channels and groups do not fit, or a filter is larger than the padded image
    """
    return conv_node(2, x, f, stride, pad, dilation, groups)


@public
def conv3d(x: Any, f: Any, stride: Sizes = 1, pad: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Node:
    """Cross-correlate volumes ``[n, c, d, h, w]`` with filters ``[k, c / groups, ...]``; see conv2d."""
    return conv_node(3, x, f, stride, pad, dilation, groups)


def conv_transpose_node(
    axes: int, x: Any, f: Any, stride: Sizes, pad: Sizes, dilation: Sizes, groups: int, extra: Sizes
) -> Node:
    """Build a transposed convolution. `pad` elements are cut off the full result, after `extra` are appended."""
    x, f = same_dtype(x, f)
    sizes(groups, 1, "groups")
    steps, cut, apart = sizes(stride, axes, "stride"), pads(pad, axes), sizes(dilation, axes, "dilation")
    more = (extra,) * axes if isinstance(extra, int) else tuple(extra)
    if x.ndim != axes + 2 or f.ndim != axes + 2:
        raise ShapeError(f"{x.name} {x.spec} and {f.name} {f.spec} must have {axes + 2} axes each; reshape them")
    if any(m >= max(s, d) for m, s, d in zip(more, steps, apart)):
        raise ShapeError(f"each output_pad {more} must be less than its stride or dilation; change output_pad")
    # appended elements of a step or more first replace those that pad cuts off; the rest are zeros
    over = [max(m - s + 1, 0) for m, s in zip(more, steps)]
    zeros = [max(m - after, 0) for m, after in zip(over, cut[axes:])]
    sides = cut[:axes] + tuple(max(after - m, 0) for m, after in zip(over, cut[axes:]))
    shape = tuple(
        (n - 1) * s + (r - 1) * d + 1 - cut[i] - cut[axes + i] + more[i] - zeros[i]
        for i, (n, s, r, d) in enumerate(zip(x.shape[2:], steps, f.shape[2:], apart))
    )
    y = apply(ConvTranspose(steps, sides, apart, groups, shape), x, f)
    return apply(Pad(((0, 0), (0, 0), *((0, z) for z in zeros)), 0.0), y) if any(zeros) else y


@public
def conv_transpose1d(
    x: Any, f: Any, stride: Sizes = 1, pad: Sizes = 0, dilation: Sizes = 1, groups: int = 1, output_pad: Sizes = 0
) -> Node:
    """Apply the adjoint of conv1d: ``[n, k, p]`` with filters ``[k, c / groups, r]`` gives ``[n, c, w]``.

    ``w = (p - 1) * stride + (r - 1) * dilation + 1 - pad + output_pad``; `pad` and `output_pad` as in ONNX.
    `output_pad` is less than the stride or the dilation.
    """
    return conv_transpose_node(1, x, f, stride, pad, dilation, groups, output_pad)


@public
def conv_transpose2d(
    x: Any, f: Any, stride: Sizes = 1, pad: Sizes = 0, dilation: Sizes = 1, groups: int = 1, output_pad: Sizes = 0
) -> Node:
    """Apply the adjoint of conv2d to ``[n, k, p, q]``, with filters ``[k, c / groups, r, s]``; see conv_transpose1d."""
    return conv_transpose_node(2, x, f, stride, pad, dilation, groups, output_pad)


@public
def conv_transpose3d(
    x: Any, f: Any, stride: Sizes = 1, pad: Sizes = 0, dilation: Sizes = 1, groups: int = 1, output_pad: Sizes = 0
) -> Node:
    """Apply the adjoint of conv3d, for volumes; see conv_transpose1d."""
    return conv_transpose_node(3, x, f, stride, pad, dilation, groups, output_pad)
