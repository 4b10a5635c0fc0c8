"""Gradient methods: from gradients to directions. A new weight is the old one minus rate times direction."""

from collections.abc import Sequence
from typing import Any, ClassVar

import cgraph as cg
from cgraph import Node, Record
from cgraph.ir.origin import named

RATES = {"learning_rate", "lr", "rate"}  # names of a learning rate
Slots = dict[str, Node]
"""State of a method for one weight, by name, in the shape of the weight."""


class Method(Record):
    """A rule that computes directions from gradients.

    Its numbers are passed by name: the first number of other libraries' methods is the learning rate, which here is
    that of `Optimiser`.

    Raises
        TypeError: a number without a name, or a learning rate
    """

    remembers: ClassVar[tuple[str, ...]] = ()
    """Names of slots; all are zero before the first step."""

    def __new__(cls, *values: float, **named: Any) -> Any:
        name = cls.__name__
        if values or not named.keys().isdisjoint(RATES):
            raise TypeError(
                f"{name}({', '.join(cls._fields)}) takes its numbers by name. For a learning rate of 0.01 pass "
                f"nn.Optimiser(nn.optim.{name}(), rate=0.01)"
            )
        return super().__new__(cls)

    def directions(
        self, weights: Sequence[Node], gradients: Sequence[Node], slots: Sequence[Slots], step: Node
    ) -> list[tuple[Node, Slots]]:
        """Return the direction and the new slots of every weight."""
        directions = []
        for weight, gradient, slot in zip(weights, gradients, slots):
            with named(f"update of {weight.name}"):
                directions.append(self.direction(weight, gradient, slot, step))
        return directions

    def direction(self, weight: Node, gradient: Node, slots: Slots, step: Node) -> tuple[Node, Slots]:
        """Return the direction and the new slots of one weight; `step` is a float32 node that counts from 0."""
        raise NotImplementedError


class GradientDescent(Method):
    """The gradient itself."""

    def direction(self, weight, gradient, slots, step):
        return gradient, {}


class Adagrad(Method):
    """Gradient divided by the root of the sum of all squared gradients. Source: Duchi et al. 2011."""

    eps: float = 1e-8
    remembers: ClassVar[tuple[str, ...]] = ("squares",)

    def direction(self, weight, gradient, slots, step):
        squares = slots["squares"] + cg.square(gradient)
        return gradient / (cg.sqrt(squares) + self.eps), {"squares": squares}


class RMSprop(Method):
    """Gradient divided by the root of a running mean of squared gradients. Source: Hinton, lecture 6e, 2012."""

    decay: float = 0.9
    eps: float = 1e-8
    remembers: ClassVar[tuple[str, ...]] = ("squares",)

    def direction(self, weight, gradient, slots, step):
        squares = self.decay * slots["squares"] + (1 - self.decay) * cg.square(gradient)
        return gradient / (cg.sqrt(squares) + self.eps), {"squares": squares}


class Adam(Method):
    """Running mean divided by the root of the running mean of squares, both with bias correction.

    Source: Kingma and Ba 2014, arXiv:1412.6980.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    remembers: ClassVar[tuple[str, ...]] = ("mean", "squares")

    def direction(self, weight, gradient, slots, step):
        mean = self.beta1 * slots["mean"] + (1 - self.beta1) * gradient
        squares = self.beta2 * slots["squares"] + (1 - self.beta2) * cg.square(gradient)
        first, second = correction(self.beta1, step), correction(self.beta2, step)
        return (mean / first) / (cg.sqrt(squares / second) + self.eps), {"mean": mean, "squares": squares}


class AdamW(Adam):
    """Adam with weight decay that is independent of the gradient.

    Source: Loshchilov and Hutter 2017, arXiv:1711.05101.
    """

    decay: float = 0.01

    def direction(self, weight, gradient, slots, step):
        direction, new_slots = super().direction(weight, gradient, slots, step)
        return direction + self.decay * weight, new_slots


def correction(beta: float, step: Node) -> Node:
    """Return ``1 - beta ** (step + 1)``, computed in float64 to avoid cancellation."""
    exponent = cg.astype(step, "float64") + 1.0
    return cg.astype(1.0 - cg.power(beta, exponent), "float32")
