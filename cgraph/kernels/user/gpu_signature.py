"""Users' functions of numbers, an element for each thread."""

from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.walk.signature import axes

# `dtypes`: of operands and the result; a thread computes one of `count` elements
EACH = Signature(
    "user.gpu.each",
    ("function", "dtypes", "rank"),
    {
        "count": "i8", "arrays": Words(("address",), lambda values: len(values.dtypes)),
        "axes": axes("rank", lambda values: len(values.dtypes)),
    },
)  # fmt: skip
