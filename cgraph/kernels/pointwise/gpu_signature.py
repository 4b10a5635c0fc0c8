"""A scalar program over arrays that are contiguous, or of any strides."""

from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.walk.signature import axes

THREADS = 128  # of a block

# `access`: per operand, and for the result, ``v`` element after element or ``s`` one value for all; a thread computes
# `wide` elements; a task is a block
FLAT = Signature(
    "pointwise.gpu.flat",
    ("program", "access", "wide"),
    {"count": "i8", "arrays": Words(("address",), lambda values: len(values.access))},
)

# `dtypes`: of operands and results; a thread computes one element
WALK = Signature(
    "pointwise.gpu.walk",
    ("program", "results", "dtypes", "rank"),
    {
        "count": "i8", "arrays": Words(("address",), lambda values: len(values.dtypes)),
        "axes": axes("rank", lambda values: len(values.dtypes)),
    },
)  # fmt: skip
