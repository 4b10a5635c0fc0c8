"""Sorting of rows that fit into shared memory; strides are bytes."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.signatures.walk import axes

THREADS = 256  # of a block
SIZES = (64, 512, 4096)  # items, with their places, of the longest row that a kernel sorts

# a block: one row of `n` items; the first `most` values (when wanted) and places (when `index` is a dtype) are written
ROWS = Signature(
    "gpu.sort.rows",
    ("dtype", "index", "descending", "wants_values", "size", "rank"),
    {
        "n": "i8", "most": "i8", "values": "address", "values_n": "i8", "places": "address", "places_n": "i8",
        "x": "address", "x_n": "i8", "axes": axes("rank", lambda _: 3),
    },
)  # fmt: skip
