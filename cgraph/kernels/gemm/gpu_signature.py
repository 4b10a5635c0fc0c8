"""Products of matrices in blocks of threads: tiles through shared memory, of any size and strides."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature

THREADS = 256  # of a block: 16 by 16
SIDE = 16  # threads along each side of a tile
DEPTH = 16  # products of a result between two barriers

# strides are in elements; a bias is read where `biased`; the activation is that of the results
RESULT = {
    "bias": "dtype*", "bias_batch": "i8", "bias_row": "i8", "bias_column": "i8",
    "out": "dtype*", "o_batch": "i8", "o_row": "i8", "o_column": "i8",
    **ACTIVATION,
}  # fmt: skip

# a block: one tile of `lines` by `lines` results, over one of `parts` parts of the sums, `each` products long;
# a form is "k" if elements along k are contiguous, else "lines"; partial sums are `o_part` elements apart
PRODUCT = Signature(
    "gemm.gpu.product",
    ("dtype", "lines", "a_form", "b_form", "biased"),
    {
        "m": "i8", "n": "i8", "k": "i8", "parts": "i8", "each": "i8", "row_tiles": "i8", "column_tiles": "i8",
        "a": "dtype*", "a_batch": "i8", "a_row": "i8", "a_step": "i8",
        "b": "dtype*", "b_batch": "i8", "b_column": "i8", "b_step": "i8",
        "o_part": "i8", **RESULT,
    },
)  # fmt: skip

# a thread: one result, the sum of `parts` partial sums that are `size` elements apart, in their order
JOIN = Signature(
    "gemm.gpu.join",
    ("dtype", "biased"),
    {"m": "i8", "n": "i8", "size": "i8", "parts": "i8", "x": "dtype*", **RESULT},
)  # fmt: skip
