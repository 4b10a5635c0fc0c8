"""Where gradients stop, and where a user says what they are: views of an operand's bytes."""

from collections.abc import Callable, Sequence
from typing import Any

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Spec
from cgraph.kernels.kernel import View
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import ViewOp


class StopGradient(ViewOp):
    """The operand itself, as if it were a constant for gradients."""

    def infer(self, x: Spec) -> Spec:
        return x

    def meaning(self, x):
        return x

    def alias(self, x: View) -> View:
        return x

    def grad(self, node, g):
        return (None,)


class CustomGradient(ViewOp):
    """The first operand, with a gradient for the others that a function makes.

    Fields
        backward: given the gradient for the result, the nodes that are the gradients for the operands after the first
    """

    backward: Callable[[Node], Sequence[Node]]

    def infer(self, y: Spec, *xs: Spec) -> Spec:
        return y

    def meaning(self, y, *xs):
        return y

    def alias(self, y: View, *xs: View) -> View:
        return y

    def grad(self, node, g):
        xs, gradients = node.operands[1:], tuple(self.backward(g))
        if len(gradients) != len(xs) or any(gx.spec != x.spec for gx, x in zip(gradients, xs)):
            specs = [", ".join(str(x.spec) for x in group) for group in (gradients, xs)]
            raise ShapeError(f"custom_gradient at {node.where}: gradients {specs[0]} for {specs[1]}")
        return None, *gradients


@public
def stop_gradient(x: Any) -> Node:
    """`x` itself, through which no gradient flows."""
    return apply(StopGradient(), as_node(x))


@public
def custom_gradient(y: Any, xs: Sequence[Any], backward: Callable[[Node], Sequence[Node]]) -> Node:
    """`y` with another gradient: ``backward(g)`` gives the nodes for `xs`, and nothing flows through `y` itself.

    Parameters
        y: what is computed
        xs: the nodes that get a gradient
        backward: given the gradient for `y`, one node for each of `xs`, of its shape and dtype
    """
    return apply(CustomGradient(backward), *(as_node(v) for v in (y, *xs)))
