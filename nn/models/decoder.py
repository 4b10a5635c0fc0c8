"""Decoders in the manner of GPT-2 and of Llama: scores of each next token, from all tokens before it."""

from collections.abc import Callable

import cgraph as cg
from cgraph import Node, ShapeError
from nn.init import Gaussian
from nn.layer import Layer, Parameter, Sample, Weights, initialise
from nn.layers.attention import MultiHeadAttention
from nn.layers.container import Sequential
from nn.layers.embedding import Embedding
from nn.layers.function import Activation
from nn.layers.linear import Linear, SwiGLU
from nn.layers.norm import LayerNorm, RMSNorm
from nn.mode import Mode


class DecoderBlock(Layer):
    """``x + attention(norm(x))``, then ``x + mixing(norm(x))``.

    Operands
        x: ``[n, t, features]``
    """

    attention_norm: Layer
    attention: MultiHeadAttention
    mixing_norm: Layer
    mixing: Layer

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = xs[0] + self.attention(self.attention_norm(xs[0], mode=mode), mode=mode)
        return x + self.mixing(self.mixing_norm(x, mode=mode), mode=mode)


class Decoder(Layer):
    """A stack of blocks over embedded tokens.

    Operands
        x: tokens, integers ``[n, t]`` with ``t <= length``
    Fields
        positions: a trained row for each position; None for blocks that encode positions themselves
        length: maximum number of tokens of a sequence
    Result
        scores (logits) ``[n, t, symbols]``
    """

    tokens: Embedding
    positions: Parameter | None
    blocks: tuple[Layer, ...]
    norm: Layer
    scores: Linear
    length: int

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample((self.length,), "int64"),)

    def build(self, *xs: Node, mode: Mode) -> Node:
        _, t = xs[0].shape
        if t > self.length:
            raise ShapeError(
                f"{t} tokens exceed the decoder's length of {self.length}. Pass fewer, or build it with length=."
            )
        x = self.tokens(xs[0], mode=mode)
        if self.positions is not None:
            x = x + self._positions(t, mode)
        for block in self.blocks:
            x = block(x, mode=mode)
        return self.scores(self.norm(x, mode=mode), mode=mode)

    def _positions(self, t: int, mode: Mode) -> Node:
        """Return the rows of the tokens' positions; beyond the last one, where nothing is read, the last row."""
        if mode.cache is None:
            return self.positions[:t]  # type: ignore[index]
        places = cg.reshape(mode.cache.start, (-1, 1)) + cg.arange(t)
        return cg.take(self.positions, cg.minimum(places, self.length - 1), axis=0)


def gpt(
    weights: Weights = 0, symbols: int = 256, length: int = 128, features: int = 128, heads: int = 4, layers: int = 4
) -> Decoder:
    """Return a decoder with learned positions, layer norms and gelu. Source: Radford et al. 2019 (GPT-2)."""

    def block() -> DecoderBlock:
        mixing = Sequential(
            Linear(features, 4 * features), Activation(approximate_gelu), Linear(4 * features, features)
        )
        attention = MultiHeadAttention(features, heads, causal=True)
        return DecoderBlock(LayerNorm(features), attention, LayerNorm(features), mixing)

    return decoder(weights, symbols, length, features, layers, block, LayerNorm(features), learned=True)


def llama(
    weights: Weights = 0,
    symbols: int = 256,
    length: int = 128,
    features: int = 128,
    heads: int = 4,
    layers: int = 4,
    key_heads: int | None = None,
) -> Decoder:
    """Return a decoder with rotary positions, RMS norms, SwiGLU and shared key heads. Source: arXiv:2302.13971."""

    def block() -> DecoderBlock:
        attention = MultiHeadAttention(features, heads, True, key_heads, rotary=10000.0, use_bias=False)
        return DecoderBlock(RMSNorm(features), attention, RMSNorm(features), SwiGLU(features, 8 * features // 3))

    return decoder(weights, symbols, length, features, layers, block, RMSNorm(features), learned=False)


def decoder(
    weights: Weights,
    symbols: int,
    length: int,
    features: int,
    layers: int,
    block: Callable[[], DecoderBlock],
    norm: Layer,
    learned: bool,
) -> Decoder:
    """Return a decoder of equal blocks."""
    start = Gaussian(deviation=0.02)
    positions = Parameter((length, features), start) if learned else None
    blocks = tuple(block() for _ in range(layers))
    model = Decoder(Embedding(symbols, features, start), positions, blocks, norm, Linear(features, symbols), length)
    return initialise(model, weights)


def approximate_gelu(x: Node) -> Node:
    """Return gelu by its tanh approximation."""
    return cg.gelu(x, approximate=True)
