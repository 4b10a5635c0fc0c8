"""A scalar program over whole arrays."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.walk.signature import axes, operands_and_outputs, streams

POINTWISE = Signature(
    "pointwise.pointwise",
    ("program", "results", "ins", "outs", "registers", "past_cache"),
    {
        "rows": "i8", "columns": "i8", "block": "i8", "blocks": "i8", "rows_each": "i8", "rank": "i8",
        "streams": streams(operands_and_outputs), "axes": axes("rank", operands_and_outputs),
    },
)  # fmt: skip
