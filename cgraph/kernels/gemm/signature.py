"""Matrix products of any size."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature


def unroll(a_is_packed: bool) -> int:
    """Return the steps of a tile's sums in one iteration of its loop."""
    return 8 if a_is_packed else 4


TILE = Signature(
    "gemm.tile",
    # b_dtype: of b in memory; ahead: its cache lines that a round prefetches
    ("dtype", "rows", "vectors", "a_is_packed", "b_dtype", "ahead"),
    {
        "m": "i8", "n": "i8", "k": "i8",
        # strides in elements: from one matrix, panel or row (`b_step`: row of a panel of b) to the next
        "a": "dtype*", "a_batch": "i8", "a_panel": "i8", "a_row": "i8",
        # early: elements from a panel of b to the prefetches of its first tile, a `share` in each round
        "b": "b_dtype*", "b_batch": "i8", "b_panel": "i8", "b_step": "i8", "early": "i8", "share": "i8",
        "bias": "address?", "bias_batch": "i8", "bias_row": "i8",
        "out": "dtype*", "o_batch": "i8", "o_row": "i8",
        # add: to the contents of `out`; overlap: the last panel of columns ends with the matrix and repeats some
        "add": "i8", "overlap": "i8",
        # panels of the outer and of the inner loop; by_row: the outer ones are panels of rows, else of columns
        "outer": "i8", "inner": "i8", "by_row": "i8",
        **ACTIVATION,
    },
)  # fmt: skip

SIMPLE = Signature(
    "gemm.simple",
    ("dtype",),
    {
        "m": "i8", "n": "i8", "k": "i8",
        "a": "dtype*", "a_batch": "i8", "a_row": "i8", "a_step": "i8",
        "b": "dtype*", "b_batch": "i8", "b_step": "i8", "b_column": "i8",
        "out": "dtype*", "o_batch": "i8", "o_row": "i8", "o_column": "i8",
    },
)  # fmt: skip
