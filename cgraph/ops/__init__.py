"""Every op module, so that `cgraph.ir.graph.OPS` is complete."""

from cgraph.ops import (
    activation,
    arithmetic,
    compare,
    conv,
    einsum,
    elementary,
    leaf,
    linear,
    norm,
    pad,
    pool,
    random,
    reduce,
    shape,
    softmax,
)

__all__ = [
    "activation",
    "arithmetic",
    "compare",
    "conv",
    "einsum",
    "elementary",
    "leaf",
    "linear",
    "norm",
    "pad",
    "pool",
    "random",
    "reduce",
    "shape",
    "softmax",
]
