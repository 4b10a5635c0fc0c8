"""Attention: each position mixes the values of all positions, by how well its query fits their keys."""

from dataclasses import field

import cgraph as cg
from cgraph import Node, ShapeError
from nn.layer import Layer
from nn.layers.linear import Linear
from nn.mode import Mode


class MultiHeadAttention(Layer):
    """``softmax(q k^T / sqrt(d)) v`` in several heads of ``d = features / heads``, joined by a Linear.

    Operands
        x: queries ``[n, t, features]``; alone, they are keys and values too
        y: keys and values ``[n, s, features]``
        mask: bool ``[t, s]`` or ``[n, 1, t, s]``, false where a query must not see a key; optional third operand
    Fields
        causal: no query sees a later key
    Result
        ``[n, t, features]``
    Source
        Vaswani et al. 2017, arXiv:1706.03762
    """

    features: int
    heads: int
    causal: bool = False
    query: Linear = field(init=False)
    key: Linear = field(init=False)
    value: Linear = field(init=False)
    output: Linear = field(init=False)

    def __post_init__(self) -> None:
        if self.features % self.heads:
            raise ShapeError(f"{self.features} features do not divide into {self.heads} heads")
        n = self.features
        self.hold(query=Linear(n, n), key=Linear(n, n), value=Linear(n, n), output=Linear(n, n))

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = xs[0]
        y = xs[1] if len(xs) > 1 else x
        q, k, v = (self._heads(part(z, mode=mode)) for part, z in ((self.query, x), (self.key, y), (self.value, y)))
        mask = xs[2] if len(xs) > 2 else None
        mixed = cg.scaled_dot_product_attention(q, k, v, mask, self.causal)  # [n, heads, t, d]
        return self.output(cg.reshape(cg.transpose(mixed, (0, 2, 1, 3)), x.shape), mode=mode)

    def _heads(self, x: Node) -> Node:
        """``[n, t, features]`` as ``[n, heads, t, d]``."""
        n, t, _ = x.shape
        return cg.transpose(cg.reshape(x, (n, t, self.heads, self.features // self.heads)), (0, 2, 1, 3))
