"""Optimiser: gradient method, learning rate, momentum, clipping and regularisation, as update edges of the graph."""

from collections.abc import Sequence
from numbers import Real

import numpy as np

import cgraph as cg
from cgraph import Node, Record, Var
from cgraph.ir.origin import named
from nn.checks import check_kind
from nn.layer import Parameter
from nn.optim.averaging import Averaging
from nn.optim.clipping import Clipping
from nn.optim.methods import Adam, Method, Slots
from nn.optim.momentum import Momentum
from nn.optim.regularisation import Regularisation
from nn.optim.schedules import Const, Rate


class Optimiser(Record):
    """A rule that changes weights by gradients. All of it is part of the graph of a training step.

    Fields
        method: computes directions from gradients
        rate: learning rate of each step: a number, or a rate of `nn.optim`
        momentum: combines each change with the last one
        clipping: bounds the gradients
        regularisation: penalty on the weights, added to the loss
        averaging: running average of the weights, with which `nn.train` validates and ends
    """

    method: Method = Adam()
    rate: Rate | float = Const(0.001)
    momentum: Momentum | None = None
    clipping: Clipping | None = None
    regularisation: Regularisation | None = None
    averaging: Averaging | None = None

    def __post_init__(self) -> None:
        check_kind("method", self.method, Method, "a method of nn.optim, such as nn.optim.Adam()")
        check_kind(
            "rate",
            self.rate,
            Rate | Real,
            "a number, or a rate of nn.optim, such as nn.optim.Cosine(0.01, steps=100)",
        )
        check_kind("momentum", self.momentum, Momentum | None, "a momentum of nn.optim, or None")
        check_kind("clipping", self.clipping, Clipping | None, "a clipping of nn.optim, or None")
        check_kind("regularisation", self.regularisation, Regularisation | None, "one of nn.optim, or None")
        check_kind("averaging", self.averaging, Averaging | None, "an average of nn.optim, or None")

    @property
    def schedule(self) -> Rate:
        """The learning rate of each step; a number is constant."""
        return self.rate if isinstance(self.rate, Rate) else Const(float(self.rate))

    @staticmethod
    def of(optimiser: "Optimiser | Method | None") -> "Optimiser":
        """Return an Optimiser: a method without a rate has the default rate, and Adam is the default method."""
        return (
            optimiser
            if isinstance(optimiser, Optimiser)
            else Optimiser()
            if optimiser is None
            else Optimiser(optimiser)
        )

    def state(self, parameters: dict[str, Parameter]) -> dict[str, Var]:
        """Return the Vars of the state between steps, by name: the step number and the slots of each weight."""
        names = self.method.remembers + (("change",) if self.momentum else ())
        variables = {"step": Var((), "int64", "step").assign(0), **self.schedule.state()}
        for path, x in parameters.items():
            for name in names:
                variables[f"{path}/{name}"] = Var(x.shape, x.dtype, f"{path}/{name}").assign(
                    np.broadcast_to(x.dtype.type(0), x.shape)
                )
            if self.averaging is not None:
                variables[f"{path}/average"] = Var(x.shape, x.dtype, f"{path}/average").assign(x.value)
        return variables

    def penalty(self, parameters: dict[str, Parameter]) -> Node | None:
        """Return the penalty of weights with two axes or more, which excludes biases and scales; None for none."""
        if self.regularisation is None:
            return None
        total = None
        for x in parameters.values():
            if x.ndim >= 2:
                one = self.regularisation.penalty(x)
                total = one if total is None else total + one
        return total

    def updates(
        self, parameters: dict[str, Parameter], gradients: Sequence[Node], state: dict[str, Var]
    ) -> tuple[dict[Var, Node], Node]:
        """Return the update edges of the weights and of `state`, and the learning rate."""
        step = cg.astype(state["step"], "float32")
        rate = self.schedule.current(step, state)
        if self.clipping is not None:
            gradients = self.clipping.clip(gradients)
        weights = list(parameters.values())
        slots: list[Slots] = [{name: state[f"{path}/{name}"] for name in self.method.remembers} for path in parameters]
        edges: dict[Var, Node] = {state["step"]: state["step"] + 1}
        directions = self.method.directions(weights, gradients, slots, step)
        for (path, weight), (direction, new_slots) in zip(parameters.items(), directions):
            with named(f"update of {path}"):
                change = rate * direction
                if self.momentum is not None:
                    last = state[f"{path}/change"]
                    edges[last], change = self.momentum.changes(last, change)
                edges[weight] = weight - change
            edges.update({state[f"{path}/{name}"]: x for name, x in new_slots.items()})
        if self.averaging is not None:
            share = self.averaging.share(step)
            for path, weight in parameters.items():
                last = state[f"{path}/average"]
                edges[last] = self.averaging.average(last, edges[weight], share)
        return edges, rate
