"""Attention: each position mixes the values of all positions, weighted by the products of its query and their keys."""

from dataclasses import field

import numpy as np

import cgraph as cg
from cgraph import InputError, Node, ShapeError
from nn.checks import check_axes
from nn.init import Gaussian
from nn.layer import Layer, Parameter
from nn.layers.linear import Linear
from nn.layers.positions import alibi_slopes, relative_bias, rotate
from nn.mode import Mode
from nn.torch_names import TorchNames


class MultiHeadAttention(Layer):
    """``softmax(q k^T / sqrt(d)) v`` in several heads of ``d = features / heads``, joined by a Linear.

    Operands
        x: queries ``[n, t, features]``; without `y` they are keys and values too
        y: source of keys and values ``[n, s, features]``
        mask: bool ``[t, s]`` or ``[n, 1, t, s]``, false where a query must not attend to a key; optional third operand
    Fields
        causal: no query attends to a later key
        key_heads: heads of keys and values, each shared by equally many heads of queries; `heads` by default
        rotary: base of rotary position embeddings of queries and keys; None for none
        window: maximum number of last keys that a query of a causal layer attends to; 0 for all
        alibi: linear bias of a causal layer that grows with the distance, with another slope in each head
        buckets: number of buckets of relative distances, each with a trained bias, as in T5; 0 for none
        farthest: distance from which on keys share the last bucket
        softcap: products are limited to this absolute value by a tanh; 0 for none
        use_bias: biases of the four Linears
    Result
        ``[n, t, features]``
    Source
        Vaswani et al. 2017, arXiv:1706.03762; Ainslie et al. 2023, arXiv:2305.13245 (shared heads);
        Raffel et al. 2020, arXiv:1910.10683 (buckets); Gemma Team 2024, arXiv:2408.00118 (softcap)
    """

    features: int
    heads: int
    causal: bool = False
    key_heads: int | None = None
    rotary: float | None = None
    window: int = 0
    alibi: bool = False
    use_bias: bool = True
    buckets: int = 0
    farthest: int = 128
    softcap: float = 0.0
    query: Linear = field(init=False)
    key: Linear = field(init=False)
    value: Linear = field(init=False)
    output: Linear = field(init=False)
    relative: Parameter | None = field(init=False)

    def __post_init__(self) -> None:
        n, heads = self.features, self.key_heads or self.heads
        if self.heads < 1 or heads < 1:
            raise ShapeError(f"heads is {self.heads} and key_heads {self.key_heads}. Pass at least 1 of each.")
        if n % self.heads:
            raise ShapeError(f"features {n} is not a multiple of heads {self.heads}. Change either.")
        if self.heads % heads:
            raise ShapeError(f"heads {self.heads} is not a multiple of key_heads {heads}. Change either.")
        if self.rotary is not None and n // self.heads % 2:
            raise ShapeError(
                f"rotary embeddings need heads of an even size, not {n // self.heads}. Change features or heads."
            )
        if self.alibi and not self.causal:
            raise ShapeError("alibi=True needs a causal layer. Pass causal=True.")
        if self.buckets and (self.alibi or self.buckets < 4 or self.farthest <= self.buckets):
            raise ShapeError(
                f"buckets {self.buckets}, farthest {self.farthest}, alibi {self.alibi}: use at least 4 buckets, a "
                "larger farthest, and alibi=False."
            )
        self.hold(relative=Parameter((self.heads, self.buckets), Gaussian(deviation=0.02)) if self.buckets else None)
        width = n // self.heads * heads
        self.hold(query=Linear(n, n, self.use_bias), key=Linear(n, width, self.use_bias))
        self.hold(value=Linear(n, width, self.use_bias), output=Linear(n, n, self.use_bias))

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = xs[0]
        y = xs[1] if len(xs) > 1 else x
        q, k, v = (self._heads(part(z, mode=mode)) for part, z in ((self.query, x), (self.key, y), (self.value, y)))
        mask = xs[2] if len(xs) > 2 else None
        start = mode.cache.start if mode.cache else None
        if self.rotary is not None:
            q, k = (rotate(z, start, self.rotary) for z in (q, k))
        if mode.cache:
            if not self.causal or len(xs) > 1:
                raise InputError(
                    "a cache needs a causal layer with one operand. Pass causal=True, and neither y nor mask."
                )
            k, v = (mode.cache.append(self, name, z, mode) for name, z in (("keys", k), ("values", v)))
        bias = self._bias(k.shape[2], x.shape[1], start)
        if bias is not None:
            mask = bias if mask is None else cg.where(mask, bias, float("-inf"))
        mixed = cg.scaled_dot_product_attention(
            q, k, v, mask, self.causal, window=self.window, start=start, softcap=self.softcap
        )
        return self.output(cg.reshape(cg.transpose(mixed, (0, 2, 1, 3)), x.shape), mode=mode)

    def from_torch(self, names: TorchNames) -> dict[str, np.ndarray]:
        """Return values of four Linears, or of PyTorch's MultiheadAttention, which has one matrix for q, k and v."""
        if "in_proj_weight" not in names:
            return super().from_torch(names)
        arrays = {f"output.{name}": x for name, x in self.output.from_torch(names.below("out_proj")).items()}
        for kind in ("weight", "bias") if self.use_bias else ("weight",):
            parts = np.split(names[f"in_proj_{kind}"], 3)
            arrays |= {f"{part}.{kind}": x.T for part, x in zip(("query", "key", "value"), parts)}
        return arrays

    def _heads(self, x: Node) -> Node:
        """Return ``[n, t, heads * d]`` as ``[n, heads, t, d]``."""
        check_axes(self, x, "n t features")
        n, t, width = x.shape
        d = self.features // self.heads
        return cg.transpose(cg.reshape(x, (n, t, width // d, d)), (0, 2, 1, 3))

    def _bias(self, keys: int, queries: int, start: Node | None) -> Node | None:
        """Return the bias of the products by distance; None for none."""
        if self.relative is not None:
            return relative_bias(self.relative, queries, keys, self.farthest, self.causal, start)
        return self._distances(keys, queries, start) if self.alibi else None

    def _distances(self, keys: int, queries: int, start: Node | None) -> Node:
        """Return the bias ``[n, heads, 1, keys]``, only by key, since softmax of a row is invariant to a shift."""
        last = cg.reshape(start, (-1, 1, 1, 1)) + (queries - 1) if start is not None else np.int64(keys - 1)
        slopes = alibi_slopes(self.heads).reshape(1, -1, 1, 1)
        return cg.astype(cg.arange(keys) - last, "float32") * slopes
