"""Products of two computed values, both rounded to bfloat16 (docs/half.md)."""

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.conv8.calls import MatrixRows
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, scratch_pointer
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.pairs.paired_sides import PairedSide
from cgraph.kernels.target import Target
from cgraph.kernels.tile_products.calls import Addend, LeftRows, TileSize, number_rows_calls
from cgraph.kernels.tile_products.computed_sides import LeftSide, RightSide
from cgraph.kernels.views.matrices import Matrices, each_matrices
from cgraph.kernels.views.window_views import repeat_axes
from cgraph.ops.linear import MATRIX_AXES
from cgraph.ops.physical.matmul import activate, addend_nbytes, product_calls
from cgraph.ops.physical.pairs import round_to_bfloat16
from cgraph.record import Record
from cgraph.system.alignment import aligned


class RoundedMatmul(Op):
    """``activation(x @ y + addend)`` of operands rounded to bfloat16, with float32 sums.

    Operands
        x: float32 ``[..., m, k]``
        y: float32 ``[..., k, n]`` with the same leading axes, or one matrix ``[k, n]``
        addend: float32 of the result's shape
    Fields
        has_addend, activation: as for MatmulEpilogue
    """

    has_addend: bool = False
    activation: BoundedActivation = NONE

    @property
    def name(self) -> str:
        return "matmul"

    def infer(self, x: Spec, y: Spec, *addend: Spec) -> Spec:
        return Spec((*x.shape[:-1], y.shape[-1]), x.dtype)

    def meaning(self, x, y, *addend):
        sums = np.matmul(round_to_bfloat16(x), round_to_bfloat16(y))
        return activate(sum(addend, sums), self.activation)

    def multiply_adds(self, x: Spec, y: Spec, *addend: Spec) -> int:
        return x.size * y.shape[-1]

    def row_rule(self, x: Spec, y: Spec, *addend: Spec) -> RowRule | None:
        return RowRule((0, 2) if y.ndim == MATRIX_AXES else (0, 1, 2), lambda rows: self)

    def work(self, target: Target, x: Spec, y: Spec, *addend: Spec) -> Work:
        kind = TileProduct if target.tiles else PairProduct

        def product_of(out: View, x: View, y: View, *addend: View) -> PairProduct | TileProduct:
            if len(y.shape) < len(x.shape):
                y = repeat_axes(y, 0, *x.shape[:-2])
            return kind(target, out, x, y, addend[0] if addend else None, self.activation)

        def calls(*views: View, workspace: View | None = None) -> list[Call]:
            product = product_of(*views)
            return product.calls(scratch_pointer(workspace, product.nbytes))

        def exact(*views: View) -> int:
            return product_of(*views).nbytes

        specs = (self.infer(x, y), x, y, *addend)
        return Work(calls, max(exact(*views) for views in layouts(specs)), strided=True, exact=exact)


def layouts(specs: Sequence[Spec]) -> list[tuple[View, ...]]:
    """Return views of values at no address: operands by rows and by columns, and an addend that must be copied."""
    out, x, y, *addend = (contiguous(Pointer(None), spec.shape, code_of(spec.dtype)) for spec in specs)
    beside = [by_columns(a) for a in addend]
    return [(out, *sides, *beside) for sides in product((x, by_columns(x)), (y, by_columns(y)))]


def by_columns(x: View) -> View:
    """Return a view of the same shape whose columns are contiguous."""
    m = x.shape[-2]
    return View(x.at, x.shape, (*x.strides[:-2], x.itemsize, m * x.itemsize), x.dtype)


class RoundedProduct(Record, eq=False):
    """Base of the kernel calls of one product.

    Fields
        target: the target of the kernels
        out, x, y, addend: views ``[..., m, n]``, ``[..., m, k]``, ``[..., k, n]`` and of the result's shape
        activation: two bounds and a slope
    """

    target: Target
    out: View
    x: View
    y: View
    addend: View | None = None
    activation: BoundedActivation = NONE


class PairProduct(RoundedProduct):
    """A product by the instruction for pairs: that of two float32 matrices of half as many, wide numbers."""

    @cached_property
    def sides(self) -> tuple[PairedSide, PairedSide]:
        """The left side by rows, the right side by columns."""
        return PairedSide.of(self.x), PairedSide.of(swap(self.y))

    def pairs(self, place: Pointer) -> tuple[View, View]:
        """Return both sides, as matrices of pairs, in a workspace."""
        left, right = self.sides
        return left.at(place), swap(right.at(place + aligned(left.nbytes)))

    @property
    def sides_nbytes(self) -> int:
        return sum(aligned(side.nbytes) for side in self.sides)

    @property
    def nbytes(self) -> int:
        """Bytes of workspace."""
        return self.sides_nbytes + addend_nbytes(self.target, self.out, *self.pairs(Pointer(None)), *self.added)

    @property
    def added(self) -> tuple[View, ...]:
        return () if self.addend is None else (self.addend,)

    def calls(self, place: Pointer) -> list[Call]:
        left, right = self.sides
        rest = place + self.sides_nbytes
        room = contiguous(rest, (self.nbytes - self.sides_nbytes,), "u1")
        x, y = self.pairs(place)
        return [
            *left.calls(self.target, place),
            *right.calls(self.target, place + aligned(left.nbytes)),
            *product_calls(self.target, self.activation, self.out, x, y, *self.added, workspace=room),
        ]


class TileProduct(RoundedProduct):
    """A product on tile registers."""

    @property
    def size(self) -> TileSize:
        return TileSize(*self.y.shape[-2:], 2)  # type: ignore[call-arg]

    @property
    def sides(self) -> tuple[LeftSide, RightSide]:
        return LeftSide(self.x, self.size), RightSide(self.y, self.size)

    @property
    def rooms(self) -> tuple[int, int, int]:
        """Bytes of both sides, and of a copy of an addend whose rows are not contiguous."""
        odd = self.addend is not None and self.addend.strides[-1] != self.addend.itemsize and self.addend.shape[-1] > 1
        left, right = self.sides
        return left.nbytes, right.nbytes, aligned(prod(self.out.shape) * self.out.itemsize) if odd else 0

    @property
    def nbytes(self) -> int:
        """Bytes of workspace."""
        return sum(self.rooms)

    def calls(self, place: Pointer) -> list[Call]:
        (left, right), (left_nbytes, right_nbytes, copied) = self.sides, self.rooms
        panels, beside = place + left_nbytes, self.addend
        calls = [*left.calls(self.target, place), *right.calls(self.target, panels)]
        if copied and beside is not None:
            copy = contiguous(panels + right_nbytes, self.out.shape, self.out.dtype)
            calls, beside = [*calls, *copy_calls(self.target, copy, beside)], copy
        rows = left.rows(place)
        shape = (*self.out.shape[:-2], self.size.padded, self.size.n)
        there = View(panels, shape, (*right.steps(), 0, 0), rows.dtype)
        products = each_matrices(self.out, rows, there, beside)
        return [*calls, *(call for x in products for call in self.product_calls(x))]

    def product_calls(self, x: Matrices) -> tuple[Call, ...]:
        """Return the calls of products at a constant stride."""
        nbytes, bias = x.a.itemsize, x.bias
        left = LeftRows(x.a.at, x.count, x.m, x.a.batch * nbytes, x.a.row * nbytes)
        out = MatrixRows(x.out.at, x.out.batch, x.out.row)
        addend = Addend(bias.at, bias.batch, bias.row) if bias else None
        w_image = x.b.batch * x.b.itemsize
        return number_rows_calls(self.size, out, left, x.b.at, addend, self.activation, w_image).calls


def swap(x: View) -> View:
    """Return transposed matrices."""
    *shape, m, n = x.shape
    *strides, row, column = x.strides
    return View(x.at, (*shape, n, m), (*strides, column, row), x.dtype)
