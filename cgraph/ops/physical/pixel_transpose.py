"""Transposed convolution with few results, as a product of matrices on plain images."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import ShapeError
from cgraph.ir.cut import Cut, index_array
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.expression import Trace
from cgraph.kernels.gemm.matmul_calls import matmul_calls
from cgraph.kernels.kernel import Call, View, contiguous, split_scratch
from cgraph.kernels.move.calls import boxes_around, copy_calls, fill_calls, part
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.kernels.views.window_views import reorder_axes, split_axis
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.linear import workspace_nbytes
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.record import Record, replace
from cgraph.system.alignment import aligned


class Phases(Record):
    """The pixels ``phase, phase + stride, ...`` of a result along one axis, for each phase.

    Fields
        taps, stride, dilation: of the windows
        before: pixels that are cut off before the result
        images, results: pixels along the axis
    """

    taps: int
    stride: int
    dilation: int
    before: int
    images: int
    results: int

    def shifts(self, phase: int) -> Iterator[tuple[int, int]]:
        """Return the taps that meet the pixels of a phase, and the pixel of the images that meets its pixel 0."""
        for tap in range(self.taps):
            at = phase + self.before - tap * self.dilation
            if at % self.stride == 0:
                yield tap, at // self.stride

    def inside(self, phase: int, shift: int) -> tuple[int, int]:
        """Return the first pixel of a phase whose pixel of the images exists, and their number."""
        first = max(0, -shift)
        return first, max(min(self.count(phase), self.images - shift) - first, 0)

    def count(self, phase: int) -> int:
        return len(range(phase, self.results, self.stride))

    @property
    def most(self) -> int:
        """The pixels of the first phase, which has most of them."""
        return self.count(0)

    @property
    def is_disjoint(self) -> bool:
        """True if the windows lie side by side and fill the result."""
        return (self.taps, self.before, self.results) == (self.stride, 0, self.images * self.stride)


class PixelTranspose(Op):
    """``out[n, k, i*stride + a*dilation - top, ...] += x[n, c, i, ...] * f[k*r*s + a*s + b, c]``, and the epilogue.

    All products of a pixel and a window are one product of matrices. Windows that lie side by side are then moved to
    their places; others are added first, those of each phase of the result side by side.

    Operands
        x: plain images ``[n, c, h, w]``
        filters: ``[groups, k / groups * r * s, c / groups]``
        bias: ``[k, 1, 1]``, absent without `has_bias`
    Fields
        conv: stride, padding, dilation and groups; its shape is the rows and columns of the result
        window: r and s
        has_bias: there is a third operand
        activation: two bounds and a slope
    """

    conv: ConvTranspose
    window: tuple[int, int]
    has_bias: bool = False
    activation: BoundedActivation = NONE

    @property
    def name(self) -> str:
        return "conv_transpose"

    def infer(self, x: Spec, filters: Spec, *bias: Spec) -> Spec:
        g, m, c = filters.shape
        if g * c != x.shape[1] or m % prod(self.window) or len(bias) != self.has_bias:
            raise ShapeError(f"filters {filters} and bias {bias} do not fit images {x} and windows {self.window}")
        return Spec((x.shape[0], g * m // prod(self.window), *self.conv.shape), x.dtype)

    def meaning(self, x, filters, *bias):
        g, m, c = filters.shape
        f = filters.swapaxes(1, 2).reshape(g * c, m // prod(self.window), *self.window)
        epilogue = ConvEpilogue(self.conv, has_bias=self.has_bias, activation=self.activation)
        return epilogue.meaning(x, f, *(v[:, 0, 0] for v in bias))

    def multiply_adds(self, x: Spec, filters: Spec, *bias: Spec) -> int:
        return x.size * filters.shape[1]

    def axes(self, x: Spec | View) -> list[Phases]:
        """Return the phases along rows and columns."""
        op = self.conv
        return [
            Phases(self.window[i], op.stride[i], op.dilation[i], op.pad[i], x.shape[2 + i], op.shape[i]) for i in (0, 1)
        ]

    def work(self, target: Target, x: Spec, filters: Spec, *bias: Spec) -> Work:
        """The workspace has the products, the phases of the result, and what the product needs."""
        (n, _, h, w), (g, m, c), axes = x.shape, filters.shape, self.axes(x)
        phases = 0 if all(axis.is_disjoint for axis in axes) else prod(axis.stride * axis.most for axis in axes)
        channels = n * g * m // prod(self.window)
        sizes = n * g * m * h * w, channels * phases
        shapes = ((n, g, m, c), (n, g, c, h * w)), ((n, g, h, m, c), (n, g, h, c, w))
        product = max(workspace_nbytes(target, *shape, code_of(x.dtype)) for shape in shapes)
        nbytes = *(size * x.dtype.itemsize for size in sizes), product
        return Work(partial(self.calls, target, nbytes), sum(map(aligned, nbytes)))

    def calls(
        self, target: Target, nbytes: tuple[int, ...], out: View, x: View, filters: View, *bias: View,
        workspace: View | None = None,
    ) -> list[Call]:  # fmt: skip
        """Multiply, add the products of each phase, then move them to their places."""
        space, sums, parts = split_scratch(workspace, *nbytes)
        assert space is not None
        (n, _, h, w), (_, m, _), (r, s) = x.shape, filters.shape, self.window
        y = contiguous(space.at, (n, filters.shape[0], m, h, w), x.dtype)
        calls = product_calls(target, y, x, filters, parts)
        windows = contiguous(y.at, (n, out.shape[1], r, s, h, w), x.dtype)
        if sums is not None:
            adds, windows = self.sums(target, windows, sums, x)
            calls += adds
        calls += epilogue_calls(target, windows, bias, self.activation)
        return calls + self.moves(target, out, windows)

    def sums(self, target: Target, windows: View, space: View, x: View) -> tuple[list[Call], View]:
        """Return the calls that add the products of each phase, and the view of all phases."""
        rows, columns = self.axes(x)
        shape = (*windows.shape[:2], rows.stride, columns.stride, rows.most, columns.most)
        phases, calls = contiguous(space.at, shape, windows.dtype), []
        for a, b in np.ndindex(rows.stride, columns.stride):
            phase, terms = box(phases, (a, b), (0, 0), (rows.count(a), columns.count(b))), []
            for (i, down), (j, across) in ((p, q) for p in rows.shifts(a) for q in columns.shifts(b)):
                first, sizes = zip(rows.inside(a, down), columns.inside(b, across))
                if all(sizes):
                    terms.append((first, box(windows, (i, j), (first[0] + down, first[1] + across), sizes)))
            calls += sum_calls(target, phase, terms)
        return calls, phases

    def moves(self, target: Target, out: View, phases: View) -> list[Call]:
        """Return the calls that move phases to their places: whole strides, then the rest of rows and columns."""
        calls = []
        for row, h, r in pieces(out.shape[2], phases.shape[2]):
            for column, w, s in pieces(out.shape[3], phases.shape[3]):
                place = part(part(out, 2, row * phases.shape[2], h * r), 3, column * phases.shape[3], w * s)
                source = part(part(part(part(phases, 2, 0, r), 3, 0, s), 4, row, h), 5, column, w)
                places = split_axis(split_axis(place, 3, w), 2, h)
                calls += copy_calls(target, places, reorder_axes(source, (0, 1, 4, 2, 5, 3)))
        return calls

    def row_rule(self, x: Spec, filters: Spec, *bias: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: self)

    def cut(self, x: Spec, filters: Spec, *bias: Spec) -> Cut:
        rows = self.axes(x)[0]
        reach = (rows.taps - 1) * rows.dilation

        def span(first: int, stop: int) -> tuple[int, int]:
            """Return the rows of the images that some rows of the result read; at least one."""
            least = -((reach - first - rows.before) // rows.stride)
            begin = min(max(least, 0), (first + rows.before) // rows.stride, rows.images - 1)
            return begin, max(min((stop - 1 + rows.before) // rows.stride + 1, rows.images), begin + 1)

        def band(first: int, stop: int) -> Op:
            top = rows.before + first - span(first, stop)[0] * rows.stride
            pad = (top, *self.conv.pad[1:])
            return replace(self, conv=replace(self.conv, pad=pad, shape=(stop - first, self.conv.shape[1])))

        spans = np.array([span(row, row + 1) for row in range(rows.results)])
        table = index_array(spans[:, 0]), index_array(spans[:, 1])
        return Cut((table, *(None for _ in (filters, *bias))), band, step=rows.stride)


def sum_calls(target: Target, out: View, terms: Sequence[tuple[tuple[int, ...], View]]) -> list[Call]:
    """Add boxes at their first pixels; the others are 0."""
    if not terms:
        return fill_calls(target, out, 0)
    m = Trace()
    add = m.program(m.load(0, out.dtype) + m.load(1, out.dtype))
    (first, source), *others = ((box(out, (0, 0), first, x.shape[4:]), x) for first, x in terms)
    calls = copy_calls(target, first, source)
    for around in boxes_around(out, (0, 0, 0, 0, *terms[0][0]), source.shape):
        calls += fill_calls(target, around, 0)
    for to, x in others:
        calls += pointwise_calls(target, add, to, to, x)
    return calls


def product_calls(target: Target, y: View, x: View, filters: View, workspace: View | None) -> list[Call]:
    """Multiply the filters of each group by its pixels: those of an image together, or by rows if rows are apart."""
    n, g, m, h, w = y.shape
    c, (image, plane, row, item) = filters.shape[2], x.strides
    pixels = View(x.at, (n, g, h, c, w), (image, c * plane, row, plane, item), x.dtype)
    left = replace(filters, shape=(n, g, h, m, c), strides=(0, filters.strides[0], 0, *filters.strides[1:]))
    out = reorder_axes(y, (0, 1, 3, 2, 4))
    if h == 1 or row == w * item:
        pixels, left, out = (without_rows(v) for v in (pixels, left, out))
        pixels, out = (replace(v, shape=(*v.shape[:3], h * w)) for v in (pixels, out))
    return matmul_calls(target, out, left, pixels, workspace=workspace)


def without_rows(x: View) -> View:
    """Return the first row of each image: ``[n, groups, ...]`` of ``[n, groups, rows, ...]``."""
    return replace(x, shape=x.shape[:2] + x.shape[3:], strides=x.strides[:2] + x.strides[3:])


def box(x: View, phase: tuple[int, int], first: Sequence[int], sizes: Sequence[int]) -> View:
    """Return the pixels of a phase or tap from `first` on, of all images and channels."""
    for axis, (start, count) in enumerate(zip((*phase, *first), (1, 1, *sizes)), 2):
        x = part(x, axis, start, count)
    return x


def pieces(length: int, stride: int) -> list[tuple[int, int, int]]:
    """Return the pieces of an axis of the result: first pixel of a phase, their number, phases."""
    whole, rest = divmod(length, stride)
    return [piece for piece in ((0, whole, stride), (whole, 1, rest)) if piece[1] and piece[2]]


def epilogue_calls(target: Target, y: View, bias: tuple[View, ...], activation: BoundedActivation) -> list[Call]:
    """Add the bias of each channel in place, and apply the activation."""
    if not bias and activation == NONE:
        return []
    m = Trace()
    value = m.load(0, y.dtype) + m.load(1, y.dtype) if bias else m.load(0, y.dtype)
    value = m.where(value > 0, value, value * activation.slope) if activation.slope != 1 else value
    value = m.min(m.max(value, activation.low), activation.high)
    addends = [replace(v, shape=y.shape, strides=(0, v.strides[0], 0, 0, 0, 0)) for v in bias]
    return pointwise_calls(target, m.program(value), y, y, *addends)


def filters_of_pixels(filters: np.ndarray, scale: np.ndarray | None, groups: int) -> np.ndarray:
    """Return filters ``[c, k / groups, r, s]``, times `scale` ``[k]``, as those of a PixelTranspose."""
    c, k, r, s = filters.shape
    scaled = filters.reshape(groups, c // groups, k, r * s)
    if scale is not None:
        scaled = scaled * scale.reshape(groups, 1, k, 1)
    return np.ascontiguousarray(scaled.reshape(groups, c // groups, k * r * s).swapaxes(1, 2))
