"""The tiling of matrix products: the register tile by the size of the result, the portions by the caches."""

from cgraph.kernels.target import Target
from cgraph.kernels.views.conv_shape import sums
from cgraph.record import Record
from cgraph.system.alignment import round_up

PORTION_K = 1024  # a panel of b, 32 columns by 1024, fills an eighth of a 1 MiB L2
PORTION_B = 1 << 20  # elements of b packed at once
PORTION_A = 1 << 19  # elements of a packed at once
NEAR_A = 2 << 20  # bytes of rows that are read in place: L2 holds most of a portion of k
NEAR_ROWS = 8  # lines of a tile that reads rows in place: as many as an L1 keeps of rows that are 4 KiB apart
GPU_ROWS = 4


class GemmTile(Record):
    """The sums in registers: `rows` by `vectors` vectors of `lanes`."""

    rows: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        """Columns of the tile."""
        return self.vectors * self.lanes


def is_near(m: int, k: int, dtype: str) -> bool:
    """Return True if rows ``[m, k]`` are read unpacked: 1.03 to 1.08 times as fast as from panels at 128 rows."""
    return m * k * int(dtype[1:]) <= NEAR_A


def gemm_tile(m: int, n: int, k: int, dtype: str, target: Target) -> GemmTile:
    """Return the tile for a result of `m` x `n` and sums of `k`: few rows leave registers for more columns.

    One row reads panels of four vectors, or of fewer if that adds fewer columns to the last panel.
    """
    lanes, limit = target.lanes_of(dtype), sums(target)
    if target.code == "ptx":  # a thread a tile: many of them, and panels of one column never overlap
        return GemmTile(min(m, GPU_ROWS), 1, lanes)
    columns = max(n // lanes, 1)
    if m == 1:
        return GemmTile(1, min((v for v in (4, 2, 1) if v <= columns), key=lambda v: round_up(n, v * lanes)), lanes)
    if m <= 4:
        rows = m if m < 3 else 4
        room = target.registers - 1 - (not target.fma)  # besides a broadcast scalar and, without fma, a product
        fitting = [v for v in (8, 6, 4, 2) if v * (rows + 1) <= room and v <= columns]
        return GemmTile(rows, max(fitting, default=1), lanes)
    vectors = min(2, columns)
    most = min(limit // vectors, 14)
    choices = [most, *(r for r in (12, 10, 8, 6, 4) if r < most)]
    if is_near(m, k, dtype):
        choices = list(range(min(most, NEAR_ROWS), min(most - 1, 3), -1))
    return GemmTile(min(choices, key=lambda r: -(-m // r) * (r + 0.5)), vectors, lanes)


def evenly(total: int, most: int, multiple: int) -> int:
    """Return the size of equal portions of `total`, each of at most `most` (or one `multiple`)."""
    count = max(1, -(-total // max(most, multiple)))
    return round_up(-(-total // count), multiple)


def spans(total: int, size: int) -> list[tuple[int, int]]:
    """Return (start, length) of the portions of `total`; one empty portion if `total` is 0."""
    return [(i, min(size, total - i)) for i in range(0, total, max(size, 1))] or [(0, 0)]
