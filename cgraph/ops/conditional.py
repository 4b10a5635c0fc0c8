"""A choice between two sub-graphs as one op, of which a run computes one."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from cgraph.ir.graph import apply
from cgraph.ir.spec import Bundle, Spec
from cgraph.ops.leaf import Var
from cgraph.ops.loop import Body, Structured, align_floats, select_floats
from cgraph.ops.pullback import pullback
from cgraph.ops.shape import items
from cgraph.record import replace


class Conditional(Structured):
    """The results of the first body if a condition is True, else those of the other.

    Operands
        p: one bool, of rank 0
        shared: the values that the bodies read
    Result
        a Bundle
    """

    first: Body
    other: Body

    @property
    def name(self) -> str:
        return "cond"

    @property
    def bodies(self) -> tuple[Body, ...]:
        return self.first, self.other

    def with_bodies(self, bodies: Sequence[Body]) -> Self:
        return replace(self, first=bodies[0], other=bodies[1])

    def infer(self, p: Spec, *specs: Spec) -> Bundle:
        for body in self.bodies:
            self.check([p, *specs], [Spec((), np.dtype(bool)), *(x.spec for x in body.shared)])
            self.check([x.spec for x in body.ys], [x.spec for x in self.first.ys])
        return Bundle(tuple(x.spec for x in self.first.ys))

    def meaning(self, p, *operands):
        return tuple((self.first if p else self.other).meaning(operands))

    def grad(self, node, g):
        """Build the choice between the gradients of both bodies."""
        p, *operands = node.operands
        names = self.first.shared
        to_ys = [Var(y.shape, y.dtype, f"to_y{i}") for i, y in enumerate(self.first.ys)]
        bodies = [Body((), (), (*body.shared, *to_ys), (), tuple(input_gradients(body, to_ys))) for body in self.bodies]
        if not bodies[0].ys:
            return (None,) * len(node.operands)
        gradients = items(apply(Conditional(*bodies), p, *operands, *g))
        return (None, *align_floats(names, gradients))


def input_gradients(body: Body, to_ys: Sequence[Var]) -> list[Any]:
    """Return the gradients of the floats that a body reads from those of its results."""
    sources = select_floats(body.shared, body.shared)
    return pullback(select_floats(body.ys, body.ys), select_floats(body.ys, to_ys), sources) if sources else []
