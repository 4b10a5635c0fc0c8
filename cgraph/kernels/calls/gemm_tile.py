"""How a matrix product is tiled: the register tile by the size of the result, the portions by the caches."""

from cgraph.kernels.calls.conv_shape import sums
from cgraph.kernels.target import Target
from cgraph.record import Record

PORTION_K = 1024  # a panel of b, 32 columns by 1024, fills an eighth of a 1 MiB L2
PORTION_B = 1 << 20  # elements of b packed at once
PORTION_A = 1 << 19  # elements of a packed at once
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


def gemm_tile(m: int, n: int, dtype: str, target: Target) -> GemmTile:
    """The tile for a result of `m` x `n`: few rows leave registers for more columns."""
    lanes, limit = target.lanes_of(dtype), sums(target)
    if target.is_gpu:  # a thread a tile: many of them, and panels of one column never overlap
        return GemmTile(min(m, GPU_ROWS), 1, lanes)
    columns = max(n // lanes, 1)
    if m <= 4:
        rows = m if m < 3 else 4
        fitting = [v for v in (8, 6, 4, 2) if v * rows <= limit and v <= columns]
        return GemmTile(rows, max(fitting, default=1), lanes)
    vectors = min(2, columns)
    most = min(limit // vectors, 14)
    choices = [most, *(r for r in (12, 10, 8, 6, 4) if r < most)]
    return GemmTile(min(choices, key=lambda r: -(-m // r) * (r + 0.5)), vectors, lanes)


def evenly(total: int, most: int, multiple: int) -> int:
    """The size of equal portions, of `most` or one `multiple` at the most, that make up `total`."""
    count = max(1, -(-total // max(most, multiple)))
    return rounded(-(-total // count), multiple)


def rounded(size: int, multiple: int) -> int:
    """`size` rounded up to a multiple."""
    return -(-size // multiple) * multiple


def spans(total: int, size: int) -> list[tuple[int, int]]:
    """(start, length) of the portions of `total`; one empty portion when there is nothing."""
    return [(i, min(size, total - i)) for i in range(0, total, max(size, 1))] or [(0, 0)]
