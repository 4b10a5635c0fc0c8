"""Batches of small square matrices ``[n, n]`` in C order. A task is one of them."""

from cgraph.kernels.signature import Signature

MOST = 8  # rows of a matrix, which a task copies to its stack
SOLVE = Signature(
    "matrices.solve",
    ("dtype", "inverts"),
    # b and out are ``[n, columns]``; b is read unless the right side is the identity
    {"a": "dtype*", "b": "dtype*", "out": "dtype*", "n": "i8", "columns": "i8", "stop": "i8*"},
)
DETERMINANT = Signature("matrices.determinant", ("dtype",), {"a": "dtype*", "out": "dtype*", "n": "i8"})
CHOLESKY = Signature("matrices.cholesky", ("dtype",), {"a": "dtype*", "out": "dtype*", "n": "i8", "stop": "i8*"})
