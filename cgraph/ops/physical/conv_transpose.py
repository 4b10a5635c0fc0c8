"""Transposed convolution and resizing below lowering, on blocked images."""

import numpy as np

from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.calls.activation import NONE, Activation
from cgraph.kernels.calls.blocked_copy import zero_halo_calls
from cgraph.kernels.calls.conv_transpose import TransposedShape, conv_transpose_calls
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.ops.physical.blocked import require
from cgraph.ops.physical.form import Form
from cgraph.ops.resize import Resize


class BlockedConvTranspose(Op):
    """Transposed convolution of blocked images with packed filters.

    Operands
        x: of form `source`
        filters, bias: as `pack_transposed` and `transposed_bias` make them
    Fields
        shape: sizes, window, groups, target
        source, result: forms
        activation: two bounds and a slope
    """

    shape: TransposedShape
    source: Form
    result: Form
    activation: Activation = NONE

    @property
    def name(self) -> str:
        return "conv_transpose"

    def infer(self, x: Spec, filters: Spec, bias: Spec) -> Spec:
        require(x, self.source)
        return self.result.spec

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, x: View, filters: View, bias: View) -> list[Call]:
            to, source = self.result.at(out.at), self.source.at(x.at)
            made = conv_transpose_calls(self.shape, to, source, filters.at, bias.at, self.activation)
            return [*zero_halo_calls(to), *made.calls]

        return Work(calls)


def transposed_bias(shape: TransposedShape, bias: np.ndarray | None) -> np.ndarray:
    """The bias, zeros when there is none, up to the last block's end."""
    out = np.zeros(-(-shape.k // shape.lanes) * shape.lanes, np.dtype(shape.dtype))
    if bias is not None:
        out[: shape.k] = bias
    return out


class BlockedResize(Op):
    """Resizing of blocked images."""

    resize: Resize
    source: Form
    result: Form

    @property
    def name(self) -> str:
        return "resize"

    def infer(self, x: Spec) -> Spec:
        require(x, self.source)
        return self.result.spec

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View) -> list[Call]:
            to = self.result.at(out.at)
            return [*zero_halo_calls(to), *self.resize.calls(to, self.source.at(x.at))]

        return Work(calls)
