"""Convolutions on tile registers (`cgraph.kernels.tile_conv`), and the images that they read."""

from functools import partial

import numpy as np

from cgraph.dtypes.convert import FLOAT32, convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.errors import ShapeError
from cgraph.ir.cut import Cut
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.blocked_copy.calls import fill_halo_calls
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.conv8.calls import ByteWeights
from cgraph.kernels.depthwise.calls import pack_depthwise, row_calls
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.calls import (
    NUMBER_NBYTES,
    TileLayer,
    join_blocks_calls,
    pack_tile_filters,
    round_pixels_calls,
    tile_conv8_calls,
    tile_conv_calls,
    unpack_tile_filters,
)
from cgraph.kernels.tile_conv.signature import CHANNELS
from cgraph.kernels.tile_products.calls import TileSize, pack_columns
from cgraph.kernels.views.conv_shape import ConvShape, LayerShape
from cgraph.ops.conv import Conv2d
from cgraph.ops.physical.conv import RESIDUAL, BlockedConv, ConvEpilogue
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.integer import BlockedIntegerConv
from cgraph.ops.physical.lanes import require, widened
from cgraph.ops.physical.unpack import unpack
from cgraph.ops.physical.window_rows import rows_inside
from cgraph.record import replace
from cgraph.system.alignment import round_up

BYTE_RESIDUAL = 4  # index of the residual among the operands of a TileIntegerConv


def pack_layer(shape: ConvShape, filters: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    """Return float filters ``[k, c, r, s]``, times `scale` ``[k]``, rounded to bfloat16, in tiles."""
    wide = convert(filters, FLOAT32)
    scaled = wide if scale is None else wide * scale[:, None, None, None]
    return pack_tile_filters(TileLayer(shape), convert(scaled, BFLOAT16.dtype).view(BFLOAT16.unsigned))


def pack_tile_bias(shape: LayerShape, bias: np.ndarray | None) -> np.ndarray:
    """Return the bias, or zeros, up to the last panel's end."""
    return pack_columns(TileSize(shape.c, shape.k, NUMBER_NBYTES), np.zeros(shape.k, FLOAT32) if bias is None else bias)


class TileConv(BlockedConv):
    """A convolution of bfloat16 images on tiles.

    Operands
        x: bfloat16 images of form `source`
        filters, bias: as `pack_layer` and `pack_tile_bias` return them
        residual: of form `residual`, float32 or bfloat16
    Fields
        those of a direct BlockedConv; the result is float32 or bfloat16
    """

    source: Form

    @property
    def name(self) -> str:
        return "conv2d"

    def meaning(self, x, filters, bias, *residual):
        shape, window = self.shape, self.shape.window
        inner = Conv2d(window.stride, window.pad, window.dilation, shape.groups)
        conv = ConvEpilogue(inner, False, True, bool(residual), self.activation)
        bits = unpack_tile_filters(TileLayer(shape), filters)
        rest = (widened(self.residual, r) for r in residual)  # type: ignore[arg-type]
        f = convert(bits.view(BFLOAT16.dtype), FLOAT32)
        y = conv.meaning(widened(self.source, x), f, bias[: shape.k], *rest)
        return self.result.to_blocked(convert(y, self.result.spec.dtype))

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(self.calls, TileLayer(self.shape).nbytes(self.n), self.overwrites)

    @property
    def overwrites(self) -> tuple[int, ...]:
        """The residual, if it has the result's form: each pixel is read before it is written."""
        return (RESIDUAL,) if self.residual == self.result else ()

    def calls(
        self, out: View, x: View, filters: View, bias: View, *rest: View, workspace: View | None = None
    ) -> list[Call]:
        """Fill the halo of the result, then its pixels."""
        to = self.result.at(out)
        beside = self.residual.at(rest[0]) if self.residual is not None else None
        halo_calls = [] if rest and rest[0] == out else fill_halo_calls(to)
        epilogue = Epilogue(bias.at, beside, self.activation)
        layer, place = TileLayer(self.shape), None if workspace is None else workspace.at
        pixels = tile_conv_calls(layer, to, self.source.at(x), filters.at, epilogue, place)
        return [*halo_calls, *pixels.calls]


def whole_blocks(shape: ConvShape) -> ConvShape:
    """Return a depthwise convolution of as many channels as fill the blocks of bfloat16 images."""
    c = round_up(shape.c, CHANNELS)
    return replace(shape, c=c, k=c, groups=c)


def pack_wide_depthwise(shape: ConvShape, filters: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    """Return depthwise filters ``[c, 1, r, s]``, times `scale` ``[c]``, as `pack_depthwise` does, with zeros up to the
    end of the images' last block.
    """
    wide = whole_blocks(shape)
    more = ((0, wide.c - shape.c), *[(0, 0)] * 3)
    padded = np.pad(convert(filters, FLOAT32), more)
    return pack_depthwise(wide, padded, None if scale is None else np.pad(scale, more[:1]))


class WideDepthwise(BlockedConv):
    """A depthwise convolution of bfloat16 images, computed in float32 and rounded once.

    Operands
        x: bfloat16 images of form `source`
        filters, bias: as `pack_wide_depthwise` and `pack_tile_bias` return them
    Fields
        those of a direct BlockedConv without a residual; the result is bfloat16
    """

    source: Form

    @property
    def name(self) -> str:
        return "depthwise"

    def meaning(self, x, filters, bias):
        shape, window = self.shape, self.shape.window
        inner = Conv2d(window.stride, window.pad, window.dilation, shape.groups)
        wide = whole_blocks(shape)
        f = unpack(filters, (wide.c, 1, *window.kernel), partial(pack_depthwise, wide))[: shape.c]
        conv = ConvEpilogue(inner, False, True, False, self.activation)
        y = conv.meaning(widened(self.source, x), f, bias[: shape.k])
        return self.result.to_blocked(convert(y, self.result.spec.dtype))

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(self.calls, 0)

    def calls(
        self, out: View, x: View, filters: View, bias: View, *rest: View, workspace: View | None = None
    ) -> list[Call]:
        """Fill the halo of the result, then its pixels."""
        to, epilogue = self.result.at(out), Epilogue(bias.at, None, self.activation)
        rows = row_calls(whole_blocks(self.shape), to, self.source.at(x), filters.at, epilogue)
        return [*fill_halo_calls(to), *rows.calls]


class TileIntegerConv(BlockedIntegerConv):
    """A BlockedIntegerConv on tiles.

    Operands
        x: bytes in blocks of 64 channels, or pixels of four
        filters: as `pack_tile_filters` returns them
        start, scale, residual: as for a BlockedIntegerConv; start and scale up to the last panel's end
    """

    @property
    def layer(self) -> TileLayer:
        return TileLayer(self.shape)

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(self.calls, self.layer.nbytes(self.form.n), self.overwrites)

    def unpacked(self, filters: np.ndarray) -> np.ndarray:
        return unpack_tile_filters(self.layer, filters)

    @property
    def overwrites(self) -> tuple[int, ...]:
        """The residual, if it has the result's form: each pixel is read before it is written."""
        return (BYTE_RESIDUAL,) if self.residual == self.form else ()

    def calls(
        self, out: View, x: View, filters: View, start: View, scale: View, *rest: View, workspace: View | None = None
    ) -> list[Call]:
        """Fill the halo of the result, then its pixels."""
        to, source = self.form.at(out), self.source.at(x)
        residual = self.residual.at(rest[0]) if self.residual is not None else None
        weights, place = ByteWeights(filters.at, start.at, scale.at), None if workspace is None else workspace.at
        pixels = tile_conv8_calls(self.layer, to, source, weights, self.result, residual, place)
        halo_calls = [] if rest and rest[0] == out else fill_halo_calls(to)
        return [*halo_calls, *pixels.calls]


class TileImages(Op):
    """Images as convolutions on tiles read them: float32 rounded to bfloat16, or bytes in blocks of 64 channels.

    Operands
        x: images of form `source`, or plain float32 images ``[n, c, h, w]`` of few channels if that is None
    Fields
        source, result: forms
    """

    source: Form | None
    result: Form

    @property
    def name(self) -> str:
        return "to_tiles"

    def infer(self, x: Spec) -> Spec:
        if self.source is not None:
            require(x, self.source)
        elif x.shape != self.result.logical:
            raise ShapeError(f"images {x} are not {list(self.result.logical)}; pass images of that shape")
        return self.result.spec

    def meaning(self, x):
        plain = x if self.source is None else self.source.plain(x)
        return self.result.to_blocked(convert(plain, self.result.spec.dtype))

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View) -> list[Call]:
            to = self.result.at(out)
            pixels = round_pixels_calls(to, x) if self.source is None else join_blocks_calls(to, self.source.at(x))
            return [*fill_halo_calls(to), *pixels.calls]

        return Work(calls)

    def row_rule(self, x: Spec) -> RowRule | None:
        return RowRule((0,), self.first_images)

    def first_images(self, n: int) -> "TileImages":
        return TileImages(self.source and self.source.first(n), self.result.first(n))

    def cut(self, x: Spec) -> Cut:
        above = 0 if self.source is None else self.source.halo[0]
        return Cut((rows_inside(self.result, above),), self.band, self.result.halo[0], self.result.halo[2])

    def band(self, first: int, stop: int) -> "TileImages":
        """Return the op that converts some rows of the result."""
        result = self.result.rows(first, stop)
        return TileImages(self.source and self.source.strip(result.h), result)
