"""Convolution after lowering: on channel-blocked images, with bias, residual and activation in its epilogue."""

from functools import partial
from math import prod
from typing import Any

import numpy as np

from cgraph.dtypes.convert import convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.ir.cut import Cut
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.blocked_copy.calls import fill_halo_calls
from cgraph.kernels.conv.calls import conv_calls, conv_nbytes, conv_overwrites_residual
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.depthwise.calls import depthwise_calls, is_depthwise, pack_depthwise
from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import Call, View, contiguous, scratch_pointer
from cgraph.kernels.llvm.winograd_matrices import winograd_matrices
from cgraph.kernels.pairs.calls import pair_calls
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_bias, pack_conv
from cgraph.kernels.winograd.calls import Winograd, pack_winograd, winograd_calls
from cgraph.ops.conv import Conv2d, ConvTranspose
from cgraph.ops.physical.element_function import ElementFunction
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.frames import Depth, FramesConv
from cgraph.ops.physical.lanes import require
from cgraph.ops.physical.pairs import pack_pairs, round_to_bfloat16, unpack_pairs
from cgraph.ops.physical.unpack import unpack
from cgraph.ops.physical.window_rows import WindowRows, rows_inside
from cgraph.record import replace

RESIDUAL = 3  # its index among the operands of a BlockedConv


class ConvEpilogue(Op):
    """``activation(conv(x, filters) * scale + bias + residual)``: a convolution with its epilogue.

    Fields
        conv: the convolution, one over frames of volumes, or a transposed one, which takes no residual
        has_scale, has_bias, has_residual: operands after `x` and the filters: scale and bias ``[k]``, a residual of the
            result's shape. The scale is multiplied into the filters when they are packed, one layer at a time
        activation: two bounds and a slope
    """

    conv: Conv2d | ConvTranspose | FramesConv
    has_scale: bool = False
    has_bias: bool = False
    has_residual: bool = False
    activation: BoundedActivation = NONE
    is_layer = True

    def infer(self, x: Spec, f: Spec, *rest: Spec) -> Spec:
        return self.conv.infer(x, f)

    def meaning(self, x, f, *rest):
        y = self.conv.meaning(x, f)
        extra = list(rest)
        if self.has_scale:
            y = y * extra.pop(0)[:, None, None]
        if self.has_bias:
            y = y + extra.pop(0)[:, None, None]
        if self.has_residual:
            y = y + extra.pop(0)
        a = self.activation
        return np.clip(np.where(y > 0, y, y * np.asarray(a.slope, y.dtype)), a.low, a.high)

    def row_rule(self, x: Spec, f: Spec, *rest: Spec) -> RowRule | None:
        if not rest or isinstance(self.conv, FramesConv):  # whose frames belong to volumes
            return None
        return RowRule((0, 1 + len(rest)) if self.has_residual else (0,), lambda rows: self)

    def operands(self, operands: tuple) -> tuple[Any, Any, Any]:
        """Return scale, bias and residual among the operands, None where absent."""
        rest = list(operands[2:])
        has = (self.has_scale, self.has_bias, self.has_residual)
        scale, bias, residual = (rest.pop(0) if there else None for there in has)
        return scale, bias, residual


class BlockedConv(Op):
    """Convolution of channel-blocked images with packed filters.

    Operands
        x: of form `source`, or plain images ``[n, c, h, w]`` if that is None
        filters, bias: as `pack_filters` and `pack_bias` return them; direct filters may have a storage dtype
        residual: of form `residual`, if that is not None
    Fields
        shape: sizes, window, groups, target
        tile: 0 for direct (or depthwise) convolution, 2 or 4 for Winograd tiles of that size
        n: number of images of the result, of each volume if there is a depth
        source, result, residual: forms
        activation: two bounds and a slope
        function: applied to each number before it is stored, if there are no bounds and no slope
        depth: the images are frames of volumes; windows along the depth are images of `taps` times as many channels
        pairs: round images to bfloat16 in a workspace; filters are pairs of bfloat16 numbers
    """

    shape: ConvShape
    tile: int
    n: int
    source: Form | None
    result: Form
    residual: Form | None = None
    activation: BoundedActivation = NONE
    pairs: bool = False
    depth: Depth | None = None
    function: ElementFunction | None = None
    takes_storage = True

    @property
    def name(self) -> str:
        if self.tile:
            return f"winograd{self.tile}"
        return "depthwise" if is_depthwise(self.shape) else "conv2d"

    def infer(self, x: Spec, filters: Spec, bias: Spec, *residual: Spec) -> Spec:
        if self.source is not None:
            require(x, self.source)
        for spec in residual:
            require(spec, self.residual)  # type: ignore[arg-type]
        return self.result.spec

    def meaning(self, x, filters, bias, *residual):
        shape, window = self.shape, self.shape.window
        conv = Conv2d(window.stride, window.pad, window.dilation, shape.groups)
        epilogue = ConvEpilogue(conv, False, True, bool(residual), self.activation)
        images = x if self.source is None else self.source.plain(x)
        if self.pairs:
            images, filters = round_to_bfloat16(images), unpack_pairs(filters)
        if self.depth is not None:
            images = self.depth.stack(images, shape.c // self.depth.taps)
        rest = (self.residual.plain(r) for r in residual)  # type: ignore[union-attr]
        f = unpack_filters(shape, self.n, self.tile, convert(filters, x.dtype))
        y = epilogue.meaning(images, f, bias[: shape.k], *rest)
        return self.result.to_blocked(y if self.function is None else self.function.meaning(y))

    def multiply_adds(self, *specs: Spec) -> int:
        return self.volumes * self.n * self.shape.flops // 2

    @property
    def volumes(self) -> int:
        return 1 if self.depth is None else self.depth.volumes

    def work(self, target: Target, *specs: Spec) -> Work:
        nbytes = self.winograd.nbytes if self.tile else conv_nbytes(self.shape, self.n)
        return Work(self.calls, self.halves_nbytes or nbytes, self.overwrites)

    @property
    def program(self) -> Program:
        """The function as a scalar program; () if there is none."""
        return () if self.function is None else self.function.program(self.shape.dtype)

    @property
    def halves_nbytes(self) -> int:
        """Bytes of the images in bfloat16; 0 if they are read in their own dtype."""
        return BFLOAT16.dtype.itemsize * prod(self.source.shape) if self.pairs and self.source else 0

    def row_rule(self, *specs: Spec) -> RowRule | None:
        return None if self.depth else RowRule((0, RESIDUAL), self.first_images)

    def first_images(self, n: int) -> "BlockedConv":
        """Return the convolution of the first n images, with the same filters in the same order."""
        shape = replace(self.shape, panel=panel_of(self.shape, self.n, self.tile))
        source, result, residual = (f and f.first(n) for f in (self.source, self.result, self.residual))
        return replace(self, shape=shape, n=n, source=source, result=result, residual=residual)

    def cut(self, *specs: Spec) -> Cut:
        rows = WindowRows(self.shape.window, self.shape.h, self.result, self.halo_rows)
        table = rows.table(self.halo_rows[0])
        beside = None if self.residual is None else rows_inside(self.result, self.residual.halo[0])
        reads = (table, None, None, beside)[: len(specs)]
        return Cut(reads, partial(self.band, rows), self.result.halo[0], self.result.halo[2], self.row_multiple)

    @property
    def row_multiple(self) -> int:
        """Bands begin at multiples of this row, so that Winograd's tiles stay the same."""
        return self.tile * self.shape.window.dilation[0] if self.tile else 1

    @property
    def halo_rows(self) -> tuple[int, int]:
        """Halo rows above and below the images."""
        return (0, 0) if self.source is None else (self.source.halo[0], self.source.halo[2])

    def band(self, rows: WindowRows, first: int, stop: int) -> "BlockedConv":
        """Return the convolution that computes some rows of the result, with the same filters in the same order."""
        begin, end, above, below = rows.span(first, stop)
        pad = (above, self.shape.window.pad[1], below, self.shape.window.pad[3])
        panel = panel_of(self.shape, self.n, self.tile)
        shape = replace(self.shape, h=end - begin, window=replace(self.shape.window, pad=pad), panel=panel)
        source = None if self.source is None else self.source.strip(end - begin)
        result = self.result.rows(first, stop)
        residual = None if self.residual is None else self.residual.strip(result.h)
        return replace(self, shape=shape, source=source, result=result, residual=residual)

    @property
    def winograd(self) -> Winograd:
        return Winograd(self.shape, self.n, self.tile)

    @property
    def overwrites(self) -> tuple[int, ...]:
        """The residual, if every pixel of it is read before it is written."""
        if self.residual is None or self.residual != self.result or is_depthwise(self.shape):
            return ()
        halo = self.result.halo != (0, 0, 0, 0) or (self.source is not None and self.source.halo != (0, 0, 0, 0))
        return (3,) if self.tile or conv_overwrites_residual(self.shape, halo) else ()

    def calls(
        self, out: View, x: View, filters: View, bias: View, *rest: View, workspace: View | None = None
    ) -> list[Call]:
        """Fill the halo of the result, then its pixels."""
        to = self.result.at(out)
        residual = self.residual.at(rest[0]) if self.residual is not None else None
        epilogue = Epilogue(bias.at, residual, self.activation, self.program)
        halo_calls = [] if rest and rest[0] == out else fill_halo_calls(to)
        if self.pairs and self.source:
            halves = contiguous(scratch_pointer(workspace, self.halves_nbytes), self.source.shape, BFLOAT16.code)
            images = replace(self.source.at(halves), dtype=BFLOAT16.code)
            lowered = conv_calls(self.shape, to, images, filters.at, epilogue, weights_dtype=PAIRS)
            return [*halo_calls, *pair_calls(self.shape.target, halves, x), *lowered.calls]
        source: Any = x if self.source is None else self.source.at(x)
        if self.depth is None:
            return [*halo_calls, *self.pixels(to, source, filters, epilogue, workspace)]
        calls = halo_calls
        for i in range(self.volumes):
            beside = residual and self.depth.results(residual, i)
            epilogue = replace(epilogue, residual=beside)
            images = self.depth.stacked(source, i)
            calls = calls + self.pixels(self.depth.results(to, i), images, filters, epilogue, workspace)
        return calls

    def pixels(self, out: BlockedView, x: Any, filters: View, epilogue: Epilogue, workspace: View | None) -> list[Call]:
        """Return the calls that fill the result except its halo."""
        if self.tile:
            body = winograd_calls(self.winograd, out, x, filters.at, epilogue, workspace)
        elif is_depthwise(self.shape):
            body = depthwise_calls(self.shape, out, x, filters.at, epilogue)
        else:
            body = conv_calls(self.shape, out, x, filters.at, epilogue, workspace, filters.dtype)
        return list(body.calls)


def pack_filters(
    shape: ConvShape, n: int, tile: int, filters: np.ndarray, scale: np.ndarray | None, pairs: bool = False
) -> np.ndarray:
    """Pack filters ``[k, c / groups, r, s]``, times `scale` ``[k]``, in the order in which the kernel reads them.

    Direct convolutions read filters of a storage dtype; for others they are widened. With
    `pairs`, pack pairs of bfloat16 for a direct convolution that is not depthwise.
    """
    if tile or scale is not None or is_depthwise(shape) or shape.target.has_blocks:
        filters = convert(filters, np.dtype(shape.dtype))
    if tile:
        return pack_winograd(Winograd(shape, n, tile), filters, scale)
    packed = (pack_depthwise if is_depthwise(shape) else pack_conv)(shape, filters, scale)
    return pack_pairs(packed) if pairs else packed


def panel_of(shape: ConvShape, n: int, tile: int) -> int:
    """Return the number of blocks of result channels whose filters are stored together."""
    return (Winograd(shape, n, tile).product if tile else shape).vectors


def unpack_filters(shape: ConvShape, n: int, tile: int, packed: np.ndarray) -> np.ndarray:
    """Return the filters ``[k, c / groups, r, s]`` that `pack_filters` packed."""
    if tile:
        return unpack_winograd(Winograd(shape, n, tile), packed)
    filter_shape = (shape.k, shape.c // shape.groups, *shape.window.kernel)
    return unpack(packed, filter_shape, partial(pack_depthwise if is_depthwise(shape) else pack_conv, shape))


def pack_layer_bias(shape: ConvShape, bias: np.ndarray | None) -> np.ndarray:
    """Pack the bias, or zeros, up to the end of the last panel."""
    return pack_bias(shape, np.zeros(shape.k, np.dtype(shape.dtype)) if bias is None else bias)


def unpack_winograd(plan: Winograd, packed: np.ndarray) -> np.ndarray:
    """Return the filters ``[k, c, 3, 3]`` with ``U = G g GT`` for `packed`, by least squares with the inverse of G."""
    shape, n = plan.shape, plan.m + 2
    u = packed.reshape(n, n, plan.product.panels, -1, plan.product.panel_channels)[..., : shape.c, :]
    inverse = np.linalg.pinv(winograd_matrices(plan.m)[1])
    filters = np.einsum("ri,sj,ijpcw->pwcrs", inverse, inverse, u, optimize=True)
    return filters.reshape(-1, shape.c, 3, 3)[: shape.k].astype(packed.dtype)
