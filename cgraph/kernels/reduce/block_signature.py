"""Reductions of short contiguous rows, some rows at a time."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.walk.signature import axes, operands_and_outputs, streams

# a task: `each` outputs, each of a row of `columns` elements, a vector or more; at most `CHAIN` vectors
ALONG = Signature(
    "reduce.block.along",
    ("kind", "program", "ins", "outs", "registers"),
    {
        "outputs": "i8", "each": "i8", "columns": "i8", "rank": "i8",
        "streams": streams(operands_and_outputs), "axes": axes("rank", operands_and_outputs),
    },
)  # fmt: skip
