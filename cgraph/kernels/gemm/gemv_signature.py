"""Products of a matrix and a vector; strides in elements."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature

DOT = Signature(
    "gemm.gemv.dot",
    ("dtype", "rows"),
    {
        "m": "i8", "k": "i8", "a": "dtype*", "a_batch": "i8", "a_row": "i8", "b": "dtype*", "b_batch": "i8",
        "bias": "address?", "bias_batch": "i8", "bias_row": "i8",
        "out": "dtype*", "o_batch": "i8", "o_row": "i8", "row_panels": "i8",
        **ACTIVATION,
    },
)  # fmt: skip

ROW = Signature(
    "gemm.gemv.row",
    ("dtype", "unroll"),
    {
        "n": "i8", "k": "i8", "a": "dtype*", "a_batch": "i8", "a_step": "i8",
        "b": "dtype*", "b_batch": "i8", "b_step": "i8", "bias": "address?", "bias_batch": "i8",
        "out": "dtype*", "o_batch": "i8", "width": "i8", "panels": "i8",
        **ACTIVATION,
    },
)  # fmt: skip
