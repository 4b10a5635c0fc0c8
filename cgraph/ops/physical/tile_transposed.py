"""Transposed convolutions on tile registers (`cgraph.kernels.tile_conv.transposed_calls`)."""

from cgraph.dtypes.convert import FLOAT32, convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.blocked_copy.calls import fill_halo_calls
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.transposed_calls import TileTransposed, tile_transposed_calls, unpack_tile_transposed
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.conv_transpose import BlockedConvTranspose
from cgraph.ops.physical.lanes import widened


class TileConvTranspose(BlockedConvTranspose):
    """A transposed convolution of bfloat16 images on tiles, with filters that are packed in each run.

    Operands
        x: bfloat16 images of form `source`
        filters, bias: as `pack_tile_transposed` and `pack_tile_bias` return them
    Fields
        those of a BlockedConvTranspose; the result is float32
    """

    takes_storage = True

    def meaning(self, x, filters, bias):
        shape, window, image = self.shape, self.shape.window, (self.result.h, self.result.w)
        conv = ConvTranspose(window.stride, window.pad, window.dilation, 1, image)
        bits = unpack_tile_transposed(TileTransposed(shape), filters)
        f = convert(bits.view(BFLOAT16.dtype), FLOAT32)
        epilogue = ConvEpilogue(conv, has_bias=True, activation=self.activation)
        return self.result.to_blocked(epilogue.meaning(widened(self.source, x), f, bias[: shape.k]))

    def work(self, target: Target, *specs: Spec) -> Work:
        layer = TileTransposed(self.shape)

        def calls(out: View, x: View, filters: View, bias: View) -> list[Call]:
            to, epilogue = self.result.at(out), Epilogue(bias.at, None, self.activation)
            pixels = tile_transposed_calls(layer, to, self.source.at(x), filters.at, epilogue)
            return [*fill_halo_calls(to), *pixels.calls]

        return Work(calls)
