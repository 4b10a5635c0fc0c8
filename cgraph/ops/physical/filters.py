"""Filters that change between runs, after lowering: packing, and their gradient on channel-blocked images."""

from typing import Any

import numpy as np

from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.conv.transpose_calls import TransposedShape, pack_transposed
from cgraph.kernels.depthwise.calls import pack_depthwise
from cgraph.kernels.filter_grad.calls import FilterGrad, filter_grad_calls
from cgraph.kernels.kernel import Call, View, contiguous
from cgraph.kernels.pack_filters.calls import pack_conv_calls, pack_depthwise_calls, pack_transposed_calls
from cgraph.kernels.pairs.paired_sides import PairedSide
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.filter_grad_calls import TileFilterGrad
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_conv
from cgraph.kernels.views.window_views import reorder_axes
from cgraph.ops.conv import ConvFilters
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.lanes import require
from cgraph.ops.physical.pairs import pack_pairs, round_to_bfloat16


class PackFilters(Op):
    """Filters ``[k, c / groups, r, s]`` in the order in which a convolution's kernel reads them."""

    shape: ConvShape | TransposedShape

    def infer(self, f: Spec) -> Spec:
        dtype = np.dtype(self.shape.dtype)
        return Spec((self.shape.weights_nbytes // dtype.itemsize,), dtype)

    def meaning(self, f):
        packed = pack_conv if isinstance(self.shape, ConvShape) else pack_transposed
        return packed(self.shape, f).ravel()  # type: ignore[arg-type]

    def work(self, target: Target, f: Spec) -> Work:
        def calls(out: View, f: View) -> list[Call]:
            if isinstance(self.shape, ConvShape):
                return list(pack_conv_calls(self.shape, out.at, f).calls)
            return list(pack_transposed_calls(self.shape, out.at, f).calls)

        return Work(calls, strided=True)


class PackDepthwise(Op):
    """Filters ``[c, 1, r, s]`` in the order in which a depthwise convolution's kernel reads them."""

    shape: ConvShape

    def infer(self, f: Spec) -> Spec:
        return Spec((self.shape.blocks, self.shape.window.taps, self.shape.lanes), np.dtype(self.shape.dtype))

    def meaning(self, f):
        return pack_depthwise(self.shape, f)

    def work(self, target: Target, f: Spec) -> Work:
        def calls(out: View, f: View) -> list[Call]:
            return pack_depthwise_calls(self.shape, out, f)

        return Work(calls, strided=True)


class RoundFilters(Op):
    """Packed filters, rounded to bfloat16 in pairs of neighbouring channels.

    Operands
        f: float32, as PackFilters returns them
    Fields
        channels, width: input channels of a step, result channels of a panel
    """

    channels: int
    width: int

    @staticmethod
    def of(shape: ConvShape | TransposedShape) -> "RoundFilters":
        """Return the op for the filters of a convolution, or of a transposed one, whose phases have equal steps."""
        part = shape if isinstance(shape, ConvShape) else next(shape.phases()).shape
        return RoundFilters(part.unroll, part.panel_channels)

    def infer(self, f: Spec) -> Spec:
        steps = f.size // (self.channels * self.width)
        return Spec((steps, -(-self.channels // 2), self.width), np.dtype(PAIRS))

    def meaning(self, f):
        return pack_pairs(f.reshape(-1, self.channels, self.width))

    def work(self, target: Target, f: Spec) -> Work:
        def calls(out: View, f: View) -> list[Call]:
            steps = contiguous(f.at, (out.shape[0], self.channels, self.width), f.dtype)
            columns = reorder_axes(steps, (0, 2, 1))
            return PairedSide.of(columns).calls(target, out.at)

        return Work(calls)


class FilterGradient(Op):
    """The gradient of a convolution for its filters ``[k, c, r, s]``.

    Operands
        x: images of form `source`, or plain ones ``[n, c, h, w]`` if that is None
        g: the gradient of the result, of form `gradient`
    Fields
        plan: sizes, window, number of images
    """

    plan: FilterGrad | TileFilterGrad
    source: Form | None
    gradient: Form

    @property
    def name(self) -> str:
        return "conv_filters"

    @property
    def rounds(self) -> bool:
        """True if images and gradients are rounded to bfloat16."""
        raise NotImplementedError

    def infer(self, x: Spec, g: Spec) -> Spec:
        if self.source is not None:
            require(x, self.source)
        require(g, self.gradient)
        s = self.plan.shape
        return Spec((s.k, s.c, *s.window.kernel), x.dtype)

    def meaning(self, x, g):
        window = self.plan.shape.window
        conv = ConvFilters(window.stride, window.pad, window.dilation, 1, window.kernel)
        images, gradients = x if self.source is None else self.source.plain(x), self.gradient.plain(g)
        if self.rounds:
            images, gradients = round_to_bfloat16(images), round_to_bfloat16(gradients)
        return conv.meaning(images, gradients)

    def multiply_adds(self, *specs: Spec) -> int:
        return self.plan.n * self.plan.shape.flops // 2


class BlockedConvFilters(FilterGradient):
    """The gradient of a convolution for its filters ``[k, c, r, s]``."""

    plan: FilterGrad

    @property
    def rounds(self) -> bool:
        return self.plan.pairs

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, x: View, g: View, workspace: View) -> list[Call]:
            source: Any = x if self.source is None else self.source.at(x)
            return list(filter_grad_calls(self.plan, out, source, self.gradient.at(g), workspace).calls)

        return Work(calls, self.plan.nbytes)
