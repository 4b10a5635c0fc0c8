"""Direct convolution on blocked activations, and every GEMM that has its layout (Winograd's, fully connected).

The reduction runs over a table of offsets, one entry per `unroll` input channels of one filter tap: an implicit im2col
that serves any filter size, stride, dilation and group with one code path. Weights stream in sequence.
"""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.compile import final
from cgraph.kernels.llvm.epilogue import ACTIVATION_ARGS, Activation
from cgraph.kernels.llvm.flow import changed_if, fold, prefetch
from cgraph.kernels.llvm.multiply import first_sums, multiply_add

TILE_ARGS = {
    # offsets: elements from a pixel to its `unroll` operands; panel_offsets: from the image to a panel's channels
    "offsets": "i8*", "steps": "i8", "panel_offsets": "i8*",
    "x": "T*", "x_image": "i8", "x_row": "i8",
    "w": "T*", "w_image": "i8", "w_panel": "i8", "bias": "T*",
    "residual": "i8", "r_image": "i8", "r_plane": "i8", "r_row": "i8",
    "out": "T*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
    # the grid: rows x columns pixels in `across` tiles a row, `tiles` in all, in blocks of `block`; panels of channels
    "columns": "i8", "across": "i8", "tiles": "i8", "block": "i8", "panels": "i8",
}  # fmt: skip


@final
def tile(k: Builder, dtype: str, pixels: int, vectors: int, unroll: int, x_step: int, out_step: int, ahead: int, touch: bool):  # fmt: skip
    """``out[v, q] = activation(bias[v] + residual[v, q] + sum over steps, u of x[q, step + u] * w[step, u, v])``

    Task: one tile of `pixels` neighbouring pixels of a row and `vectors` blocks of channels; the order of tasks is
    image, block of tiles, panel, tile. The last tile of a row ends with the row and repeats pixels of its neighbour.
    Params
        x_step, out_step: elements from one pixel of the tile to the next
        ahead: cache lines of the next panel of weights asked for in each step, 0 when they lie near
        touch: ask for the lines of `out` and `residual` before the reduction, which is too short to hide them
    """
    lanes = k.target.lanes_of(dtype)
    a = k.args(**{n: kind.replace("T", dtype) for n, kind in (TILE_ARGS | ACTIVATION_ARGS).items()})
    activation = Activation(k, len(TILE_ARGS), dtype, lanes)
    blocks = (a.tiles + (a.block - 1)) // a.block
    per_image = blocks * a.block * a.panels
    first, last = k.tasks()
    with k.loop(first, last) as task:
        image, rest = task // per_image, task % per_image
        start = rest // (a.block * a.panels) * a.block
        rest = rest % (a.block * a.panels)
        panel, t = rest // a.block, start + rest % a.block
        with k.if_(t < a.tiles):
            row = t // a.across
            column = k.smaller(t % a.across * pixels, a.columns - pixels)
            x = a.x + (image * a.x_image + a.panel_offsets.load(panel) + row * a.x_row + column * x_step)
            w = a.w + (image * a.w_image + panel * a.w_panel)
            out = a.out + (image * a.o_image + panel * vectors * a.o_plane + row * a.o_row + column * out_step)
            r_at = image * a.r_image + panel * vectors * a.r_plane + row * a.r_row + column * out_step
            residual = k.pointer(a.residual, dtype) + r_at

            def put(base, plane, q, v):
                return base + (plane * v + q * out_step)

            each = [(q, v) for q in range(pixels) for v in range(vectors)]
            if touch:
                for q, v in each:
                    prefetch(k, put(residual, a.r_plane, q, v))
            beyond = w + next_panel_share(k, a, t - start, ahead * line(dtype)) if ahead else w
            sums = reduce_steps(k, a, x, w, beyond, a.bias + panel * (vectors * lanes), pixels, vectors, unroll, x_step, ahead)  # fmt: skip
            with changed_if(k, a.residual != 0, sums) as s:
                s.next = [y + put(residual, a.r_plane, *at).load(lanes=lanes) for y, at in zip(sums, each)]
            activation.store(s.values, lambda i, y: put(out, a.o_plane, *each[i]).store(y))


def reduce_steps(k, a, x, w, beyond, bias, pixels, vectors, unroll, x_step, ahead):
    """The sums of one tile over all steps of the offset table."""
    lanes = k.target.lanes_of(x.dtype)
    sums = first_sums([bias.load(v * lanes, lanes) for v in range(vectors)], pixels)
    with fold(k, 0, a.steps, [w, beyond, *sums]) as s:
        w, beyond, *sums = s.values
        at = x + a.offsets.load(s.i)
        for i in range(ahead):
            prefetch(k, beyond + i * line(x.dtype), locality=2)
        for u in range(unroll):
            weights = [w.load((u * vectors + v) * lanes, lanes) for v in range(vectors)]
            sums = multiply_add(k, sums, [at.load(q * x_step + u) for q in range(pixels)], weights)
        s.next = [w + unroll * vectors * lanes, beyond + ahead * line(x.dtype), *sums]
    return s.values[2:]


def next_panel_share(k, a, t, elements):
    """Where tile `t` begins to ask for its share of the next panel; the present panel when there is none left."""
    share = t * a.steps * elements
    return k.select(share < a.w_panel, a.w_panel + share, 0)


def line(dtype: str) -> int:
    """Elements in a cache line of 64 bytes."""
    return 64 // int(dtype[1:])
