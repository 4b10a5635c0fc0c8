"""Filters that change between runs, on tile registers: packing, and their gradient."""

import numpy as np

from cgraph.dtypes.convert import convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View, scratch_pointer
from cgraph.kernels.move.calls import flip
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.calls import TileLayer, pack_tile_filters
from cgraph.kernels.tile_conv.filter_calls import pack_filters_calls, pairs_nbytes
from cgraph.kernels.tile_conv.filter_grad_calls import TileFilterGrad, tile_filter_grad_calls
from cgraph.kernels.tile_products.calls import WIDTH
from cgraph.kernels.tile_products.signature import ACROSS, COLUMNS
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window_views import reorder_axes
from cgraph.ops.conv import ConvFilters
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.lanes import require
from cgraph.ops.physical.pairs import round_to_bfloat16


class PackTileFilters(Op):
    """Filters of a convolution, rounded to bfloat16, as `pack_tile_filters` returns them.

    Operands
        f: float32 ``[k, c, r, s]``; if transposed ``[c, k, r, s]``, which is read backwards along r and s
    Fields
        shape: the convolution
        transposed: the filters are those of the convolution whose gradient for images this one is
    """

    shape: ConvShape
    transposed: bool

    @property
    def layer(self) -> TileLayer:
        return TileLayer(self.shape)

    def infer(self, f: Spec) -> Spec:
        size = self.layer.size
        return Spec((size.panels, size.steps, ACROSS, COLUMNS, WIDTH // ACROSS, 2), np.dtype(BFLOAT16.unsigned))

    def meaning(self, f):
        filters = f.swapaxes(0, 1)[:, :, ::-1, ::-1] if self.transposed else f
        bits = convert(np.ascontiguousarray(filters), BFLOAT16.dtype).view(BFLOAT16.unsigned)
        return pack_tile_filters(self.layer, bits)

    def work(self, target: Target, f: Spec) -> Work:
        nbytes = pairs_nbytes(self.layer)

        def calls(out: View, f: View, workspace: View) -> list[Call]:
            filters = flip(reorder_axes(f, (1, 0, 2, 3)), (2, 3)) if self.transposed else f
            return pack_filters_calls(target, self.layer, out.at, filters, scratch_pointer(workspace, nbytes))

        return Work(calls, nbytes, strided=True)


class TileConvFilters(Op):
    """The gradient of a convolution for its filters ``[k, c, r, s]``, of operands rounded to bfloat16.

    Operands
        x: float32 images of form `source`
        g: the gradient of the result, float32, of form `gradient`
    Fields
        plan: sizes, window, number of images
    """

    plan: TileFilterGrad
    source: Form
    gradient: Form

    @property
    def name(self) -> str:
        return "conv_filters"

    def infer(self, x: Spec, g: Spec) -> Spec:
        require(x, self.source)
        require(g, self.gradient)
        s = self.plan.shape
        return Spec((s.k, s.c, *s.window.kernel), x.dtype)

    def meaning(self, x, g):
        window = self.plan.shape.window
        conv = ConvFilters(window.stride, window.pad, window.dilation, 1, window.kernel)
        return conv.meaning(round_to_bfloat16(self.source.plain(x)), round_to_bfloat16(self.gradient.plain(g)))

    def multiply_adds(self, *specs: Spec) -> int:
        return self.plan.n * self.plan.shape.flops // 2

    def work(self, target: Target, *specs: Spec) -> Work:
        nbytes = self.plan.nbytes

        def calls(out: View, x: View, g: View, workspace: View) -> list[Call]:
            images, gradients = self.source.at(x), self.gradient.at(g)
            place = scratch_pointer(workspace, nbytes)
            return tile_filter_grad_calls(target, self.plan, out, images, gradients, place)

        return Work(calls, nbytes)
