"""Transposed convolution after lowering, on channel-blocked images."""

from functools import partial
from math import prod

import numpy as np

from cgraph.dtypes.storage import BFLOAT16
from cgraph.ir.cut import Cut, index_array
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.blocked_copy.calls import fill_halo_calls
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.conv.transpose_calls import TransposedShape, conv_transpose_calls, pack_transposed
from cgraph.kernels.kernel import Call, View, contiguous, scratch_pointer
from cgraph.kernels.pairs.calls import pair_calls
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.target import Target
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.lanes import require
from cgraph.ops.physical.pairs import round_to_bfloat16, unpack_pairs
from cgraph.ops.physical.unpack import unpack
from cgraph.ops.physical.window_rows import rows_inside
from cgraph.record import replace
from cgraph.system.alignment import round_up


class BlockedConvTranspose(Op):
    """Transposed convolution of channel-blocked images with packed filters.

    Operands
        x: of form `source`
        filters, bias: as `pack_transposed` and `transposed_bias` return them; filters in pairs as `RoundFilters` does
    Fields
        shape: sizes, window, groups, target
        source, result: forms
        activation: two bounds and a slope
        pairs: round images to bfloat16 in a workspace; filters are pairs of bfloat16 numbers
    """

    shape: TransposedShape
    source: Form
    result: Form
    activation: BoundedActivation = NONE
    pairs: bool = False

    @property
    def name(self) -> str:
        return "conv_transpose"

    def infer(self, x: Spec, filters: Spec, bias: Spec) -> Spec:
        require(x, self.source)
        return self.result.spec

    def meaning(self, x, filters, bias):
        shape, window, image = self.shape, self.shape.window, (self.result.h, self.result.w)
        conv = ConvTranspose(window.stride, window.pad, window.dilation, shape.groups, image)
        filter_shape = (shape.c, shape.k // shape.groups, *window.kernel)
        images = self.source.plain(x)
        if self.pairs:
            images, filters = round_to_bfloat16(images), unpack_pairs(filters)
        f = unpack(filters, filter_shape, partial(pack_transposed, shape))
        epilogue = ConvEpilogue(conv, has_bias=True, activation=self.activation)
        return self.result.to_blocked(epilogue.meaning(images, f, bias[: shape.k]))

    def multiply_adds(self, *specs: Spec) -> int:
        shape, source = self.shape, self.source
        return source.n * source.h * source.w * shape.c * (shape.k // shape.groups) * shape.window.taps

    def work(self, target: Target, *specs: Spec) -> Work:
        nbytes = BFLOAT16.dtype.itemsize * prod(self.source.shape) if self.pairs else 0

        def calls(out: View, x: View, filters: View, bias: View, workspace: View | None = None) -> list[Call]:
            to, source, before, dtype = self.result.at(out), self.source.at(x), [], None
            if self.pairs:
                halves = contiguous(scratch_pointer(workspace, nbytes), self.source.shape, BFLOAT16.code)
                source, dtype = replace(self.source.at(halves), dtype=BFLOAT16.code), PAIRS
                before = pair_calls(target, halves, x)
            epilogue = Epilogue(bias.at, activation=self.activation)
            lowered = conv_transpose_calls(self.shape, to, source, filters.at, epilogue, dtype)
            return [*fill_halo_calls(to), *before, *lowered.calls]

        return Work(calls, nbytes)

    def row_rule(self, *specs: Spec) -> RowRule | None:
        return RowRule((0,), lambda n: replace(self, source=self.source.first(n), result=self.result.first(n)))

    def cut(self, *specs: Spec) -> Cut:
        top, stride = self.result.halo[0], self.shape.window.stride[0]
        (low, high), above, end = self.shape.reach, self.source.halo[0], self.source.h + self.source.halo[2]

        def span(first: int, stop: int) -> tuple[int, int]:
            """Return the rows of the images that some rows of the result read, both without halo."""
            begin = min(max(first // stride + low, -above), end - 1)
            return begin, max(min((stop - 1) // stride + high + 1, end), begin + 1)

        def band(first: int, stop: int) -> Op:
            result, row = self.result.rows(first, stop), max(first - top, 0)
            begin, end_row = span(row, row + result.h)
            shape = self.shape.strip(row, result.h, begin, end_row - begin)
            return replace(self, shape=shape, source=self.source.strip(end_row - begin), result=result)

        spans = above + np.array([span(row, row + 1) for row in rows_inside(self.result)[0]])
        table = index_array(spans[:, 0]), index_array(spans[:, 1])
        return Cut((table, None, None), band, top, self.result.halo[2], stride)


def transposed_bias(shape: TransposedShape, bias: np.ndarray | None) -> np.ndarray:
    """Pack the bias, or zeros, up to the last lane."""
    out = np.zeros(round_up(shape.k, shape.lanes), np.dtype(shape.dtype))
    if bias is not None:
        out[: shape.k] = bias
    return out
