"""Softmax, its logarithm, and the logarithm of the sum of exponentials; strides are bytes."""

from cgraph.kernels.signature import Args, Signature
from cgraph.kernels.walk.signature import axes

MOST_COLUMNS = 256  # of a block of `columns`, whose maxima and sums lie on the stack

ARRAYS: Args = {
    "x": "address", "x_step": "i8", "out": "address", "out_step": "i8",
    "axes": axes("rank", lambda _: 2),
}  # fmt: skip

# `each` rows to a task
ROWS = Signature(
    "softmax.rows",
    ("kind", "dtype", "access"),
    {"rows": "i8", "each": "i8", "columns": "i8", "rank": "i8", **ARRAYS},
)

# a task is one block of columns of one row; strides along the axis of `length` elements
COLUMNS = Signature(
    "softmax.columns",
    ("kind", "dtype", "access"),
    {
        "rows": "i8", "blocks": "i8", "block": "i8", "columns": "i8", "length": "i8",
        "x_along": "i8", "out_along": "i8", "rank": "i8",
        **ARRAYS,
    },
)  # fmt: skip
