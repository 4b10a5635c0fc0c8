"""Products on tile registers (`cgraph.kernels.tile_products`): of bytes, and of numbers rounded to bfloat16."""

from math import prod

import numpy as np

from cgraph.dtypes.convert import FLOAT32, convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.conv8.calls import ByteWeights, MatrixRows, Result
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, split_scratch
from cgraph.kernels.move.calls import copy_calls, part
from cgraph.kernels.pairs.calls import pair_calls
from cgraph.kernels.target import Target
from cgraph.kernels.tile_products.calls import (
    Addend,
    LeftRows,
    TileSize,
    byte_rows_calls,
    number_rows_calls,
    pack_tiles,
    round_rows_calls,
    suits_tiles,
    unpack_tiles,
)
from cgraph.kernels.views.matrices import Matrices, each_matrices
from cgraph.ops.physical.integer import requantise
from cgraph.ops.physical.matmul import activate
from cgraph.system.alignment import aligned

NUMBER_NBYTES = BFLOAT16.dtype.itemsize
"""Bytes of a number on tile registers."""


def suits_numbers(rows: int, k: int) -> bool:
    """Return True if a product of `rows` rows of `k` rounded floats is faster on tiles than in vectors."""
    return suits_tiles(rows, k, NUMBER_NBYTES)


def round_numbers(y: np.ndarray) -> np.ndarray:
    """Return floats as tiles read them, rounded to bfloat16."""
    return convert(y, BFLOAT16.dtype)


def pack_numbers(y: np.ndarray) -> np.ndarray:
    """Return a matrix of floats ``[k, n]``, rounded to bfloat16, in tiles."""
    bits = round_numbers(y).view(BFLOAT16.unsigned)
    k, n = y.shape
    return pack_tiles(TileSize(k, n, bits.itemsize), bits)


class TiledIntegerMatmul(Op):
    """An IntegerMatmul on tiles of bytes.

    Operands
        x: as for IntegerMatmul
        panels: as `pack_tiles` returns them
        start, scale: initial sums, the bias minus the contribution of the zero point; both up to the last panel's end
    Fields
        k, n: sizes of the right side
        zero, result: as for IntegerMatmul
    """

    k: int
    n: int
    zero: int
    result: Result

    @property
    def name(self) -> str:
        return "matmul8"

    @property
    def size(self) -> TileSize:
        return TileSize(self.k, self.n, 1)

    def infer(self, x: Spec, panels: Spec, *rest: Spec) -> Spec:
        return Spec((*x.shape[:-1], self.n), np.dtype(self.result.dtype))

    def meaning(self, x, panels, start, scale):
        y = unpack_tiles(self.size, panels).astype("i8")
        return requantise(x.astype("i8") @ y + start[: self.n], scale[..., : self.n], self.result)

    def multiply_adds(self, x: Spec, *rest: Spec) -> int:
        return x.size * self.n

    def work(self, target: Target, x: Spec, *rest: Spec) -> Work:
        is_padded = self.size.padded != self.k
        nbytes = prod(x.shape[:-1]) * self.size.padded if is_padded else 0

        def calls(
            out: View, x: View, panels: View, start: View, scale: View, workspace: View | None = None
        ) -> list[Call]:
            rows, before = prod(x.shape[:-1]), []
            (scratch,) = split_scratch(workspace, nbytes)
            if scratch is not None:
                there = contiguous(scratch.at, (rows, self.size.padded), "u1")
                before = copy_calls(target, part(there, 1, 0, self.k), x.with_shape(rows, self.k))
            at = x.at if scratch is None else scratch.at
            left = LeftRows(at, 1, rows, 0, self.size.padded)
            weights = ByteWeights(panels.at, start.at, scale.at)
            product = byte_rows_calls(self.size, MatrixRows(out.at, 0, self.n), left, weights, self.result)
            return [*before, *product.calls]

        return Work(calls, nbytes)


class TiledMatmul(Op):
    """``activation(x @ y + addend)`` of operands rounded to bfloat16, with a constant `y` in tiles.

    Operands
        x: float32 ``[..., m, k]``; a workspace holds it rounded
        panels: the bits of `y` in bfloat16, as `pack_tiles` returns them
        addend: float32 of the result's shape
    Fields
        k, n: sizes of `y`
        has_addend, activation: as for MatmulEpilogue
    """

    k: int
    n: int
    has_addend: bool = False
    activation: BoundedActivation = NONE

    @property
    def name(self) -> str:
        return "matmul"

    @property
    def size(self) -> TileSize:
        return TileSize(self.k, self.n, 2)

    def infer(self, x: Spec, panels: Spec, *addend: Spec) -> Spec:
        return Spec((*x.shape[:-1], self.n), x.dtype)

    def multiply_adds(self, x: Spec, panels: Spec, *addend: Spec) -> int:
        return x.size * self.n

    def meaning(self, x, panels, *addend):
        y = convert(unpack_tiles(self.size, panels).view(BFLOAT16.dtype), FLOAT32)
        product = np.matmul(convert(round_numbers(x), FLOAT32), y)
        return activate(sum(addend, product), self.activation)

    def work(self, target: Target, x: Spec, panels: Spec, *addend: Spec) -> Work:
        rounded = prod(x.shape[:-1]) * self.size.padded * NUMBER_NBYTES
        copied = prod(x.shape[:-1]) * self.n * x.dtype.itemsize

        def nbytes(out: View, x: View, panels: View, *addend: View) -> list[int]:
            is_odd = any(y.strides[-1] != y.itemsize and y.shape[-1] > 1 for y in addend)
            return [rounded, copied if is_odd else 0]

        def calls(out: View, x: View, panels: View, *addend: View, workspace: View | None = None) -> list[Call]:
            left, copy = split_scratch(workspace, *nbytes(out, x, panels, *addend))
            at = Pointer(None) if left is None else left.at
            halves = contiguous(at, (*x.shape[:-1], self.size.padded), BFLOAT16.code)
            before: list[Call] = []
            if copy is not None:
                there = contiguous(copy.at, out.shape, out.dtype)
                before, addend = [*before, *copy_calls(target, there, addend[0])], (there,)
            right = View(panels.at, (*x.shape[:-2], self.size.padded, self.n), (0,) * len(out.shape), halves.dtype)
            products = list(each_matrices(out, halves, right, addend[0] if addend else None))
            if len(products) == 1 and x.is_contiguous:
                (only,) = products
                rows = MatrixRows(x.at, only.m * self.k, self.k)
                before += round_rows_calls(self.size, at, rows, only.count, only.m)
                return [
                    *before,
                    *self.product_calls(only, panels.at, LeftRows.in_blocks(self.size, at, only.count, only.m)),
                ]
            before += pair_calls(target, halves, x)
            return [*before, *(call for y in products for call in self.product_calls(y, panels.at, left_rows(y)))]

        def exact(*views: View) -> int:
            return sum(map(aligned, nbytes(*views)))

        return Work(calls, aligned(rounded) + (aligned(copied) if addend else 0), strided=True, exact=exact)

    def product_calls(self, x: Matrices, panels: Pointer, left: LeftRows) -> tuple[Call, ...]:
        """Return the calls of products at a constant stride."""
        out, bias = MatrixRows(x.out.at, x.out.batch, x.out.row), x.bias
        addend = Addend(bias.at, bias.batch, bias.row) if bias else None
        return number_rows_calls(self.size, out, left, panels, addend, self.activation).calls


def left_rows(x: Matrices) -> LeftRows:
    """Return the left sides of products, in rows of bfloat16 numbers."""
    nbytes = x.a.itemsize
    return LeftRows(x.a.at, x.count, x.m, x.a.batch * nbytes, x.a.row * nbytes)
