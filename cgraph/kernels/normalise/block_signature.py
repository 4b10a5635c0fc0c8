"""Normalisation of blocks of short rows."""

from cgraph.kernels.signature import Signature

# `each` rows to a task, of contiguous elements, from one vector to `CHAIN`
ROWS = Signature(
    "normalise.block.rows",
    ("dtype", "scales", "lanes"),
    {
        "rows": "i8", "each": "i8", "columns": "i8", "epsilon": "f8",
        "x": "dtype*", "out": "dtype*", "scale": "dtype*", "shift": "dtype*",
    },
)  # fmt: skip
