"""Matrix products after lowering: with a sum and an activation in the epilogue, and with a packed right side."""

from functools import partial
from itertools import product

import numpy as np

from cgraph.dtypes.convert import code_of, convert
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes, takes_bias
from cgraph.kernels.gemm.portions import PackedB, to_panels
from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.kernels.views.gemm_tile import GemmTile
from cgraph.ops.linear import LAYOUTS, MATRIX_AXES, Matmul, laid_out, runs, workspace_nbytes
from cgraph.ops.physical.unpack import unpack


class MatmulEpilogue(Op):
    """``activation(x @ y + addend)``: a product with its epilogue.

    Operands
        x, y: floats ``[..., m, k]`` and ``[..., k, n]`` with the same leading axes
        addend: of the result's shape
    Fields
        has_addend: there is a third operand
        activation: two bounds and a slope
    """

    has_addend: bool = False
    activation: BoundedActivation = NONE
    is_layer = True

    def infer(self, x: Spec, y: Spec, *addend: Spec) -> Spec:
        return Matmul().infer(x, y)

    def meaning(self, x, y, *addend):
        return activate(sum(addend, np.matmul(x, y)), self.activation)

    def multiply_adds(self, x: Spec, y: Spec, *addend: Spec) -> int:
        return Matmul().multiply_adds(x, y)

    def row_rule(self, x: Spec, y: Spec, *addend: Spec) -> RowRule | None:
        return RowRule((0, 2) if x.ndim == MATRIX_AXES else (0, 1, 2), lambda rows: self)

    def work(self, target: Target, x: Spec, y: Spec, *addend: Spec) -> Work:
        code = code_of(x.dtype)
        nbytes = max(workspace_nbytes(target, x.shape, y.shape, code, adds) for adds in {False, self.has_addend})
        exact = partial(addend_nbytes, target)
        return Work(partial(product_calls, target, self.activation), nbytes, strided=True, exact=exact)


class PanelMatmul(Op):
    """Base of ``activation(x @ y + addend)`` with a constant `y` in panels.

    Fields
        k, n, tile: sizes of `y` and of its panels
        has_addend, activation: as for MatmulEpilogue
    """

    k: int
    n: int
    tile: GemmTile
    has_addend: bool = False
    activation: BoundedActivation = NONE

    @property
    def name(self) -> str:
        return "matmul"

    def infer(self, x: Spec, panels: Spec, *addend: Spec) -> Spec:
        return Spec((*x.shape[:-1], self.n), x.dtype)

    def row_rule(self, x: Spec, panels: Spec, *addend: Spec) -> RowRule | None:
        return RowRule((0, 2), lambda rows: self)

    def multiply_adds(self, x: Spec, panels: Spec, *addend: Spec) -> int:
        return x.size * self.n


class PackedMatmul(PanelMatmul):
    """``activation(x @ y + addend)`` in the precision of `x`.

    Operands
        x: floats ``[..., m, k]``
        panels: `y` as `pack_b` returns it; may have a storage dtype
        addend: of the result's shape
    """

    takes_storage = True

    def meaning(self, x, panels, *addend):
        y = unpack(convert(panels, x.dtype), (self.k, self.n), partial(to_panels, tile=self.tile))
        return activate(sum(addend, np.matmul(x, y)), self.activation)

    def work(self, target: Target, x: Spec, panels: Spec, *addend: Spec) -> Work:
        def calls(out: View, x: View, panels: View, *addend: View, workspace: View | None = None) -> list[Call]:
            y = self.panels(panels.at, panels.dtype)
            return product_calls(target, self.activation, out, x, y, *addend, workspace=workspace)

        def exact(out: View, x: View, panels: View, *addend: View) -> int:
            return addend_nbytes(target, out, x, self.panels(panels.at, panels.dtype), *addend)

        return Work(calls, self.workspace_nbytes(target, x), strided=True, exact=exact)

    def workspace_nbytes(self, target: Target, x: Spec) -> int:
        """Return bytes that suffice, whatever the strides of `x`."""
        m, code, most = x.shape[-2], code_of(x.dtype), 0
        for count, layout in product(runs(x.shape[:-2]), LAYOUTS):
            out, a = (
                laid_out((count, m, self.n), "rows", code, False),
                laid_out((count, m, self.k), layout, code, False),
            )
            most = max(most, matmul_nbytes(target, out, a, self.panels(Pointer(None), code)))
        return most

    def panels(self, at: Pointer, code: str) -> PackedB:
        return PackedB(at, self.k, self.n, self.tile, code)


def product_calls(
    target: Target,
    activation: BoundedActivation,
    out: View,
    x: View,
    y: View | PackedB,
    *addend: View,
    workspace: View | None = None,
) -> list[Call]:
    """Return the calls of a product. An addend with other strides is copied first and the product added to it."""
    if not addend:
        return matmul_calls(target, out, x, y, None, activation, workspace)
    if takes_bias(out, x, y, addend[0]):
        return matmul_calls(target, out, x, y, addend[0], activation, workspace)
    return [
        *copy_calls(target, out, addend[0]),
        *matmul_calls(target, out, x, y, None, activation, workspace, adds=True),
    ]


def addend_nbytes(target: Target, out: View, x: View, y: View | PackedB, *addend: View) -> int:
    """Return the bytes of workspace that `product_calls` needs for these views."""
    beside = addend[0] if addend and takes_bias(out, x, y, addend[0]) else None
    return matmul_nbytes(target, out, x, y, beside, adds=bool(addend) and beside is None)


def activate(x: np.ndarray, a: BoundedActivation) -> np.ndarray:
    """Apply an activation as the kernels' epilogue does."""
    return np.clip(np.where(x > 0, x, x * np.asarray(a.slope, x.dtype)), a.low, a.high)
