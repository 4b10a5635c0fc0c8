"""Filters that change between runs, after lowering: packing, and their gradient on channel-blocked images."""

from typing import Any

import numpy as np

from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.conv.transpose_calls import TransposedShape, pack_transposed
from cgraph.kernels.filter_grad.calls import FilterGrad, filter_grad_calls
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.pack_filters.calls import pack_conv_calls, pack_transposed_calls
from cgraph.kernels.target import Target
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_conv
from cgraph.ops.conv import ConvFilters
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.lanes import require


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


class BlockedConvFilters(Op):
    """The gradient of a convolution for its filters ``[k, c, r, s]``.

    Operands
        x: images of form `source`, or plain ones ``[n, c, h, w]`` if that is None
        g: the gradient of the result, of form `gradient`
    Fields
        plan: sizes, window, target, number of images
    """

    plan: FilterGrad
    source: Form | None
    gradient: Form

    @property
    def name(self) -> str:
        return "conv_filters"

    def infer(self, x: Spec, g: Spec) -> Spec:
        if self.source is not None:
            require(x, self.source)
        require(g, self.gradient)
        s = self.plan.shape
        return Spec((s.k, s.c, *s.window.kernel), x.dtype)

    def meaning(self, x, g):
        window = self.plan.shape.window
        conv = ConvFilters(window.stride, window.pad, window.dilation, 1, window.kernel)
        return conv.meaning(x if self.source is None else self.source.plain(x), self.gradient.plain(g))

    def multiply_adds(self, *specs: Spec) -> int:
        return self.plan.n * self.plan.shape.flops // 2

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, x: View, g: View, workspace: View) -> list[Call]:
            source: Any = x if self.source is None else self.source.at(x)
            return list(filter_grad_calls(self.plan, out, source, self.gradient.at(g), workspace).calls)

        return Work(calls, self.plan.nbytes)
