"""A scalar program over arrays that lie in one piece."""

from cgraph.kernels.signature import Signature, Words

THREADS = 128  # of a block

# `access`: per operand, and for the result, ``v`` element after element or ``s`` one value for all; a thread computes
# `wide` elements; a task is a block
FLAT = Signature(
    "gpu.pointwise.flat",
    ("program", "access", "wide"),
    {"count": "i8", "arrays": Words(("address",), lambda known: len(known.access))},
)
