"""Call builders of matrix products ``out = activation(a @ b + bias)`` of any size, strides and number of matrices.

Four ways, selected by shape and strides: *dot* (one column, elements contiguous along k), *row* (one row, contiguous
columns), *simple* (integers, odd strides of the result) and *tiled*, where each side is read from panels in a workspace
or, if few results share it, in place.
Sums run over k in one order for any number of threads.
"""

from itertools import product

from cgraph.dtypes.storage import BY_CODE
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.gemm import signature
from cgraph.kernels.gemm.gemv_calls import BYTE_NS, bias_args, is_vector, vector_calls, vector_nbytes
from cgraph.kernels.gemm.pack_signature import ALONG_K, ALONG_LINES, ANY_STRIDE
from cgraph.kernels.gemm.portions import PackedB, Portions
from cgraph.kernels.kernel import Call, Pointer, View, scratch_pointer
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.target import Target
from cgraph.kernels.views.gemm_tile import GemmTile, is_near, spans
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.matrices import Matrices, Operand, each_matrices, orient
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.kernels.views.timing import tile_ns
from cgraph.late import LateModule
from cgraph.record import replace

gpu_gemm = LateModule("cgraph.kernels.gemm.gpu_calls")

NEAR = 768 << 10  # bytes of one side that stay in L2 while panels of the other pass over them, one after the other
LINE = 64  # bytes that are asked for at once
AHEAD = 6 << 10  # bytes from what a single panel of rows reads to what it prefetches
AHEAD_STORED = 8 << 10  # the same for storage dtypes


def matmul_calls(
    target: Target,
    out: View,
    a: View,
    b: View | PackedB,
    bias: View | None = None,
    activation: BoundedActivation = NONE,
    workspace: View | None = None,
    adds: bool = False,
) -> list[Call]:
    """Compute ``out[..., i, j] = activation(sum over k of a[..., i, k] * b[..., k, j] + bias[..., i, j])``

    Operands
        out, a, b: ``[..., m, n]``, ``[..., m, k]``, ``[..., k, n]`` with the batch shape of `out` (stride 0 where
            broadcast) and any strides; panels of `b` may have a storage dtype; both sides of a float32 product may be
            pairs of bfloat16 numbers, which k counts
        bias: of the shape of `out`, not in its bytes; strides of 0 spread a row over all rows
        workspace: at least `matmul_nbytes` bytes
        adds: the product is added to the contents of `out`; floats, no bias
    Raises
        ValueError: shapes disagree; bias, activation or adding with integers, or with a result of odd strides;
            the workspace is too small
    """
    packed = b if isinstance(b, PackedB) else None
    calls: list[Call] = []
    for x in all_products(out, a, b, bias):
        blocks = None
        if is_tiled(x, packed):
            blocks = in_blocks(target, gpu_gemm.product_calls, x, activation, adds, workspace)
        if blocks is not None:
            calls += blocks
        elif packed:
            calls += tiled_calls(x, packed_portions(x, packed), activation, workspace, target, adds)
        elif is_simple(x):
            calls.append(simple_call(x, activation, adds))
        elif takes_vectors(x, adds):
            calls += vector_calls(x, activation, workspace, target)
        else:
            calls += tiled_calls(x, Portions.of(x, target, adds), activation, workspace, target, adds)
    return calls


def matmul_nbytes(
    target: Target, out: View, a: View, b: View | PackedB, bias: View | None = None, adds: bool = False
) -> int:
    """Return the bytes of workspace that `matmul_calls` needs."""
    for x in all_products(out, a, b, bias):
        if isinstance(b, PackedB):
            return Portions.of_packed(x, b).nbytes
        if target.has_blocks and is_tiled(x, None):
            return gpu_gemm.product_nbytes(x)
        if is_simple(x):
            return 0
        return vector_nbytes(x) if takes_vectors(x, adds) else Portions.of(x, target, adds).nbytes
    return 0


def packed_portions(x: Matrices, packed: PackedB) -> Portions:
    """Return the portions of a product with a packed constant. ValueError for a result of another layout."""
    if is_simple(x):
        raise ValueError(
            f"a packed constant needs a float result with contiguous rows, not dtype {x.dtype} with column "
            f"stride {x.out.column}. Pass b unpacked"
        )
    return Portions.of_packed(x, packed)


def all_products(out: View, a: View, b: View | PackedB, bias: View | None) -> list[Matrices]:
    """Return the groups of products, after a check of the shapes."""
    (m, n), k, batch = out.shape[-2:], a.shape[-1], out.shape[:-2]
    is_packed = isinstance(b, PackedB)
    if isinstance(b, PackedB):
        spread = (0,) * len(batch)
        size = int(b.dtype[1:])
        b = View(b.at, (*batch, b.k, b.n), (*spread, b.n * size, size), b.dtype)
    if (a.shape, b.shape) != ((*batch, m, k), (*batch, k, n)):
        raise ValueError(
            f"a {a.shape} @ b {b.shape} does not give out {out.shape}; inner dimensions or batch shapes differ"
        )
    if bias is not None and bias.shape != out.shape:
        raise ValueError(f"bias has shape {bias.shape}, the product {out.shape}")
    products = each_matrices(out, a, b, bias)
    return list(products) if is_packed else [orient(x) for x in products]


def takes_bias(out: View, a: View, b: View | PackedB, bias: View) -> bool:
    """Return True if the kernels can add this bias: floats, with contiguous rows in both result and bias."""
    return not any(is_simple(x) for x in all_products(out, a, b, bias))


def is_simple(x: Matrices) -> bool:
    odd = x.n > 1 and (x.out.column != 1 or (x.bias is not None and x.bias.column != 1))
    return x.dtype[0] != "f" or odd


def takes_vectors(x: Matrices, adds: bool) -> bool:
    """Return True for the kernels of one row or column, which do not add and have no pairs."""
    return is_vector(x) and not adds and x.b.dtype != PAIRS


def is_tiled(x: Matrices, packed: PackedB | None) -> bool:
    """Return True if blocks of threads can multiply it: 4- or 8-byte numbers with a nonempty sum, any strides."""
    return x.dtype in ("f4", "f8", "i4", "i8", "u4", "u8") and x.k > 0 and packed is None


def tiled_calls(
    x: Matrices,
    portions: Portions,
    activation: BoundedActivation,
    workspace: View | None,
    target: Target,
    adds: bool,
) -> list[Call]:
    """Return calls that pack and multiply portion by portion; portions of one sum are consecutive, in order of k."""
    panels = scratch_pointer(workspace, portions.nbytes) if portions.nbytes else x.out.at
    calls = []
    outer = product(spans(x.count, portions.count), spans(x.k, portions.k), spans(x.n, portions.n))
    for (first, count), (k0, k), (j0, n) in outer:
        b = x.b.moved(first, k0, j0)
        if portions.packed:
            b = in_panels(portions.packed.at + k0 * portions.packed.padded * b.itemsize, 0, b)
        elif portions.b_nbytes:
            b, call = packed_side(b.transposed, panels + portions.a_nbytes, count, n, k, portions.tile.width)
            calls.append(call)
        for i0, m in spans(x.m, portions.m):
            a = x.a.moved(first, i0, k0)
            if portions.a_nbytes:
                a, call = packed_side(a, panels, count, m, k, portions.tile.rows)
                calls.append(call)
            out, is_later = x.out.moved(first, i0, j0), adds or k0 > 0
            bias = x.bias.moved(first, i0, j0) if x.bias and not is_later else None
            part = replace(x, count=count, m=m, n=n, k=k, a=a, b=b, out=out, bias=bias)
            calls.append(tile_call(part, portions, is_later, activation if k0 + k == x.k else NONE, target))
    return calls


def tile_call(p: Matrices, portions: Portions, adds: bool, activation: BoundedActivation, target: Target) -> Call:
    """Return the call that multiplies one portion; its sides are packed as `portions` says."""
    tile, out = portions.tile, p.out
    a_is_packed, b_is_packed = bool(portions.a_nbytes), bool(portions.b_nbytes or portions.packed)
    if not a_is_packed:  # a tile reads all of its rows
        tile = replace(tile, rows=max(min(tile.rows, p.m), 1))
    overlaps = not b_is_packed and p.n >= tile.width  # a sum of no terms needs no panels of fewer columns
    row_panels, column_panels = -(-p.m // tile.rows), -(-p.n // tile.width)
    is_constant = portions.packed is not None  # so it is read from memory
    by_row = p.k * p.n * out.itemsize <= NEAR and not (is_constant and p.m * p.k * p.a.itemsize <= NEAR)
    is_awaited = is_constant and not by_row and is_near(p.m, p.k, p.dtype) and target.code != "ptx"
    share = share_of(tile, p.k, row_panels, a_is_packed) if is_awaited else 0
    early = tile.width * p.k if row_panels > 1 else (AHEAD_STORED if p.b.dtype in BY_CODE else AHEAD) // p.b.itemsize
    outer, inner = (row_panels, column_panels) if by_row else (column_panels, row_panels)
    tasks = p.count * row_panels * column_panels
    nbytes = tile.width * p.k * p.b.itemsize / row_panels  # weights that a task reads first
    chunk = chunk_of(tasks, max(tile_ns(target, tile.rows * tile.vectors * p.k), nbytes * BYTE_NS))
    return signature.TILE.call(
        (p.dtype, tile.rows, tile.vectors, a_is_packed, p.b.dtype, lines_of(share, p.b)), tasks, chunk,
        m=p.m, n=p.n, k=p.k,
        a=p.a.at, a_batch=p.a.batch, a_panel=tile.rows * (p.k if a_is_packed else p.a.row), a_row=p.a.row,
        b=p.b.at, b_batch=p.b.batch, b_panel=tile.width * (p.k if b_is_packed else 1),
        b_step=tile.width if b_is_packed else p.b.row, early=early, share=share,
        **bias_args(p.bias), out=out.at, o_batch=out.batch, o_row=out.row,
        add=int(adds), overlap=int(overlaps), outer=outer, inner=inner, by_row=int(by_row),
        **activation.args,
    )  # fmt: skip


def share_of(tile: GemmTile, k: int, row_panels: int, a_is_packed: bool) -> int:
    """Return the elements of `b` that a round prefetches: all rows of the next panel evenly, a single row at reading
    pace.
    """
    unroll = signature.unroll(a_is_packed)
    if row_panels == 1:
        return unroll * tile.width
    rounds = k // unroll * row_panels
    return -(-tile.width * k // rounds) if rounds else 0


def lines_of(elements: int, b: Operand) -> int:
    """Return the cache lines of `elements` elements, rounded to a power of two so that few kernels differ."""
    lines = -(-elements * b.itemsize // LINE)
    return 1 << (lines - 1).bit_length() if lines else 0


def packed_side(x: Operand, to: Pointer, count: int, lines: int, k: int, width: int) -> tuple[Operand, Call]:
    """Return panels of `width` rows of `x` at `to`, and the call that writes them; equal matrices are packed once."""
    panels = -(-lines // width)
    batch = panels * width * k if x.batch else 0
    family = ALONG_K if x.column == 1 else ALONG_LINES if x.row == 1 else ANY_STRIDE
    tasks = panels * (count if x.batch else 1)
    call = family.call(
        (x.dtype, width), tasks, chunk_of(tasks, k * width * 0.3),
        lines=lines, k=k, x=x.at, x_batch=x.batch, line=x.row, step=x.column, out=to, o_batch=batch, panels=panels,
    )  # fmt: skip
    return in_panels(to, batch, x), call


def in_panels(at: Pointer, batch: int, x: Operand) -> Operand:
    return Operand(at, batch, 0, 0, x.dtype)


def simple_call(x: Matrices, activation: BoundedActivation, adds: bool) -> Call:
    if x.bias or activation != NONE or adds:
        raise ValueError("bias, activation and adding need floats and a result whose rows lie side by side")
    tasks = x.count * x.m
    return signature.SIMPLE.call(
        (x.dtype,), tasks, chunk_of(tasks, x.n * x.k * 1.0),
        m=x.m, n=x.n, k=x.k,
        a=x.a.at, a_batch=x.a.batch, a_row=x.a.row, a_step=x.a.column,
        b=x.b.at, b_batch=x.b.batch, b_step=x.b.row, b_column=x.b.column,
        out=x.out.at, o_batch=x.out.batch, o_row=x.out.row, o_column=x.out.column,
    )  # fmt: skip
