"""Users' functions of numbers, an element for each thread."""

from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.signatures.walk import axes

# `dtypes`: of operands and the result; a thread computes one of `count` elements
EACH = Signature(
    "gpu.user.each",
    ("function", "dtypes", "rank"),
    {
        "count": "i8", "arrays": Words(("address",), lambda known: len(known.dtypes)),
        "axes": axes("rank", lambda known: len(known.dtypes)),
    },
)  # fmt: skip
