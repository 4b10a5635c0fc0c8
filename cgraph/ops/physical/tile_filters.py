"""Filters that change between runs, on tile registers: packing, and their gradient."""

import numpy as np

from cgraph.dtypes.convert import convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.kernel import Call, View, scratch_pointer
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.calls import TileLayer, pack_tile_filters
from cgraph.kernels.tile_conv.filter_calls import pack_filters_calls, pairs_nbytes
from cgraph.kernels.tile_conv.filter_grad_calls import TileFilterGrad, tile_filter_grad_calls
from cgraph.kernels.tile_conv.transposed_calls import TileTransposed, pack_tile_transposed, pack_transposed_calls
from cgraph.kernels.tile_products.calls import packed_shape
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.ops.physical.filters import FilterGradient


class PackTileFilters(Op):
    """Filters of a convolution, rounded to bfloat16, as `pack_tile_filters` returns them.

    Operands
        f: float32 ``[k, c, r, s]``
    Fields
        shape: the convolution
    """

    shape: ConvShape

    @property
    def layer(self) -> TileLayer:
        return TileLayer(self.shape)

    def infer(self, f: Spec) -> Spec:
        return Spec(packed_shape(self.layer.size), np.dtype(BFLOAT16.unsigned))

    def meaning(self, f):
        return pack_tile_filters(self.layer, bits_of(f))

    def work(self, target: Target, f: Spec) -> Work:
        nbytes = pairs_nbytes(self.layer)

        def calls(out: View, f: View, workspace: View) -> list[Call]:
            return pack_filters_calls(target, self.layer, out.at, f, scratch_pointer(workspace, nbytes))

        return Work(calls, nbytes, strided=True)


class PackTileTransposed(Op):
    """Filters of a transposed convolution, rounded to bfloat16, as `pack_tile_transposed` returns them.

    Operands
        f: float32 ``[c, k, r, s]``
    Fields
        shape: the transposed convolution
    """

    shape: TransposedShape

    @property
    def layer(self) -> TileTransposed:
        return TileTransposed(self.shape)

    def infer(self, f: Spec) -> Spec:
        dtype = np.dtype(BFLOAT16.unsigned)
        return Spec((self.layer.filters_nbytes // dtype.itemsize,), dtype)

    def meaning(self, f):
        return pack_tile_transposed(self.layer, bits_of(f))

    def work(self, target: Target, f: Spec) -> Work:
        layer = self.layer
        nbytes = layer.pairs_nbytes

        def calls(out: View, f: View, workspace: View) -> list[Call]:
            return pack_transposed_calls(target, layer, out.at, f, scratch_pointer(workspace, nbytes))

        return Work(calls, nbytes, strided=True)


def bits_of(f: np.ndarray) -> np.ndarray:
    """Return the bits of float32 numbers rounded to bfloat16."""
    return convert(f, BFLOAT16.dtype).view(BFLOAT16.unsigned)


class TileConvFilters(FilterGradient):
    """The gradient of a convolution for its filters ``[k, c, r, s]``, of operands rounded to bfloat16."""

    plan: TileFilterGrad

    @property
    def rounds(self) -> bool:
        return True

    def work(self, target: Target, *specs: Spec) -> Work:
        nbytes = self.plan.nbytes

        def calls(out: View, x: View, g: View, workspace: View) -> list[Call]:
            images = x if self.source is None else self.source.at(x)
            place = scratch_pointer(workspace, nbytes)
            return tile_filter_grad_calls(target, self.plan, out, images, self.gradient.at(g), place)

        return Work(calls, nbytes)
