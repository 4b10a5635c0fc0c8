"""Layers that merge several nodes into one."""

from collections.abc import Callable
from functools import reduce

import cgraph as cg
from cgraph import InputError, Node
from nn.layer import Layer
from nn.mode import Mode


class Add(Layer):
    """The sum of all operands."""

    def build(self, *xs: Node, mode: Mode) -> Node:
        return fold(lambda x, y: x + y, xs)


class Mul(Layer):
    """The product of all operands, element by element."""

    def build(self, *xs: Node, mode: Mode) -> Node:
        return fold(lambda x, y: x * y, xs)


class Dot(Layer):
    """The matrix product of two operands."""

    def build(self, *xs: Node, mode: Mode) -> Node:
        if len(xs) != 2:
            raise InputError(f"Dot takes two operands, not {len(xs)}. Pass both.")
        return cg.matmul(*xs)


class Max(Layer):
    """The largest of all operands, element by element."""

    def build(self, *xs: Node, mode: Mode) -> Node:
        return fold(cg.maximum, xs)


class Average(Layer):
    """The mean of all operands, element by element."""

    def build(self, *xs: Node, mode: Mode) -> Node:
        return fold(lambda x, y: x + y, xs) * (1 / len(xs))


class Concatenate(Layer):
    """Operands one after another along an axis, the channels by default."""

    axis: int = 1

    def build(self, *xs: Node, mode: Mode) -> Node:
        return cg.concat(list(xs), axis=self.axis)


def fold(function: Callable[[Node, Node], Node], xs: tuple[Node, ...]) -> Node:
    """Return the operands combined by a function of two."""
    return reduce(function, xs)
