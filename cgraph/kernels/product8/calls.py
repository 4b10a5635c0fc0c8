"""Calls of products of two computed matrices of bytes: a 1 x 1 convolution whose filters are packed per run."""

from cgraph.kernels.conv8.calls import ByteShape, ByteWeights, MatrixRows, Result, Sides, conv8_calls
from cgraph.kernels.kernel import LINE, Call, Pointer, View, contiguous, split_scratch
from cgraph.kernels.move.calls import fill_calls
from cgraph.kernels.pack8.calls import pack_columns_calls, pack_matrices_calls
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.gemm_tile import spans
from cgraph.kernels.views.matrices import Matrices, Operand, each_matrices
from cgraph.record import Record, replace
from cgraph.system.alignment import aligned

NEAR = 512 << 10  # bytes of both sides of the products that are packed at once
FAR = 1024  # blocks of columns begin a line further, counted in these bytes
MIDDLE = 128  # offset subtracted from right sides in panels


class ProductBatch(Record):
    """Products of matrices of equal sizes that are packed at once, at a constant stride.

    Fields
        count: matrices; `shape`: of one product, rows as pixels
        has_terms: left sides are summed, since the right ones' zero point is not `MIDDLE`
    """

    count: int
    shape: ByteShape
    has_terms: bool

    @property
    def rows(self) -> BlockedView:
        """The left sides: images of one row, with strides that avoid cache conflicts between blocks."""
        shape = self.shape
        apart = -(shape.w * shape.lanes - LINE) % FAR // shape.lanes
        halo = (0, 0, 0, apart)
        return BlockedView(Pointer(None), self.count, shape.c, 1, shape.w, shape.lanes, halo, dtype="u1")

    @property
    def columns(self) -> int:
        """Columns of a right side, to the last panel's end."""
        return self.shape.panels * self.shape.panel_channels

    @property
    def parts(self) -> tuple[int, ...]:
        """Bytes of left sides, right sides, their start sums, scales, and terms."""
        n, terms = 4 * self.columns, 4 * self.count * self.shape.w if self.has_terms else 0
        return self.rows.nbytes, self.count * self.shape.weights_nbytes, self.count * n, n, terms

    @property
    def nbytes(self) -> int:
        return sum(map(aligned, self.parts))

    @staticmethod
    def of(x: Matrices, target: Target, zeros: tuple[int, int]) -> "ProductBatch":
        """Return as many of these products as fit in the L2 cache."""
        one = ProductBatch(1, ByteShape(x.k, 1, x.m, x.n, target), zeros[1] != MIDDLE)
        return replace(one, count=min(x.count, max(1, NEAR // max(one.nbytes, 1))))


def product8_nbytes(target: Target, out: View, x: View, y: View, zeros: tuple[int, int]) -> int:
    """Return the bytes of workspace for `product8_calls`."""
    return max((ProductBatch.of(some, target, zeros).nbytes for some in each_matrices(out, x, y, None)), default=0)


def product8_calls(
    target: Target, out: View, x: View, y: View, zeros: tuple[int, int], scale: float, result: Result, workspace: View
) -> list[Call]:
    """Compute ``out[..., i, j] = result(sum over k of (x[..., i, k] - zeros[0]) * (y[..., k, j] - zeros[1]))``

    Operands
        out, x, y: ``[..., m, n]``, bytes ``[..., m, k]`` and ``[..., k, n]`` of any strides, with the batch shape of
            `out`, whose rows lie in one piece
        scale: scale of all sums
    """
    calls: list[Call] = []
    for some in each_matrices(out, x, y, None):
        each = ProductBatch.of(some, target, zeros)
        for first, count in spans(some.count, each.count):
            to, left, right = (z.moved(first) for z in (some.out, some.a, some.b))
            calls += some_calls(replace(each, count=count), to, left, right, zeros, scale, result, workspace)
    return calls


def some_calls(
    some: ProductBatch,
    out: Operand,
    x: Operand,
    y: Operand,
    zeros: tuple[int, int],
    scale: float,
    result: Result,
    room: View,
) -> list[Call]:
    """Pack both sides, then multiply: ``sum x * (y - 128)`` plus the terms of the zero points."""
    left, right, starts, scales, terms = split_scratch(room, *some.parts)
    assert left and right and starts and scales
    rows, (x_zero, y_zero) = replace(some.rows, at=left.at), zeros
    added = terms.at if terms else None
    factors = contiguous(scales.at, (some.columns,), "f4")
    sides = Sides(some.shape.weights_nbytes, some.columns, added)
    to = MatrixRows(out.at, out.batch, out.row)
    weights = ByteWeights(right.at, starts.at, scales.at)
    lowered = conv8_calls(some.shape, to, rows, weights, result, sides=sides)
    return [
        *pack_matrices_calls(rows, x, added, MIDDLE - y_zero),
        *pack_columns_calls(some.shape, some.count, y, right.at, starts.at, -x_zero, some.shape.c * x_zero * y_zero),
        *fill_calls(some.shape.target, factors, scale),
        *lowered.calls,
    ]
