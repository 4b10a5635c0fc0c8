"""Division of matrix products into portions that fit into caches, and constants packed once."""

from collections.abc import Callable, Sequence
from math import gcd

import numpy as np

from cgraph.kernels.kernel import LINE, Pointer
from cgraph.kernels.mapped import PIECE, copy_to
from cgraph.kernels.target import Target
from cgraph.kernels.views.gemm_tile import (
    PORTION_A,
    PORTION_B,
    PORTION_K,
    GemmTile,
    evenly,
    gemm_tile,
    is_near,
    spans,
)
from cgraph.kernels.views.matrices import Matrices
from cgraph.record import Record
from cgraph.system.alignment import aligned, aligned_zeros, round_up

FEW_ROWS = 32  # b is read in place if no more rows of the result share it: 1.03 to 1.35 times as fast;
DIRECT_ROWS = 128  # or if no more do and L2 keeps its panels meanwhile
NEAR_WAY, NEAR_PANEL = 64 << 10, 512 << 10  # bytes after which addresses repeat their place in L2; of half of L2
DIRECT_COLUMNS = 128  # a is read in place if no more columns of the result share it


class PackedB(Record):
    """A constant ``[k, n]`` in panels, as `pack_b` writes it: portions of k, with panels of columns in each portion."""

    at: Pointer
    k: int
    n: int
    tile: GemmTile
    dtype: str = "f4"  # dtype in memory

    @property
    def padded(self) -> int:
        """Columns, rounded up to whole panels."""
        return round_up(self.n, self.tile.width)

    @property
    def nbytes(self) -> int:
        return self.k * self.padded * int(self.dtype[1:])


class Portions(Record):
    """The division of a product, and the sides that are packed.

    Fields
        tile: sums in registers
        m, n, k: rows, columns and depth of a portion
        count: matrices at once
        a_nbytes, b_nbytes: scratch for panels of each side; 0 if it is read in place
        packed: `b` is packed once
    """

    tile: GemmTile
    m: int
    n: int
    k: int
    count: int
    a_nbytes: int
    b_nbytes: int
    packed: PackedB | None = None

    @property
    def nbytes(self) -> int:
        return self.a_nbytes + self.b_nbytes

    @staticmethod
    def of(x: Matrices, target: Target, adds: bool = False) -> "Portions":
        """Return the portions of a product; panels of `b` that overlap would add some columns twice."""
        tile = gemm_tile(x.m, x.n, x.k, x.dtype, target)
        pack_b = adds or x.b.column != 1 or x.n < tile.width or x.m > direct_rows(x.b.row * x.b.itemsize, x.k)
        k = evenly(x.k, PORTION_K, 1) if pack_b else x.k
        n = evenly(x.n, PORTION_B // max(k, 1), tile.width) if pack_b else x.n
        return Portions.sized(x, tile, n, k, pack_b)

    @staticmethod
    def of_packed(x: Matrices, b: PackedB) -> "Portions":
        return Portions.sized(x, b.tile, x.n, evenly(x.k, PORTION_K, 1), False, b)

    @staticmethod
    def sized(x: Matrices, tile: GemmTile, n: int, k: int, pack_b: bool, packed: PackedB | None = None) -> "Portions":
        pack_a = x.a.column != 1 or (x.n > DIRECT_COLUMNS and not is_near(x.m, x.k, x.dtype))
        m = evenly(x.m, PORTION_A // max(k, 1), tile.rows) if pack_a else x.m
        a_size = round_up(m, tile.rows) * k if pack_a else 0
        b_size = round_up(n, tile.width) * k if pack_b else 0
        whole = m >= x.m and n >= x.n and k >= x.k
        fitting = (PORTION_A + PORTION_B) // max(a_size + b_size, 1)
        count = min(x.count, max(fitting, 1)) if whole else 1
        a_count, b_count = (count if y.batch else 1 for y in (x.a, x.b))
        a_nbytes = aligned(a_size * a_count * x.out.itemsize)
        b_nbytes = aligned(b_size * b_count * x.out.itemsize)
        return Portions(tile, m, n, k, count, a_nbytes, b_nbytes, packed)


def direct_rows(stride: int, k: int) -> int:
    """Return the most rows of a result for which `k` rows of b, `stride` bytes apart, are read in place.

    More if a panel of them fits into half of L2, where rows a power of two apart share few places.
    """
    return DIRECT_ROWS if k * gcd(stride, NEAR_WAY) <= NEAR_PANEL else FEW_ROWS


def pack_b(target: Target, b: np.ndarray, m: int) -> tuple[np.ndarray, GemmTile]:
    """Return a constant ``[k, n]`` in panels, for results of `m` rows: the array for a `PackedB`, and its tile."""
    tile = gemm_tile(m, b.shape[1], len(b), "f8" if b.dtype.itemsize == 8 else "f4", target)
    return to_panels(b, tile), tile


def take_panels(packed: np.ndarray, k: int, tile: GemmTile, first: int, stop: int) -> np.ndarray:
    """Return some panels of those of `in_panels`, as it would return them for only their columns."""
    return np.concatenate([block[first:stop].reshape(-1) for block in blocks_of(packed, k, tile)])


def join_panels(parts: Sequence[np.ndarray], k: int, tile: GemmTile) -> np.ndarray:
    """Return the panels of all columns, from consecutive groups of columns."""
    blocks = zip(*(blocks_of(part, k, tile) for part in parts))
    return np.concatenate([np.concatenate(block).reshape(-1) for block in blocks])


def blocks_of(packed: np.ndarray, k: int, tile: GemmTile) -> list[np.ndarray]:
    """Return the panels ``[panels, depth, width]`` of each portion of k."""
    padded = packed.size // k
    return [
        packed[k0 * padded : (k0 + depth) * padded].reshape(-1, depth, tile.width)
        for k0, depth in spans(k, evenly(k, PORTION_K, 1))
    ]


def to_panels(b: np.ndarray, tile: GemmTile) -> np.ndarray:
    """Return a constant ``[k, n]`` in panels as wide as a tile.

    Columns whose elements are adjacent, as in transposed weights, are read about a `PIECE` at a time: each portion of
    k would read the whole file. They are copied first, since reading across pages of a mapped file is slow.
    """
    k, n = b.shape
    out = aligned_zeros((k * round_up(n, tile.width),), b.dtype)
    if not out.size:
        return out
    blocks = blocks_of(out, k, tile)
    if abs(b.strides[0]) >= abs(b.strides[1]):
        fill_panels(blocks, b, copy_to)
        return out
    width = tile.width
    step = PIECE // (k * b.itemsize) // width * width or gcd(width, LINE // b.itemsize)
    rows = np.empty((min(step, n), k), b.dtype)
    for first in range(0, n, step):
        panel, start = divmod(first, width)
        columns = b[:, first : first + step]
        copied = rows[: columns.shape[1]]
        copy_to(copied, columns.T)
        some = [block[panel : panel + -(-step // width), :, start : start + step] for block in blocks]
        fill_panels(some, copied.T, np.copyto)
    return out


def fill_panels(blocks: Sequence[np.ndarray], b: np.ndarray, copy: Callable[[np.ndarray, np.ndarray], None]) -> None:
    """Write the rows of `b`, ``[k, n]``, into blocks ``[panels, depth, width]`` by `copy`, in order."""
    first, n = 0, b.shape[1]
    for block in blocks:
        depth, width = block.shape[1:]
        rows, whole = b[first : first + depth], n // width
        split = whole * width
        copy(block[:whole].swapaxes(0, 1), rows[:, :split].reshape(depth, whole, width))
        if split < n:
            copy(block[whole, :, : n - split], rows[:, split:])
        first += depth
