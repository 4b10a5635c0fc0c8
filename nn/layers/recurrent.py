"""Recurrent layers: one cell, applied to each step of a sequence in turn.

Operands are ``[n, steps, inputs]``. The result is the last state ``[n, units]``, or with ``sequence=True`` the states
after every step, ``[n, steps, units]``. The steps are unrolled: the graph grows with the sequence, and so the planner
sees every step. ``x W`` is computed step by step: of one product for all steps, the gradient of every step's slice
would be as large as the product.
"""

from dataclasses import dataclass, field

import cgraph as cg
from cgraph import Node
from nn.init import GLOROT_UNIFORM, ZEROS, Initialiser, Orthogonal
from nn.layer import Layer, Parameter
from nn.layers.function import Function, activation
from nn.mode import Mode


@dataclass(frozen=True, eq=False)
class Cell(Layer):
    """What all cells have: weights of the operand and of the state, and a bias, for `gates` gates side by side."""

    inputs: int
    units: int
    sequence: bool = False
    start: Initialiser = GLOROT_UNIFORM
    weight: Parameter = field(init=False, repr=False)
    state_weight: Parameter = field(init=False, repr=False)
    bias: Parameter = field(init=False, repr=False)

    @property
    def gates(self) -> int:
        raise NotImplementedError

    def __post_init__(self) -> None:
        width = self.gates * self.units
        self.hold(weight=Parameter((self.inputs, width), self.start))
        self.hold(state_weight=Parameter((self.units, width), Orthogonal()), bias=Parameter((width,), ZEROS))

    def begin(self, n: int) -> tuple[Node, ...]:
        """The state before the first step; its first part is the result."""
        return (cg.zeros((n, self.units)),)

    def step(self, given: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        """The state after a step, from ``x @ weight + bias`` of it."""
        raise NotImplementedError

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        n, steps, _ = x.shape
        state, found = self.begin(n), []
        for t in range(steps):
            state = self.step(cg.matmul(x[:, t], self.weight) + self.bias, state)
            found.append(state[0])
        return cg.stack(found, axis=1) if self.sequence else found[-1]


@dataclass(frozen=True, eq=False)
class Recurrent(Cell):
    """``h = f(x W + h U + b)``. Source: Elman 1990."""

    function: Function = "tanh"

    @property
    def gates(self) -> int:
        return 1

    def step(self, given: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        return (activation(self.function)(given + cg.matmul(state[0], self.state_weight)),)


@dataclass(frozen=True, eq=False)
class LSTM(Cell):
    """Gates in the order input, forget, cell, output: ``c = f * c + i * g``, ``h = o * tanh(c)``.

    Source: Hochreiter and Schmidhuber 1997; Gers et al. 2000 for the forget gate.
    """

    @property
    def gates(self) -> int:
        return 4

    def begin(self, n: int) -> tuple[Node, ...]:
        zero = cg.zeros((n, self.units))
        return zero, zero

    def step(self, given: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        h, c = state
        i, f, g, o = cg.split(given + cg.matmul(h, self.state_weight), 4, axis=-1)
        c = cg.sigmoid(f) * c + cg.sigmoid(i) * cg.tanh(g)
        return cg.sigmoid(o) * cg.tanh(c), c


@dataclass(frozen=True, eq=False)
class GRU(Cell):
    """Gates in the order reset, update, candidate: ``h = z * h + (1 - z) * tanh(x W + (r * h) U + b)``.

    Source: Cho et al. 2014, arXiv:1406.1078.
    """

    @property
    def gates(self) -> int:
        return 3

    def step(self, given: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        (h,) = state
        units = self.units
        both = given[:, : 2 * units] + cg.matmul(h, self.state_weight[:, : 2 * units])
        r, z = cg.split(cg.sigmoid(both), 2, axis=-1)
        candidate = cg.tanh(given[:, 2 * units :] + cg.matmul(r * h, self.state_weight[:, 2 * units :]))
        return (z * h + (1.0 - z) * candidate,)


@dataclass(frozen=True, eq=False)
class Bidirectional(Layer):
    """One layer along the sequence and one against it, side by side along the features."""

    forward: Cell
    backward: Cell

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        back = self.backward(cg.flip(x, axis=1), mode=mode)
        if self.backward.sequence:
            back = cg.flip(back, axis=1)
        return cg.concat([self.forward(x, mode=mode), back], axis=-1)
