"""Softmax of blocks of rows; strides are bytes."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.walk.signature import axes

# `each` rows to a task; elements of a row are contiguous, and fill `lanes` or more; of logsumexp, out has one element
# per row. is_short: at most `CHAIN` vectors to a row
ROWS = Signature(
    "softmax.block.rows",
    ("kind", "dtype", "lanes", "is_short"),
    {
        "rows": "i8", "each": "i8", "columns": "i8", "rank": "i8", "x": "address", "out": "address",
        "axes": axes("rank", lambda _: 2),
    },
)  # fmt: skip
