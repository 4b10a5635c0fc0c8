"""Depthwise convolution after lowering, on plain images of few channels."""

from functools import partial

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.cut import Cut, index_array
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.depthwise.plain_calls import plain_depthwise_calls
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.views.window import Window
from cgraph.ops.conv import Conv2d
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.record import replace


class PlainDepthwise(Op):
    """``activation(conv(x, filters) + bias)`` with one filter for each channel, on plain images.

    Operands
        x: ``[n, c, h, w]``
        filters: ``[c, 1, r, s]``
        bias: ``[c]``
    Fields
        window: of the convolution
        activation: two bounds and a slope
    """

    window: Window
    activation: BoundedActivation = NONE

    @property
    def name(self) -> str:
        return "depthwise"

    def infer(self, x: Spec, filters: Spec, bias: Spec) -> Spec:
        n, c, h, w = x.shape
        if filters.shape != (c, 1, *self.window.kernel) or bias.shape != (c,):
            raise ShapeError(f"filters {filters} and bias {bias} do not fit images {x} and {self.window}")
        return Spec((n, c, *self.window.result(h, w)), x.dtype)

    def meaning(self, x, filters, bias):
        window = self.window
        conv = Conv2d(window.stride, window.pad, window.dilation, len(filters))
        return ConvEpilogue(conv, has_bias=True, activation=self.activation).meaning(x, filters, bias)

    def multiply_adds(self, x: Spec, filters: Spec, bias: Spec) -> int:
        return self.infer(x, filters, bias).size * self.window.taps

    def work(self, target: Target, x: Spec, filters: Spec, bias: Spec) -> Work:
        return Work(partial(self.calls, target))

    def calls(self, target: Target, out: View, x: View, filters: View, bias: View) -> list[Call]:
        lowered = plain_depthwise_calls(target, out, x, filters.at, bias.at, self.window, self.activation)
        return list(lowered.calls)

    def row_rule(self, x: Spec, filters: Spec, bias: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: self)

    def cut(self, x: Spec, filters: Spec, bias: Spec) -> Cut:
        stride, top, extent, h = self.window.stride[0], self.window.pad[0], self.window.extent[0], x.shape[2]
        begin = np.arange(self.window.result(h, x.shape[3])[0]) * stride - top
        low = np.clip(begin, 0, h - 1)  # a window in the padding reads one row, which none of its taps meets
        high = np.maximum(np.clip(begin + extent, 0, h), low + 1)

        def band(first: int, stop: int) -> Op:
            above, below = int(low[first] - begin[first]), int(begin[stop - 1] + extent - high[stop - 1])
            pad = (above, self.window.pad[1], below, self.window.pad[3])
            return replace(self, window=replace(self.window, pad=pad))

        return Cut(((index_array(low), index_array(high)), None, None), band)
