"""Recurrent layers: one cell, applied to each step of a sequence in turn.

Operands are ``[n, steps, inputs]``. The result is the last state ``[n, units]``, or with ``sequence=True`` the states
after every step, ``[n, steps, units]``. The steps are unrolled, so the graph grows with the sequence and the planner
plans every step. ``x W`` is computed step by step: with one product for all steps, the gradient of each step's slice
would be as large as the product.
"""

from dataclasses import field
from typing import ClassVar

import numpy as np

import cgraph as cg
from cgraph import Node, ShapeError
from nn.checks import check_axes
from nn.init import GLOROT_UNIFORM, ZEROS, Initialiser, Orthogonal
from nn.layer import Layer, Parameter
from nn.layers.function import Function, activation
from nn.mode import Mode
from nn.torch_names import TorchNames


class RecurrentCell(Layer):
    """Base of all cells: weights of operand and state, and a bias, for `gates` gates side by side."""

    gates: ClassVar[int] = 1
    inputs: int
    units: int
    sequence: bool = False
    start: Initialiser = GLOROT_UNIFORM
    weight: Parameter = field(init=False)
    state_weight: Parameter = field(init=False)
    bias: Parameter = field(init=False)

    def __post_init__(self) -> None:
        width = self.gates * self.units
        self.hold(weight=Parameter((self.inputs, width), self.start))
        self.hold(state_weight=Parameter((self.units, width), Orthogonal()), bias=Parameter((width,), ZEROS))

    def begin(self, n: int) -> tuple[Node, ...]:
        """Return the state before the first step; its first part is the result."""
        return (cg.zeros((n, self.units)),)

    def step(self, x: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        """Return the state after a step that reads x ``[n, inputs]``."""
        raise NotImplementedError

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        check_axes(self, x, "n steps inputs")
        n, steps, _ = x.shape
        if not steps:
            raise ShapeError(f"{type(self).__name__} got {x!r}, a sequence without steps. Pass at least one step.")
        state, states = self.begin(n), []
        for t in range(steps):
            state = self.step(x[:, t], state)
            states.append(state[0])
        return cg.stack(states, axis=1) if self.sequence else states[-1]

    def from_torch(self, names: TorchNames) -> dict[str, np.ndarray]:
        """Return values of PyTorch's layer (``weight_ih_l0``) or cell; its two biases are added."""
        end = "_l0" if "weight_ih_l0" in names else ""
        arrays = {"weight": names[f"weight_ih{end}"].T, "state_weight": names[f"weight_hh{end}"].T}
        return arrays | self.torch_bias(names[f"bias_ih{end}"], names[f"bias_hh{end}"])

    def torch_bias(self, operand: np.ndarray, state: np.ndarray) -> dict[str, np.ndarray]:
        """Return the bias for PyTorch's two biases."""
        return {"bias": operand + state}


class Recurrent(RecurrentCell):
    """``h = f(x W + h U + b)``. Source: Elman 1990."""

    function: Function = "tanh"

    def step(self, x: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        both = cg.matmul(x, self.weight) + cg.matmul(state[0], self.state_weight) + self.bias
        return (activation(self.function)(both),)


class LSTM(RecurrentCell):
    """Gates in the order input, forget, cell, output: ``c = f * c + i * g``, ``h = o * tanh(c)``; see cg.lstm_cell."""

    gates: ClassVar[int] = 4

    def begin(self, n: int) -> tuple[Node, ...]:
        zero = cg.zeros((n, self.units))
        return zero, zero

    def step(self, x: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        h, c = state
        return cg.lstm_cell(x, h, c, self.weight, self.state_weight, self.bias)


class GRU(RecurrentCell):
    """Gates in the order update, reset, candidate: ``h = z * h + (1 - z) * n``; see cg.gru_cell.

    Fields
        state_bias: bias of the candidate, multiplied by the reset gate
    """

    gates: ClassVar[int] = 3
    state_bias: Parameter = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.hold(state_bias=Parameter((self.units,), ZEROS))

    def step(self, x: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        return (cg.gru_cell(x, state[0], self.weight, self.state_weight, self.bias, self.state_bias),)

    def from_torch(self, names: TorchNames) -> dict[str, np.ndarray]:
        """Return values by path; PyTorch has the reset gate before the update gate."""
        arrays = super().from_torch(names)
        return arrays | {name: self._swap_gates(arrays[name]) for name in ("weight", "state_weight", "bias")}

    def torch_bias(self, operand: np.ndarray, state: np.ndarray) -> dict[str, np.ndarray]:
        n = 2 * self.units
        return {"bias": np.concatenate([operand[:n] + state[:n], operand[n:]]), "state_bias": state[n:]}

    def _swap_gates(self, gates: np.ndarray) -> np.ndarray:
        """Return gates with the first two swapped."""
        first, second, third = np.split(gates, 3, axis=-1)
        return np.concatenate([second, first, third], axis=-1)


class Bidirectional(Layer):
    """Two cells, forward and backward along the sequence, concatenated along the features."""

    forward: RecurrentCell
    backward: RecurrentCell

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        back = self.backward(cg.flip(x, axis=1), mode=mode)
        if self.backward.sequence:
            back = cg.flip(back, axis=1)
        return cg.concat([self.forward(x, mode=mode), back], axis=-1)
