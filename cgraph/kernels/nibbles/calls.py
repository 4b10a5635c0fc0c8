"""Calls of products with a matrix of 4-bit numbers."""

from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, scratch_pointer
from cgraph.kernels.move.calls import copy_calls, fill_calls
from cgraph.kernels.nibbles.signature import FLOATS, TILE
from cgraph.kernels.target import Target
from cgraph.kernels.views.gemm_tile import spans
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.timing import tile_ns
from cgraph.system.alignment import aligned

ROWS, COLUMNS = 4, 4  # of a tile whose sums stay in registers
MANY = 16  # rows from which columns are widened once, and multiplied as floats
PORTION = 4 << 20  # bytes of such columns at a time


def nibbles_nbytes(target: Target, m: int, n: int, blocks: int, block: int) -> int:
    """Return the bytes of the left side with even and odd elements apart, and of some columns as floats."""
    if m < MANY or not blocks:
        return left_nbytes(m, blocks * block)
    count = portion_of(n, blocks * block)
    products = floats_of(Pointer(None), m, n, blocks * block)
    return left_nbytes(m, blocks * block) + aligned(4 * count * blocks * block) + matmul_nbytes(target, *products)


def left_nbytes(m: int, k: int) -> int:
    return aligned(4 * m * k)


def portion_of(n: int, k: int) -> int:
    """Return the columns that are widened at one time."""
    return max(1, min(n, PORTION // (4 * k)))


def floats_of(at: Pointer, m: int, n: int, k: int) -> tuple[View, View, View]:
    """Return a product of the first portion of `n` columns: the left side at `at`, the right one after it."""
    count = portion_of(n, k)
    right = contiguous(at + left_nbytes(m, k), (count, k), "f4")
    out = columns_of(contiguous(Pointer(None), (m, n), "f4"), 0, count)
    return out, contiguous(at, (m, k), "f4"), transpose(right)


def nibbles_calls(
    target: Target, out: View, x: View, y: View, scales: View, zeros: View, workspace: View | None
) -> list[Call]:
    """Compute ``out = x @ dequantized(y)``.

    Operands
        out, x: floats ``[m, n]``, contiguous, and ``[m, k]`` of any strides
        y: bytes ``[n, blocks, block / 2]``; scales: float32, zeros: bytes ``[n, blocks]``; contiguous
        workspace: at least `nibbles_nbytes` bytes
    """
    (m, n), k, (_, blocks, half) = out.shape, x.shape[1], y.shape
    if not blocks:
        return fill_calls(target, out, 0.0)
    if not (m and n):
        return []
    at, wide = scratch_pointer(workspace, nibbles_nbytes(target, m, n, blocks, 2 * half)), blocks * half
    apart = contiguous(at, (m, 2 * wide), "f4")
    calls: list[Call] = []
    for odd in (0, 1):
        there = (k - odd + 1) // 2
        calls += copy_calls(target, columns_of(apart, odd * wide, there), columns_of(x, odd, there, 2))
        calls += fill_calls(target, columns_of(apart, odd * wide + there, wide - there), 0.0)
    if m >= MANY:
        return calls + product_calls(target, out, apart, (y, scales, zeros), workspace)
    rows, columns = (1, COLUMNS) if m == 1 else (ROWS, 1)
    tasks, lanes = -(-n // columns), lanes_of(target, half)
    chunk = chunk_of(tasks, tile_ns(target, m * columns * 2 * wide // lanes))
    call = TILE.call(
        (rows, columns, 2 * half, lanes), tasks, chunk,
        m=m, n=n, blocks=blocks, x=apart.at, x_row=2 * wide, half=wide,
        y=y.at, scales=scales.at, zeros=zeros.at, out=out.at,
    )  # fmt: skip
    return [*calls, call]


def product_calls(
    target: Target, out: View, left: View, right: tuple[View, View, View], workspace: View | None
) -> list[Call]:
    """Return calls that widen the columns portion by portion and multiply each portion as floats."""
    (m, n), (y, scales, zeros), k = out.shape, right, left.shape[1]
    _, blocks, half = y.shape
    lanes, calls = lanes_of(target, half), []
    _, _, columns = floats_of(left.at, m, n, k)
    begun = left_nbytes(m, k) + aligned(4 * columns.size)
    assert workspace is not None
    for first, count in spans(n, columns.shape[1]):
        calls.append(
            FLOATS.call(
                (2 * half, lanes), count, chunk_of(count, k / lanes),
                blocks=blocks, y=y.at + first * y.strides[0], scales=scales.at + first * scales.strides[0],
                zeros=zeros.at + first * zeros.strides[0], out=columns.at,
            )
        )  # fmt: skip
        part = transpose(contiguous(columns.at, (count, k), "f4"))
        rest = contiguous(left.at + begun, (workspace.size * workspace.itemsize - begun,), "u1")
        calls += matmul_calls(target, columns_of(out, first, count), left, part, workspace=rest)
    return calls


def lanes_of(target: Target, half: int) -> int:
    """Return the bytes of a vector of two numbers each: as many as floats, at most those of a block."""
    return min(target.lanes_of("f4"), half)


def transpose(x: View) -> View:
    """Return a matrix transposed."""
    return View(x.at, x.shape[::-1], x.strides[::-1], x.dtype)


def columns_of(x: View, first: int, count: int, step: int = 1) -> View:
    """Return some columns of a matrix."""
    rows, column = x.strides
    return View(x.at + first * column, (x.shape[0], count), (rows, step * column), x.dtype)
