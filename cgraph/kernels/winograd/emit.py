"""The transforms of Winograd convolution, 3 x 3 filters of stride 1, on channel-blocked images; vectors are pixels.

    V[xi, block, tile] = BT d B      M[xi] = U[xi] V[xi] by `conv.tile`      out = activation(AT M A + bias + residual)

Tiles of m x m results follow one another through rows and images. Tiles that extend beyond the image go through a copy
on the stack, so the image needs no halo and no size is special.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import banded_rows, change_if, choose, divmod_of, prefetch
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.winograd_matrices import winograd_matrices

TILES_AHEAD = 2  # prefetch distance for V and M: more streams at once than a core's prefetcher follows


@final
def input_transform(k: Builder, dtype: str, m: int, is_dilated: bool) -> None:
    """V = BT d B for tiles of m + 2 pixels. Task: one tile of one block of channels, by bands of tiles."""
    a = k.args()
    lanes, n = k.target.lanes_of(dtype), m + 2
    bt = winograd_matrices(m)[2]
    copy = k.stack_ptr(dtype, n * n * lanes)
    with banded_rows(k, a.blocks, a.count, a.band) as (_, block, t):
        image, row, column = tile_place(a, t, m, is_dilated)
        row, column = row - a.top, column - a.left
        down, across = (a.row_step, a.column_step) if is_dilated else (1, 1)
        x = a.x + (image * a.x_image + block * a.x_plane)
        after_row, after_column = row + down * (n - 1) + 1, column + across * (n - 1) + 1
        inside = (row >= a.low_row) & (after_row <= a.high_row)
        inside = inside & (column >= a.low_column) & (after_column <= a.high_column)
        with k.if_(~inside):
            copy_tile(k, a, x, (row, column), (down, across), copy, n)
        source = choose(k, inside, x + (row * a.x_row + column * lanes), copy)
        step = k.select(inside, a.x_row * down, n * lanes)
        pixel = k.select(inside, across * lanes, lanes) if is_dilated else lanes
        rows = [source + step * i for i in range(n)]
        columns = [linear(k, bt, [r.load(pixel * j, lanes) for r in rows]) for j in range(n)]
        v = a.v + (block * a.v_block + t * lanes)
        for xi in range(n * n):
            prefetch(k, v + (a.v_xi * xi + TILES_AHEAD * lanes), write=True)
        for i in range(n):
            for j, y in enumerate(linear(k, bt, [c[i] for c in columns])):
                v.store(y, a.v_xi * (i * n + j))


def tile_place(a: SimpleNamespace, t: Val, m: int, is_dilated: bool) -> tuple[Val, Val, Val]:
    """Return image, first row and first column of a tile."""
    image, rest = divmod_of(a.first + t, a.per_image)
    if not is_dilated:
        row, column = divmod_of(rest, a.across)
        return image, row * m, column * m
    phase, rest = divmod_of(rest, a.per_phase)
    row, column = divmod_of(rest, a.across)
    first_row, first_column = divmod_of(phase, a.column_step)
    return image, row * m * a.row_step + first_row, column * m * a.column_step + first_column


def copy_tile(
    k: Builder, a: SimpleNamespace, x: Ptr, first: tuple[Val, Val], steps: tuple[Any, Any], copy: Ptr, n: int
) -> None:
    """Copy the tile with zeros outside the image.

    `first`, `steps`: row and column of its first pixel, and pixels to the next one down and across.
    """
    lanes = k.target.lanes_of(x.dtype)
    zero = k.const(0, x.dtype, lanes)
    with k.loop(0, n) as i, k.loop(0, n) as j:
        p, q = first[0] + i * steps[0], first[1] + j * steps[1]
        inside = (p >= 0) & (p < a.h) & (q >= 0) & (q < a.w)
        value = (x + k.select(inside, p * a.x_row + q * lanes, 0)).load(lanes=lanes)
        copy.store(k.select(inside, value, zero), (i * n + j) * lanes)


@final
def output_transform(k: Builder, dtype: str, m: int, is_dilated: bool, program: Program) -> None:
    """out = AT M A + bias + residual, activated or given to the program.

    Task: one tile of one block of channels, by bands of tiles.
    """
    a = k.args()
    lanes, n = k.target.lanes_of(dtype), m + 2
    at = winograd_matrices(m)[0]
    copy, activation = k.stack_ptr(dtype, m * m * lanes), ActivationEmitter(k, dtype, lanes, program)
    with banded_rows(k, a.blocks, a.count, a.band) as (_, block, t):
        image, row, column = tile_place(a, t, m, is_dilated)
        down, across = (a.row_step, a.column_step) if is_dilated else (1, 1)
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
        place = TilePlace(residual, out, a.r_row * down, a.o_row * down, across * lanes)
        with k.if_else((row + down * (m - 1) < a.h) & (column + across * (m - 1) < a.w)) as (whole, cut):
            with whole:
                store_tile(k, a, sums, place, m, activation)
            with cut:
                for s, y in enumerate(sums):
                    copy.store(y, s * lanes)
                high, wide = fitting(k, a.h - row, down, m), fitting(k, a.w - column, across, m)
                with k.loop(0, high) as i, k.loop(0, wide) as j:
                    y = copy.load((i * m + j) * lanes, lanes)
                    store_tile(k, a, [y], place.moved(i, j), 1, activation)


def fitting(k: Builder, pixels: Val, step: Any, m: int) -> Val:
    """Return the results of a tile inside the image, for the number of pixels that are left; at most m."""
    return k.smaller(pixels if isinstance(step, int) else (pixels + step - 1) // step, m)


class TilePlace(NamedTuple):
    """Where a tile is stored: addresses of residual and result, and elements to the next row of each and pixel."""

    residual: Ptr
    out: Ptr
    residual_row: Val
    row: Val
    pixel: Any

    def moved(self, i: Val, j: Val) -> "TilePlace":
        """Return the same from the pixel i rows below and j pixels after."""
        residual, out = (
            self.residual + (self.residual_row * i + j * self.pixel),
            self.out + (self.row * i + j * self.pixel),
        )
        return self._replace(residual=residual, out=out)


def store_tile(
    k: Builder, a: SimpleNamespace, sums: list[Val], at: TilePlace, m: int, activation: ActivationEmitter
) -> None:
    """Store a square of m x m results with residual and activation."""
    lanes = sums[0].lanes
    each = [(i, j) for i in range(m) for j in range(m)]
    with change_if(k, a.residual != 0, sums) as s:
        terms = [(at.residual + at.residual_row * i).load(at.pixel * j, lanes) for i, j in each]
        s.next = [y + term for y, term in zip(sums, terms)]

    def put(index: int, y: Val) -> None:
        i, j = each[index]
        (at.out + at.row * i).store(y, at.pixel * j)

    activation.store(s.values, put)


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
