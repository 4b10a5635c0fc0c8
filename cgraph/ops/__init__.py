"""Every op module, so that `cgraph.ir.graph.OPS` is complete."""

from cgraph.ops import (
    activation,
    arithmetic,
    compare,
    einsum,
    elementary,
    leaf,
    linear,
    reduce,
    shape,
    softmax,
)

__all__ = [
    "activation",
    "arithmetic",
    "compare",
    "einsum",
    "elementary",
    "leaf",
    "linear",
    "reduce",
    "shape",
    "softmax",
]
