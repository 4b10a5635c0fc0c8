"""Attention: a mean of values, weighted by how well keys fit queries."""

from math import sqrt
from typing import Any

import numpy as np

from cgraph.ir.graph import Node, public
from cgraph.ops.compare import where
from cgraph.ops.leaf import as_node
from cgraph.ops.linear import matmul
from cgraph.ops.shape import swapaxes
from cgraph.ops.softmax import softmax


@public
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False, scale: float | None = None
) -> Node:
    """``softmax(query @ key.T * scale + mask) @ value``.

    Parameters
        query, key, value: ``[..., m, d]``, ``[..., n, d]``, ``[..., n, e]``
        mask: added to the products, or bool, false where a key is not seen; broadcasts to ``[..., m, n]``
        causal: query i sees keys up to i only
        scale: ``1 / sqrt(d)`` by default
    Result
        ``[..., m, e]``; NaN for a query that sees no key
    Source
        Vaswani et al. 2017, arXiv:1706.03762
    """
    query, key, value = (as_node(x) for x in (query, key, value))
    products = matmul(query, swapaxes(key, -1, -2)) * (1 / sqrt(query.shape[-1]) if scale is None else scale)
    if causal:
        products = where(np.tri(*products.shape[-2:], dtype=bool), products, -np.inf)
    if mask is not None:
        mask = as_node(mask)
        seen = mask.dtype.kind == "b"
        products = where(mask, products, -np.inf) if seen else products + mask.astype(products.dtype)
    return matmul(softmax(products, -1), value)
