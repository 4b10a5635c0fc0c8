"""Calls of the gradient of a convolution for its filters.

    df[k, c, i, j] = sum over n, p, q of
        g[n, k, p, q] * x[n, c, p*stride + i*dilation - top, q*stride + j*dilation - left]

The images are cut into parts that stay in L2; each part's sums go to the workspace and are added up in order, so any
number of threads gives the same bits. It is slow for large filters on few small images, where the partial sums are
larger than the images.
"""

from functools import cached_property
from itertools import product
from math import prod

from cgraph.kernels.conv.addresses import Images
from cgraph.kernels.expression import Trace
from cgraph.kernels.filter_grad.signature import TILE
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, split_scratch
from cgraph.kernels.move.calls import part
from cgraph.kernels.pairs.paired_sides import joining
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.plain.calls import pad_plain_calls, padded_plain
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView, require_whole_blocks
from cgraph.kernels.views.conv_shape import ConvShape, sums
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of, table
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.kernels.views.timing import tile_ns
from cgraph.late import LateModule
from cgraph.record import Record
from cgraph.system.alignment import aligned

gpu_filter_grad = LateModule("cgraph.kernels.filter_grad.gpu_calls")

PIXELS = 3  # axis of the pixels of a row in channel-blocked images
PART_NBYTES = 400_000  # bytes of the images and gradients of one part, which stay in L2


class FilterGrad(Record):
    """The plan of computing the gradient for the filters of a convolution.

    Fields
        shape: the convolution, of one group
        n: images
        pairs: round images and gradients to bfloat16, in pairs of pixels that the same tap reads: of blocked images
    """

    shape: ConvShape
    n: int
    pairs: bool = False

    @cached_property
    def tile(self) -> tuple[int, int, int, int]:
        """Filter rows, taps of a row, channels and blocks of filters whose sums are in registers."""
        s, (rows, taps) = self.shape, self.shape.window.kernel
        channels, pointers = (s.c, 9) if s.is_plain else (s.lanes, rows * s.lanes)
        choices = product(divisors(rows), divisors(taps), divisors(channels), divisors(min(s.blocks, 2)))
        fitting = [
            x for x in choices
            if x[0] * x[1] * x[2] * x[3] <= sums(s.target) and x[0] * x[2] <= pointers and s.blocks % x[3] == 0
        ]  # fmt: skip
        return max(fitting, key=lambda x: (x[0] * x[1] * x[2] * x[3], x[3], -x[0]))

    @property
    def padded_k(self) -> int:
        """Number of filters, rounded up to whole blocks."""
        return self.shape.blocks * self.shape.lanes

    @property
    def channel_tiles(self) -> int:
        return -(-self.shape.c // self.tile[2])

    @property
    def part_size(self) -> int:
        """Elements of one part's sums."""
        return self.channel_tiles * self.tile[2] * self.shape.window.taps * self.padded_k

    @property
    def images(self) -> int:
        """Images of a part."""
        s = self.shape
        rows, columns = s.result
        each = (s.c * s.h * s.w + self.padded_k * rows * columns) * self.itemsize
        most = max(1, min(-(-self.n * each // PART_NBYTES), self.n * each // (self.part_size * self.itemsize)))
        return max(1, -(-self.n // most))

    @property
    def parts(self) -> int:
        return -(-self.n // self.images)

    @property
    def itemsize(self) -> int:
        return int(self.shape.dtype[1:])

    @property
    def rooms(self) -> tuple[int, int, int, int, int]:
        """Return the bytes of padded plain images, of all parts' sums, of the workspace for adding them up, and of
        images and gradients in pairs.
        """
        s = self.shape
        (top, left, bottom, right), padded = s.window.pad, 0
        if s.is_plain and s.window.pad != (0, 0, 0, 0):
            padded = self.n * s.c * (s.h + top + bottom) * (s.w + left + right) * self.itemsize
        shape = (self.parts, s.k, s.c, *s.window.kernel)
        rest = reduce_nbytes("sum", s.dtype, shape, (0,))
        images, gradients = (prod(y) * self.itemsize if self.pairs else 0 for y in self.pair_shapes)
        return padded, self.parts * self.part_size * self.itemsize, rest, images, gradients

    @property
    def pair_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of images, with the halo that windows read, and of gradients in pairs."""
        s, (rows, columns) = self.shape, self.shape.result
        top, left, bottom, right = s.window.halo(s.h, s.w)
        images = self.n, -(-s.c // s.lanes), s.h + top + bottom, s.w + left + right, s.lanes
        return images, (self.n, s.blocks, rows, -(-columns // 2), s.lanes)

    @property
    def nbytes(self) -> int:
        """Bytes of workspace."""
        return sum(map(aligned, self.rooms))


def filter_grad_calls(
    plan: FilterGrad, out: View, x: BlockedView | View, g: BlockedView, workspace: View
) -> KernelCalls:
    """Return calls of ``out[k, c, r, s]`` = the gradient, of any strides, for images `x` and the result's gradient
    `g`.

    Operands
        x: blocked images whose halo is at least ``shape.window.halo(h, w)``; or, if ``shape.is_plain``, a view ``[n, c,
            h, w]`` with contiguous pixels
        workspace: at least ``plan.nbytes`` bytes
    Raises
        ValueError: shapes disagree, there are groups or no images, or the halo is too narrow
    """
    s = plan.shape
    check_shapes(plan, out, x, g)
    padded, totals, rest, *both = split_scratch(workspace, *plan.rooms)
    before: list[Call] = []
    if isinstance(x, View) and plan.rooms[0]:
        whole = padded_plain(x, s.window.pad, padded)
        before, x = pad_plain_calls(whole, x, s.window.pad), whole
    assert totals is not None
    if plan.pairs and isinstance(x, BlockedView):
        before, x, g = in_pixel_pairs(plan, x, g, *both)
    source = plain_source(plan, x) if isinstance(x, View) else blocked_source(plan, x)
    cut = plan.parts, plan.images, plan.part_size
    tiles = in_blocks(s.target, gpu_filter_grad.filter_grad_calls, s, plan.n, cut, source, g, totals.at)
    if tiles is None:
        tiles = KernelCalls((tile_call(plan, source, g, totals.at),), (source.tiles,))
    m = Trace()
    program = m.program(m.load(0, s.dtype))
    parts = parts_view(plan, totals.at)
    joining = reduce_calls(s.target, "sum", program, out, parts, axes=(0,), workspace=rest)
    return KernelCalls((*before, *tiles.calls, *joining), tiles.constants)


def in_pixel_pairs(
    plan: FilterGrad, x: BlockedView, g: BlockedView, x_room: View | None, g_room: View | None
) -> tuple[list[Call], BlockedView, BlockedView]:
    """Return images whose elements are pairs of pixels one stride apart, gradients of neighbours, and their calls."""
    assert x_room is not None and g_room is not None
    target, across, halo = plan.shape.target, plan.shape.window.stride[1], plan.shape.window.halo(x.h, x.w)
    images, gradients = (contiguous(y.at, shape, PAIRS) for y, shape in zip((x_room, g_room), plan.pair_shapes))
    source = pixels_of(x, x.pixel(-halo[0], -halo[1]), images.shape)
    alone = min(across, images.shape[PIXELS])
    both = images.shape[PIXELS] - alone
    calls = join_calls_of(target, part(images, PIXELS, 0, both), *(part(source, PIXELS, i, both) for i in (0, across)))
    calls += join_calls_of(target, part(images, PIXELS, both, alone), part(source, PIXELS, both, alone))
    count = g.w // 2
    source = pixels_of(g, g.origin, (*gradients.shape[:PIXELS], g.w, g.lanes))
    calls += join_calls_of(
        target, part(gradients, PIXELS, 0, count), *(part(source, PIXELS, i, count, 2) for i in (0, 1))
    )
    calls += join_calls_of(target, part(gradients, PIXELS, count, g.w % 2), part(source, PIXELS, 2 * count, g.w % 2))
    new_x = BlockedView(images.at, x.n, x.c, x.h, x.w, x.lanes, halo)
    steps = tuple(step // plan.itemsize for step in gradients.strides[:PIXELS])
    return calls, new_x, BlockedView(gradients.at, g.n, g.c, g.h, g.w, g.lanes, steps=steps)  # type: ignore[arg-type]


def pixels_of(x: BlockedView, at: Pointer, shape: tuple[int, ...]) -> View:
    """Return pixels of images ``[n, blocks, rows, columns, lanes]`` from a pixel on."""
    return View(at, shape, tuple(x.itemsize * step for step in (x.image, x.plane, x.row, x.lanes, 1)), x.dtype)


def join_calls_of(target: Target, out: View, *xs: View) -> list[Call]:
    """Return the calls that join numbers to pairs."""
    return pointwise_calls(target, joining(len(xs)), out, *xs)


def plain_source(plan: FilterGrad, x: View) -> Images:
    """Return the addresses of a plain view, already padded."""
    image, plane, row, _ = (step // x.itemsize for step in x.strides)
    tiles = table([c * plane for c in range(0, plan.shape.c, plan.tile[2])])
    return Images(x.at, tiles, image, row, 1, plane, plane)


def blocked_source(plan: FilterGrad, x: BlockedView) -> Images:
    top, left, _, _ = plan.shape.window.pad
    tiles = table([c // x.lanes * x.plane + c % x.lanes for c in range(0, x.c, plan.tile[2])])
    return Images(x.pixel(-top, -left), tiles, x.image, x.row, x.lanes, 1, x.plane)


def tile_call(plan: FilterGrad, x: Images, g: BlockedView, out: Pointer) -> Call:
    """Return the call that computes the sums of every part, filter and channel."""
    s, (rows, taps, channels, vectors) = plan.shape, plan.tile
    (down, across), (tall, wide), (r, columns) = s.window.stride, s.window.dilation, s.window.kernel
    tasks = plan.parts * (s.blocks // vectors) * plan.channel_tiles * (r // rows) * (columns // taps)
    columns_read, each = (-(-s.result[1] // 2), 2) if plan.pairs else (s.result[1], 1)  # pixels of an element
    work = plan.images * s.result[0] * columns_read * rows * taps * channels * vectors
    return TILE.call(
        (s.dtype, *plan.tile, each * x.step * across, x.step * wide, s.is_plain, plan.pairs),
        tasks, chunk_of(tasks, tile_ns(s.target, work)),
        x=x.at, x_tiles=Pointer(x.tiles), x_image=x.image, x_row=x.row * down, x_channel=x.channel,
        tap_row=x.row * tall,
        g=g.origin, g_image=g.image, g_plane=g.plane, g_row=g.row,
        out=out, o_part=plan.part_size, o_channel=s.window.taps * plan.padded_k, o_row=columns * plan.padded_k,
        o_tap=plan.padded_k,
        n=plan.n, images=plan.images, g_rows=s.result[0], g_columns=columns_read,
        filter_tiles=s.blocks // vectors, channel_tiles=plan.channel_tiles, row_tiles=r // rows,
        tap_tiles=columns // taps,
    )  # fmt: skip


def parts_view(plan: FilterGrad, at: Pointer) -> View:
    """Return the sums of all parts as ``[parts, k, c, r, s]``."""
    s, (rows, taps), tap = plan.shape, plan.shape.window.kernel, plan.padded_k
    steps = (plan.part_size, 1, rows * taps * tap, taps * tap, tap)
    return View(at, (plan.parts, s.k, s.c, rows, taps), tuple(n * plan.itemsize for n in steps), s.dtype)


def check_shapes(plan: FilterGrad, out: View, x: BlockedView | View, g: BlockedView) -> None:
    s = plan.shape
    require_whole_blocks(g)
    images = x.shape if isinstance(x, View) else (x.n, x.c, x.h, x.w)
    if s.groups != 1 or not plan.n or isinstance(x, View) != s.is_plain:
        raise ValueError(f"no gradient of filters for {plan.n} images and {s}")
    if images != (plan.n, s.c, s.h, s.w) or out.shape != (s.k, s.c, *s.window.kernel):
        raise ValueError(f"images {images} and filters {out.shape} are not those of {s}")
    if (g.n, g.c, g.h, g.w) != (plan.n, s.k, *s.result):
        raise ValueError(f"a gradient [{g.n}, {g.c}, {g.h}, {g.w}] is not that of the result of {s}")
    if isinstance(x, BlockedView):
        require_whole_blocks(x)
        if not x.covers(s.window.halo(x.h, x.w)):
            raise ValueError(f"a halo of {x.halo} is narrower than {s.window.halo(x.h, x.w)}, which the filter reads")


def divisors(n: int) -> list[int]:
    return [i for i in range(1, n + 1) if n % i == 0]
