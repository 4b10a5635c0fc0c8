"""Direct convolution on channel-blocked activations, and all matrix products with its layout (Winograd's, fully
connected).

The reduction runs over a table of offsets, one entry per `unroll` input channels of one filter tap: an implicit im2col
that handles any filter size, stride, dilation and groups with one code path. Weights are read in sequence.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import change_if, choose, divmod_of, each_task, fold, prefetch
from cgraph.kernels.llvm.multiply import first_sums, multiply_add
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.pairs.emit import add_pairs
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.record import Record, replace


class Tile(Record):
    """The params of `tile`.

    Fields
        dtype: of all values
        pixels, vectors: neighbouring pixels and blocks of channels whose sums are in registers
        unroll: input channels of one step
        x_step, out_step: elements from one pixel of the tile to the next
        ahead: cache lines of the next panel of weights prefetched in each step, 0 if they are cached
        touch: prefetch the lines of `out` and `residual` before the reduction, which is too short to hide their misses
        early: steps between the prefetch of a pixel's line and its read, 0 if it is in L1
        weights_dtype: dtype of the weights in memory; for pairs of bfloat16 numbers the images are pairs as well
        chain: steps whose sums are added to totals in memory, so that rounding errors stay small; 0 for all steps
        is_mixed: the panels after the first `wide` have one block fewer
        program: applied before storing, () for an activation with bounds and slope
    """

    dtype: str
    pixels: int
    vectors: int
    unroll: int
    x_step: int
    out_step: int
    ahead: int
    touch: bool
    early: int
    weights_dtype: str
    chain: int
    is_mixed: bool
    program: Program

    @property
    def is_clipped(self) -> bool:
        """True if a table names the step of the packed filters of each step."""
        return False

    @property
    def line(self) -> int:
        """Elements in a cache line of 64 bytes."""
        return 64 // int(self.dtype[1:])

    @property
    def weights_line(self) -> int:
        """Weights in a cache line."""
        return 64 // int(self.weights_dtype[1:])

    @property
    def sums(self) -> list[tuple[int, int]]:
        """(pixel, vector) of each sum."""
        return [(q, v) for q in range(self.pixels) for v in range(self.vectors)]


@final
def tile(k: Builder, *params) -> None:
    """``out[v, q] = activation(bias[v] + residual[v, q] + sum over steps, u of x[q, step + u] * w[step, u, v])``

    Task: one tile of `pixels` neighbouring pixels of a row and `vectors` blocks of channels; the order of tasks is
    image, block of tiles, panel, tile, or with image and block exchanged. The last tile of a row ends with the row and
    repeats pixels of its neighbour.
    """
    tiles(k, Tile(*params))


def tiles(k: Builder, p: Tile) -> None:
    """Emit the tiles of the tasks."""
    a = k.args()
    with each_tile(k, a, p.pixels) as at:
        narrow = k.larger(at.panel - a.wide, 0) if p.is_mixed else 0  # narrow panels before this one
        at.block, at.w = at.panel * p.vectors - narrow, at.panel * a.w_panel - a.w_block * narrow
        if not p.is_mixed:
            one_tile(k, p, a, at)
            return
        with k.if_else(at.panel < a.wide) as (of_wide, of_narrow):
            with of_wide:
                one_tile(k, p, a, at)
            with of_narrow:
                one_tile(k, replace(p, vectors=p.vectors - 1), a, at)


@contextmanager
def each_tile(k: Builder, a: SimpleNamespace, pixels: int) -> Iterator[SimpleNamespace]:
    """Yield the position of each task's tile: image, panel, number `t` in its block, row, and column of its first
    pixel.
    """
    with each_task(k, a.turns, a.panels, a.block) as (outer, inner, panel, t):
        by_block = a.by_block != 0
        image, start = k.select(by_block, inner, outer), k.select(by_block, outer, inner)
        with k.if_(start * a.block + t < a.tiles):
            row, column = divmod_of(start * a.block + t, a.across)
            column = k.smaller(column * pixels, a.columns - pixels)
            yield SimpleNamespace(image=image, panel=panel, t=t, row=row, column=column)


def one_tile(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> None:
    """Emit the sums of the tile `at`, with residual and activation, and store them."""
    x = a.x + (at.image * a.x_image + a.panel_offsets.load(at.panel) + at.row * a.x_row + at.column * p.x_step)
    w = a.w + (at.image * a.w_image + at.w)
    pixel = at.column * p.out_step
    out = a.out + (at.image * a.o_image + at.block * a.o_plane + at.row * a.o_row + pixel)
    r_offset = at.image * a.r_image + at.block * a.r_plane + at.row * a.r_row + pixel
    residual = k.pointer(a.residual, p.dtype) + r_offset
    if p.touch:  # never at an address near 0, which has no page: that costs more than the miss
        first = choose(k, a.residual != 0, residual, out)
        for q, v in p.sums:
            prefetch(k, first + (a.r_plane * v + q * p.out_step))
    beyond = w + next_panel_share(k, a, at.t, p.ahead * p.weights_line) if p.ahead else w
    sums = reduce_steps(k, p, a, x, w, beyond, at.block)
    with change_if(k, a.residual != 0, sums) as s:
        terms = [(residual + (a.r_plane * v + q * p.out_step)).load(lanes=y.lanes) for y, (q, v) in zip(sums, p.sums)]
        s.next = [y + term for y, term in zip(sums, terms)]

    def put(i: int, y: Val) -> None:
        q, v = p.sums[i]
        (out + (a.o_plane * v + q * p.out_step)).store(y)

    ActivationEmitter(k, p.dtype, k.target.lanes_of(p.dtype), p.program).store(s.values, put)


def reduce_steps(k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, w: Ptr, beyond: Ptr, block: Val) -> list[Val]:
    """Return the sums of one tile over all steps of the offset table."""
    lanes = k.target.lanes_of(p.dtype)
    bias = a.bias + block * lanes
    sums = first_sums([bias.load(v * lanes, lanes) for v in range(p.vectors)], p.pixels)
    if not p.chain:
        return add_steps(k, p, a, x, (k.const(0, "i8"), a.steps), [w, beyond], sums)[2]
    totals, zero = k.stack_ptr(p.dtype, lanes * len(sums)), k.const(0.0, p.dtype, lanes)
    for i, y in enumerate(sums):
        totals.store(y, i * lanes)
    with fold(k, 0, a.steps, [w, beyond], p.chain) as s:
        span = s.i, k.smaller(s.i + p.chain, a.steps)
        *s.next, sums = add_steps(k, p, a, x, span, s.values, [zero for _ in sums])
        for i, y in enumerate(sums):
            totals.store(totals.load(i * lanes, lanes) + y, i * lanes)
    return [totals.load(i * lanes, lanes) for i in range(len(sums))]


def add_steps(
    k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, span: tuple[Val, Val], places: list[Ptr], first: list[Val]
) -> tuple[Ptr, Ptr, list[Val]]:
    """Return the `places` of the weights and of the next panel, and the sums, after the steps of `span`."""
    lanes = k.target.lanes_of(p.dtype)
    add = add_pairs if p.weights_dtype == PAIRS else multiply_add
    with fold(k, *span, [*places, *first]) as s:
        w, beyond, *sums = s.values
        step = p.unroll * p.vectors * lanes
        w = places[0] + a.picks.load(s.i) * step if p.is_clipped else w
        at = (x + a.offsets.load(s.i)).as_dtype(PAIRS if p.weights_dtype == PAIRS else p.dtype)
        if p.early:
            prefetch_early(k, p, x + a.offsets.load(s.i + p.early), s.i)
        for i in range(p.ahead):
            prefetch(k, beyond + i * p.weights_line)
        for u in range(p.unroll):
            weights = [w.load((u * p.vectors + v) * lanes, lanes) for v in range(p.vectors)]
            sums = add(k, sums, [at.load(q * p.x_step + u) for q in range(p.pixels)], weights)
        s.next = [places[0] if p.is_clipped else w + step, beyond + p.ahead * p.weights_line, *sums]
    w, beyond, *sums = s.values
    return w, beyond, sums


def prefetch_early(k: Builder, p: Tile, x: Ptr, step: Val) -> None:
    """Prefetch the lines of a later step's pixels: steps that read one block of channels share them."""
    apart = max(p.line // p.x_step, 1)  # pixels from one line to the next
    turns = max(k.target.lanes_of(p.dtype) // p.unroll, 1)
    share = -(-p.pixels // (apart * turns))
    first = x + (step & (turns - 1)) * (share * apart * p.x_step)
    for i in range(share):
        prefetch(k, first + i * apart * p.x_step)


def next_panel_share(k: Builder, a: SimpleNamespace, t: Val, elements: int) -> Val:
    """Return the beginning of tile `t`'s share of the next panel to prefetch; the present panel if it is the last."""
    share = t * a.steps * elements
    return k.select(share < a.w_panel, a.w_panel + share, 0)
