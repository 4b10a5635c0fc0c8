"""Transposes through shared memory; strides are bytes."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.walk.signature import axes

SIDE = 32  # items along each side of a tile
ROWS = 8  # of a tile that a block carries at a time
THREADS = SIDE * ROWS

# a block: one tile of `ni` items, side by side in `out`, by `nj` items, side by side in `x`, of one place of the axes
TRANSPOSED = Signature(
    "move.gpu.transposed",
    ("itemsize", "rank"),
    {
        "out": "address", "x": "address", "ni": "i8", "nj": "i8", "out_j": "i8", "x_i": "i8",
        "tiles_i": "i8", "tiles_j": "i8", "axes": axes("rank", lambda _: 2),
    },
)  # fmt: skip
