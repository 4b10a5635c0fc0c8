"""Layers that change shapes."""

from math import prod
from typing import Any

import cgraph as cg
from cgraph import Node, ShapeError
from nn.checks import check_axes
from nn.layer import Layer, Sample
from nn.mode import Mode


class Input(Layer):
    """Returns its operand and defines the shape of a sample."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(tuple(self.shape), self.dtype),)

    def build(self, *xs: Node, mode: Mode) -> Node:
        if xs[0].shape[1:] != tuple(self.shape):
            raise ShapeError(
                f"Input takes samples of shape {list(self.shape)}, not {xs[0]!r}. Reshape them, or change the Input."
            )
        return xs[0]


class Reshape(Layer):
    """Reshapes each sample; one axis may be -1."""

    shape: tuple[int, ...]

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        check_axes(self, x, "n ...")
        size = prod(n for n in self.shape if n != -1)
        missing = prod(x.shape[1:]) // max(size, 1)
        return cg.reshape(x, (x.shape[0], *(missing if n == -1 else n for n in self.shape)))


class Flatten(Layer):
    """Reshapes each sample to one axis."""

    def build(self, *xs: Node, mode: Mode) -> Node:
        check_axes(self, xs[0], "n ...")
        return cg.reshape(xs[0], (xs[0].shape[0], prod(xs[0].shape[1:])))


class Slice(Layer):
    """Part of each sample: an index as in NumPy, without the batch axis."""

    index: Any

    def build(self, *xs: Node, mode: Mode) -> Node:
        index = self.index if isinstance(self.index, tuple) else (self.index,)
        return xs[0][(slice(None), *index)]
