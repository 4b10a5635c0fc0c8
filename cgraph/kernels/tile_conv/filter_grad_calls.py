"""The gradient of a convolution for its filters on tile registers: a product for each tap.

    df[k, c, i, j] = sum over pixels of g[k, pixel] * x[c, pixel + shift(i, j)]

Images become rows of pixels, one for each channel, with as many pixels in an image's row as windows reach; so a tap is
a shift, and tiles load rows at any address. Gradients have zeros where there is no result. With strides, every
stride-th row and column of the images is an image of its own (a phase). Images are cut into parts, whose sums are
added up in order, so any number of threads gives the same bits. Plain images of few channels would fill few rows of a
tile, so each tap across has rows of its own: copies of the pixels that it reads.
"""

from itertools import product
from math import prod

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.activation.calls import NONE
from cgraph.kernels.conv8.calls import MatrixRows
from cgraph.kernels.expression import Trace
from cgraph.kernels.filter_grad.calls import FilterGrad, pixels_of
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.move.calls import copy_calls, fill_calls, part
from cgraph.kernels.pairs.calls import pair_calls
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.kernels.tile_products.calls import WIDTH, LeftRows, TileSize, number_rows_calls
from cgraph.kernels.tile_products.computed_sides import pack_calls
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.layout import without
from cgraph.kernels.views.window import Window
from cgraph.kernels.views.window_views import reorder_axes
from cgraph.record import Record, replace
from cgraph.system.alignment import aligned, round_up

HALF_NBYTES, SUM_NBYTES = 2, 4
HALF = BFLOAT16.unsigned
ADDED = 16  # parts that one call adds up


class TileFilterGrad(Record):
    """The plan of the gradient for the filters of a convolution, of one group.

    Fields
        shape: the convolution, of channel-blocked or plain images
        n: images
    """

    shape: ConvShape
    n: int

    @property
    def cut(self) -> FilterGrad:
        """The parts of the images."""
        return FilterGrad(self.shape, self.n)

    @property
    def layer(self) -> ConvShape:
        """The convolution whose taps are products: of plain images one by columns of taps, with a channel for each
        channel and tap across, whose windows begin at neighbouring pixels.
        """
        s, w = self.shape, self.shape.window
        if not s.is_plain:
            return s
        window = Window((w.kernel[0], 1), (w.stride[0], 1), (w.pad[0], 0, w.pad[2], 0), (w.dilation[0], 1))
        return replace(s, c=s.c * w.kernel[1], w=s.result[1], window=window, is_plain=False)

    @property
    def phases(self) -> tuple[tuple[int, int], ...]:
        """The first row and column of the padded images' phases that taps read."""
        w = self.layer.window
        rows, columns = ({i * d % s: 0 for i in range(r)} for r, d, s in zip(w.kernel, w.dilation, w.stride))
        return tuple(product(rows, columns))

    @property
    def reach(self) -> tuple[int, int]:
        """The largest shift of a tap, in rows and columns of a phase."""
        w = self.layer.window
        down, across = ((size - 1) * d // s for size, d, s in zip(w.kernel, w.dilation, w.stride))
        return down, across

    @property
    def raster(self) -> tuple[int, int]:
        """Rows and columns of an image among the pixels of a channel."""
        (rows, columns), (down, across) = self.shape.result, self.reach
        return rows + down, columns + across

    @property
    def pixels(self) -> int:
        """Pixels of a part, up to a whole step."""
        return round_up(self.cut.images * prod(self.raster), 32)

    @property
    def size(self) -> TileSize:
        """The product of one tap and part: sums of pixels for channels by filters."""
        return TileSize(self.pixels, self.shape.k, HALF_NBYTES)

    @property
    def images_shape(self) -> tuple[int, int, int, int]:
        """The shape of the images' pixels ``[phases, channels, parts, pixels]``."""
        channels = self.layer.c if self.shape.is_plain else round_up(self.shape.c, self.shape.lanes)
        return len(self.phases), channels, self.cut.parts, self.pixels

    @property
    def gradients_shape(self) -> tuple[int, int, int]:
        """The shape of the gradients' pixels ``[filters, parts, pixels]``."""
        return self.size.panels * WIDTH, self.cut.parts, self.pixels

    @property
    def sums_shape(self) -> tuple[int, ...]:
        """The shape of sums ``[rows, columns, parts, channels, k]`` of taps and channels of `layer`."""
        return (*self.layer.window.kernel, self.cut.parts, self.layer.c, self.shape.k)

    @property
    def rooms(self) -> tuple[int, ...]:
        """Bytes of a rounded operand, of the pixels of images and of gradients, of panels, and of sums."""
        s, (rows, columns), lanes = self.shape, self.shape.result, self.shape.lanes
        operands = s.h * s.w * (s.c if s.is_plain else round_up(s.c, lanes)), rows * columns * round_up(s.k, lanes)
        beyond = self.reach[0] * self.raster[1] + self.reach[1]  # pixels that the last row reads after its end
        sizes = (
            HALF_NBYTES * self.n * max(operands),
            HALF_NBYTES * (prod(self.images_shape) + beyond),
            HALF_NBYTES * prod(self.gradients_shape),
            HALF_NBYTES * prod(self.gradients_shape),
            SUM_NBYTES * prod(self.sums_shape),
        )
        return tuple(map(aligned, sizes))

    @property
    def nbytes(self) -> int:
        """Bytes of workspace."""
        return sum(self.rooms)


def tile_filter_grad_calls(
    target: Target, plan: TileFilterGrad, out: View, x: BlockedView | View, g: BlockedView, place: Pointer
) -> list[Call]:
    """Return calls of ``out[k, c, r, s]`` = the gradient, of any strides, of operands rounded to bfloat16.

    Parameters
        x, g: float32 images, plain or channel-blocked as in the plan, and the gradient of the result
        place: of ``plan.nbytes`` bytes
    """
    places = [place]
    for nbytes in plan.rooms:
        places.append(places[-1] + nbytes)
    rounded, images, gradients, panels, sums, _ = places
    whole = contiguous(images, (plan.rooms[1] // HALF_NBYTES,), HALF)
    calls = fill_calls(target, whole, 0)
    rows = contiguous(gradients, plan.gradients_shape, HALF)
    calls += fill_calls(target, rows, 0)
    pixels = contiguous(images, plan.images_shape, HALF)
    if isinstance(x, View):
        calls += plain_image_calls(target, plan, pixels, x, rounded)
    else:
        calls += image_calls(target, plan, pixels, x, rounded)
    calls += gradient_calls(target, plan, rows, g, rounded)
    filters, parts, count = plan.gradients_shape
    pairs = reorder_axes(contiguous(gradients, (filters, parts, count // 2), PAIRS), (1, 0, 2))
    calls += pack_calls(target, plan.size, panels, pairs)
    calls += [call for tap in range(plan.layer.window.taps) for call in tap_calls(plan, tap, images, panels, sums)]
    return [*calls, *joining_calls(target, plan, out, sums)]


def halves_of(target: Target, x: BlockedView, place: Pointer) -> tuple[list[Call], View]:
    """Return the calls that round images without their halo, and the bits ``[n, blocks, h, w, lanes]``."""
    shape = (x.n, x.blocks, x.h, x.w, x.lanes)
    calls = pair_calls(target, contiguous(place, shape, BFLOAT16.code), pixels_of(x, x.origin, shape))
    return calls, contiguous(place, shape, HALF)


def image_calls(target: Target, plan: TileFilterGrad, out: View, x: BlockedView, place: Pointer) -> list[Call]:
    """Return the calls that write the images' pixels."""
    calls, halves = halves_of(target, x, place)
    return [*calls, *copy_phases(target, plan, out, halves)]


def plain_image_calls(target: Target, plan: TileFilterGrad, out: View, x: View, place: Pointer) -> list[Call]:
    """Return the calls that write the pixels of plain images: for each tap across, those that it reads."""
    calls = pair_calls(target, contiguous(place, x.shape, BFLOAT16.code), x)
    halves, window, columns = contiguous(place, (*x.shape, 1), HALF), plan.shape.window, plan.shape.result[1]
    taps, (phase, channel, step, pixel) = window.kernel[1], out.strides
    for tap in range(taps):
        at = tap * window.dilation[1] - window.pad[1]
        start = max(-(at // window.stride[1]), 0)
        first = at + start * window.stride[1]
        count = max(min(-(-(x.shape[3] - first) // window.stride[1]), columns - start), 0)
        strides = (phase, taps * channel, step, pixel)
        there = View(
            out.at + (tap * channel + start * pixel), (out.shape[0], x.shape[1], *out.shape[2:]), strides, HALF
        )
        calls += copy_phases(target, plan, there, part(halves, 3, first, count, window.stride[1]))
    return calls


def copy_phases(target: Target, plan: TileFilterGrad, out: View, halves: View) -> list[Call]:
    """Copy the phases of images ``[n, blocks, h, w, lanes]`` to the pixels ``[phases, channels, parts, pixels]``."""
    calls, window = [], plan.layer.window
    for phase, begin in enumerate(plan.phases):
        source, (top, left) = halves, (0, 0)
        for axis, at, size, stride, pad in zip((2, 3), begin, plan.raster, window.stride, window.pad[:2]):
            first = (at - pad) % stride
            start = (first + pad) // stride
            count = max(min(-(-(source.shape[axis] - first) // stride), size - start), 0)
            source = part(source, axis, first, count, stride)
            top, left = (start, left) if axis == 2 else (top, start)
        there = part(out, 0, phase, 1)
        there = View(there.at, there.shape[1:], there.strides[1:], HALF)
        calls += raster_calls(target, plan, there, source, top * plan.raster[1] + left)
    return calls


def gradient_calls(target: Target, plan: TileFilterGrad, out: View, g: BlockedView, place: Pointer) -> list[Call]:
    """Return the calls that write the gradients' pixels."""
    calls, halves = halves_of(target, g, place)
    return [*calls, *raster_calls(target, plan, out, halves, 0)]


def raster_calls(target: Target, plan: TileFilterGrad, out: View, x: View, first: int) -> list[Call]:
    """Copy images ``[n, blocks, h, w, lanes]`` to the pixels ``[channels, parts, pixels]`` from pixel `first` on."""
    calls, each, (rows, columns) = [], plan.cut.images, plan.raster
    *_, lanes = x.shape
    for i in range(plan.cut.parts):
        source = part(x, 0, i * each, min(each, plan.n - i * each))
        channel, step, pixel = out.strides
        at = out.at + (i * step + first * pixel)
        strides = (rows * columns * pixel, lanes * channel, columns * pixel, pixel, channel)
        calls += copy_calls(target, View(at, source.shape, strides, HALF), source)
    return calls


def tap_calls(plan: TileFilterGrad, tap: int, images: Pointer, panels: Pointer, sums: Pointer) -> tuple[Call, ...]:
    """Return the products of one tap, for each part."""
    shape, window, (_, channels, parts, pixels) = plan.layer, plan.layer.window, plan.images_shape
    reads = [i * d for i, d in zip(divmod(tap, window.kernel[1]), window.dilation)]
    (a, down), (b, across) = ((at % stride, at // stride) for at, stride in zip(reads, window.stride))
    start = plan.phases.index((a, b)) * channels * parts * pixels + down * plan.raster[1] + across
    left = LeftRows(images + HALF_NBYTES * start, parts, shape.c, HALF_NBYTES * pixels, HALF_NBYTES * parts * pixels)
    size = shape.c * shape.k
    out = MatrixRows(sums + SUM_NBYTES * tap * parts * size, size, shape.k)
    w_image = plan.size.panels * plan.size.panel_nbytes
    return number_rows_calls(plan.size, out, left, panels, None, NONE, w_image).calls


def joining_calls(target: Target, plan: TileFilterGrad, out: View, sums: Pointer) -> list[Call]:
    """Return the calls that add up the sums of all parts, from the first to the last."""
    (r, s), parts, c, k = plan.shape.window.kernel, plan.cut.parts, plan.shape.c, plan.shape.k
    shape, order = (
        ((r, parts, c, s, k), (1, 4, 2, 0, 3)) if plan.shape.is_plain else ((r, s, parts, c, k), (2, 4, 3, 0, 1))
    )
    totals = reorder_axes(contiguous(sums, shape, "f4"), order)
    terms, calls = [without(part(totals, 0, i, 1), 0) for i in range(parts)], []
    for first in range(0, parts, ADDED):
        several = ([out] if first else []) + terms[first : first + ADDED]
        m = Trace()
        total = m.load(0, "f4")
        for i in range(1, len(several)):
            total = total + m.load(i, "f4")
        calls += pointwise_calls(target, m.program(total), out, *several)
    return calls
