"""The transforms of Winograd convolution, 3 x 3 filters of stride 1, on channel-blocked images; vectors are pixels.

    V[xi, block, tile] = BT d B      M[xi] = U[xi] V[xi] by `conv.tile`      out = activation(AT M A + bias + residual)

Tiles of m x m results follow one another through rows and images. Tiles that extend beyond the image go through a copy
on the stack, so the image needs no halo and no size is special.
"""

from types import SimpleNamespace

import numpy as np

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import banded_rows, change_if, choose, divmod_of, prefetch
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.winograd_matrices import winograd_matrices

TILES_AHEAD = 2  # prefetch distance for V and M: more streams at once than a core's prefetcher follows


@final
def input_transform(k: Builder, dtype: str, m: int) -> None:
    """V = BT d B for tiles of m + 2 pixels. Task: one tile of one block of channels, by bands of tiles."""
    a = k.args()
    lanes, n = k.target.lanes_of(dtype), m + 2
    bt = winograd_matrices(m)[2]
    copy = k.stack_ptr(dtype, n * n * lanes)
    with banded_rows(k, a.blocks, a.count, a.band) as (_, block, t):
        image, row, column = tile_place(a, t, m)
        row, column = row - a.top, column - a.left
        x = a.x + (image * a.x_image + block * a.x_plane)
        inside = (row >= a.low_row) & (row + n <= a.high_row) & (column >= a.low_column) & (column + n <= a.high_column)
        with k.if_(~inside):
            copy_tile(k, a, x, row, column, copy, n)
        source = choose(k, inside, x + (row * a.x_row + column * lanes), copy)
        step = k.select(inside, a.x_row, n * lanes)
        rows = [source + step * i for i in range(n)]
        columns = [linear(k, bt, [r.load(j * lanes, lanes) for r in rows]) for j in range(n)]
        v = a.v + (block * a.v_block + t * lanes)
        for xi in range(n * n):
            prefetch(k, v + (a.v_xi * xi + TILES_AHEAD * lanes), write=True)
        for i in range(n):
            for j, y in enumerate(linear(k, bt, [c[i] for c in columns])):
                v.store(y, a.v_xi * (i * n + j))


def tile_place(a: SimpleNamespace, t: Val, m: int) -> tuple[Val, Val, Val]:
    """Return image, first row and first column of a tile."""
    image, rest = divmod_of(a.first + t, a.per_image)
    row, column = divmod_of(rest, a.across)
    return image, row * m, column * m


def copy_tile(k: Builder, a: SimpleNamespace, x: Ptr, row: Val, column: Val, copy: Ptr, n: int) -> None:
    """Copy the tile with zeros outside the image."""
    lanes = k.target.lanes_of(x.dtype)
    zero = k.const(0, x.dtype, lanes)
    with k.loop(0, n) as i, k.loop(0, n) as j:
        p, q = row + i, column + j
        inside = (p >= 0) & (p < a.h) & (q >= 0) & (q < a.w)
        value = (x + k.select(inside, p * a.x_row + q * lanes, 0)).load(lanes=lanes)
        copy.store(k.select(inside, value, zero), (i * n + j) * lanes)


@final
def output_transform(k: Builder, dtype: str, m: int) -> None:
    """out = AT M A + bias + residual, activated. Task: one tile of one block of channels, by bands of tiles."""
    a = k.args()
    lanes, n = k.target.lanes_of(dtype), m + 2
    at = winograd_matrices(m)[0]
    copy = k.stack_ptr(dtype, m * m * lanes)
    with banded_rows(k, a.blocks, a.count, a.band) as (_, block, t):
        image, row, column = tile_place(a, t, m)
        source = a.products + (block * a.p_block + t * lanes)
        for xi in range(n * n):
            prefetch(k, source + (a.p_xi * xi + TILES_AHEAD * lanes))
        loads = [[(source + a.p_xi * (i * n + j)).load(lanes=lanes) for i in range(n)] for j in range(n)]
        columns = [linear(k, at, column_of) for column_of in loads]
        bias = a.bias.load(block * lanes, lanes)
        sums = [y + bias for i in range(m) for y in linear(k, at, [c[i] for c in columns])]
        pixel = column * lanes
        out = a.out + (image * a.o_image + block * a.o_plane + row * a.o_row + pixel)
        residual = k.pointer(a.residual, dtype) + (image * a.r_image + block * a.r_plane + row * a.r_row + pixel)
        with k.if_else((row + m <= a.h) & (column + m <= a.w)) as (whole, cut):
            with whole:
                store_tile(k, a, sums, residual, out, m)
            with cut:
                for s, y in enumerate(sums):
                    copy.store(y, s * lanes)
                with k.loop(0, k.smaller(a.h - row, m)) as i, k.loop(0, k.smaller(a.w - column, m)) as j:
                    y = copy.load((i * m + j) * lanes, lanes)
                    store_tile(k, a, [y], residual + (i * a.r_row + j * lanes), out + (i * a.o_row + j * lanes), 1)


def store_tile(k: Builder, a: SimpleNamespace, sums: list[Val], residual: Ptr, out: Ptr, m: int) -> None:
    """Store a square of m x m results with residual and activation."""
    lanes = sums[0].lanes
    each = [(i, j) for i in range(m) for j in range(m)]
    with change_if(k, a.residual != 0, sums) as s:
        terms = [(residual + a.r_row * i).load(j * lanes, lanes) for i, j in each]
        s.next = [y + term for y, term in zip(sums, terms)]

    def put(index: int, y: Val) -> None:
        i, j = each[index]
        (out + a.o_row * i).store(y, j * lanes)

    ActivationEmitter(k, out.dtype, lanes).store(s.values, put)


def linear(k: Builder, matrix: np.ndarray, xs: list[Val]) -> list[Val]:
    """Return ``matrix @ xs`` with few operations: columns that differ in signs share a sum and a difference; so do
    rows.
    """
    matrix, xs = pair_columns(matrix, xs)
    sums: list[Val] = []
    while len(sums) < len(matrix):
        row = matrix[len(sums)]
        twin = matrix[len(sums) + 1] if len(sums) + 1 < len(matrix) else None
        if twin is not None and are_twins(row, twin):
            same = combine(k, np.where(row == twin, row, 0.0), xs)
            other = combine(k, np.where(row == twin, 0.0, row), xs)
            sums += [same + other, same - other]
        else:
            sums.append(combine(k, row, xs))
    return sums


def pair_columns(matrix: np.ndarray, xs: list[Val]) -> tuple[np.ndarray, list[Val]]:
    """Replace neighbouring columns of equal size by those of the sum and the difference of their values."""
    columns, values = list(matrix.T), list(xs)
    for j in range(len(columns) - 1):
        x, y = columns[j], columns[j + 1]
        if are_twins(x, y):
            columns[j], columns[j + 1] = np.where(x == y, x, 0.0), np.where(x == y, 0.0, x)
            values[j], values[j + 1] = values[j] + values[j + 1], values[j] - values[j + 1]
    return np.array(columns).T, values


def are_twins(x: np.ndarray, y: np.ndarray) -> bool:
    """Return True if two rows are equal in size, with some signs equal and some not."""
    used = x != 0
    return np.array_equal(np.abs(x), np.abs(y)) and len(set(np.sign(x[used] * y[used]))) == 2


def combine(k: Builder, row: np.ndarray, xs: list[Val]) -> Val:
    """Return ``sum of row[j] * xs[j]``; factors of 1 and -1 cost no multiplication."""
    terms = sorted(((c, x) for c, x in zip(row, xs) if c), key=lambda term: term[0] != 1)
    (factor, x), *rest = terms
    total = x if factor == 1 else -x if factor == -1 else x * float(factor)
    for factor, x in rest:
        if abs(factor) == 1:
            total = total + x if factor == 1 else total - x
        else:
            total = k.fma(x, k.const(factor, x.dtype, x.lanes), total)
    return total
