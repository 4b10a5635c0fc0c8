"""stop_gradient and custom_gradient: views of an operand's bytes with another gradient."""

from collections.abc import Callable, Sequence
from typing import Any

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Spec
from cgraph.kernels.kernel import View
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import ViewOp


class StopGradient(ViewOp):
    """The operand itself, treated as a constant by gradients."""

    def infer(self, x: Spec) -> Spec:
        return x

    def meaning(self, x):
        return x

    def alias(self, x: View) -> View:
        return x

    def grad(self, node, g):
        return (None,)


class CustomGradient(ViewOp):
    """The first operand, with gradients for the other operands given by a function.

    Fields
        backward: takes the gradient of the result, returns the gradients of the operands after the first
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
            raise ShapeError(
                f"custom_gradient at {node.where}: backward returned {specs[0]} for {specs[1]}; return equal specs"
            )
        return None, *gradients


@public
def stop_gradient(x: Any) -> Node:
    """Return `x` itself, through which no gradient flows."""
    return apply(StopGradient(), as_node(x))


@public
def custom_gradient(y: Any, xs: Sequence[Any], backward: Callable[[Node], Sequence[Node]]) -> Node:
    """Return `y` with another gradient: ``backward(g)`` returns those of `xs`, and none flows through `y` itself.

    Parameters
        y: the value
        xs: the nodes that receive a gradient
        backward: takes the gradient of `y`, returns one node for each of `xs`, of its shape and dtype
    """
    return apply(CustomGradient(backward), *(as_node(v) for v in (y, *xs)))
