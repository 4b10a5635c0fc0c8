"""Walks down decision trees."""

from cgraph.kernels.signature import Signature

LEAVES = Signature(
    "trees.leaves",
    ("dtype", "plain"),
    {
        # of the rows [n, columns], and the first node of each tree
        "x": "dtype*", "n": "i8", "columns": "i8", "roots": "i4*", "trees": "i8",
        # of each node: a column or -1, what to compare with, where to go from there; unless `plain` its kind
        "features": "i4*", "thresholds": "dtype*", "below": "i4*", "above": "i4*", "kinds": "address?",
        # of each row and tree, the leaf; rows of a task
        "leaves": "i4*", "block": "i8",
    },
)  # fmt: skip
EQUAL, MISSING = 1, 2
"""Bits of a kind: the number must be equal, not at most as large; NaN goes below, not above."""
