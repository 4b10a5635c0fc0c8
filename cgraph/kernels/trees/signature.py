"""Walks down decision trees, and the table of their nodes."""

import numpy as np

from cgraph.kernels.signature import Signature

LEAVES = Signature(
    "trees.leaves",
    ("dtype", "flags"),
    {
        # of the rows [n, columns], and the first node of each tree
        "x": "dtype*", "n": "i8", "columns": "i8", "roots": "i4*", "trees": "i8",
        # records of `node_dtype`; of each row and tree, the leaf; rows of a task
        "nodes": "address", "leaves": "i4*", "block": "i8",
    },
)  # fmt: skip
SUMS = Signature(
    "trees.sums",
    ("dtype", "flags", "weight", "is_single"),
    {
        "x": "dtype*", "n": "i8", "columns": "i8", "roots": "i4*", "trees": "i8", "nodes": "address",
        # of each node one number for each target, which is one if `is_single`; of each row the sums over trees
        "weights": "weight*", "targets": "i8", "sums": "f8*", "block": "i8",
    },
)  # fmt: skip
UNIT = 8
"""Bytes: places of nodes are multiples of it."""
EQUAL, MISSING = 1, 2
"""Flags of a node: the number must be equal, not at most as large; NaN goes below, not above."""


def node_dtype(dtype: np.dtype | str) -> np.dtype:
    """Return the dtype of a node, for rows of this dtype. A step reads one node, which lies in one or two cache lines.

    Fields
        column: the byte of a row where the node's number begins, plus the flags; 0 at a leaf
        ways: where the next nodes above and below begin, in units of `UNIT` bytes; at a leaf, where the leaf itself
            begins, twice
    """
    fields = [("threshold", np.dtype(dtype)), ("column", "i4"), ("ways", "i4", (2,))]
    return np.dtype(fields, align=True)
