"""A loop that a condition ends as one op, with its public functions."""

from collections.abc import Callable, Sequence
from typing import Any, Self

from cgraph.errors import GraphError, NoGradientError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Bundle, Spec
from cgraph.ops.closure import close, inline
from cgraph.ops.conditional import Conditional
from cgraph.ops.leaf import Var, as_node
from cgraph.ops.loop import Body, Loop, Structured
from cgraph.ops.nested import Values, like, nodes_of, ordered, structure
from cgraph.ops.shape import items, reshape
from cgraph.record import replace


class WhileLoop(Structured):
    """Rounds of a body as long as a condition is True.

    Operands
        carry: the initial state
        shared: values that the condition and every round read
    Fields
        condition: from state and shared values to one bool of rank 0
        body: from state and shared values to the next state
        maximum: of rounds; None if nothing but the condition ends them
    Result
        a Bundle: the final state
    """

    can_fail = True  # an endless loop never gets to what comes behind it
    condition: Body
    body: Body
    maximum: int | None = None

    @property
    def bodies(self) -> tuple[Body, ...]:
        return self.condition, self.body

    def with_bodies(self, bodies: Sequence[Body]) -> Self:
        return replace(self, condition=bodies[0], body=bodies[1])

    def infer(self, *specs: Spec) -> Bundle:
        self.check(specs, [x.spec for x in self.body.inputs])
        return Bundle(tuple(x.spec for x in self.body.carry))

    def meaning(self, *operands):
        count = len(self.body.carry)
        state, shared, rounds = operands[:count], operands[count:], 0
        while rounds != self.maximum and self.condition.meaning((*state, *shared))[0]:
            state, rounds = tuple(self.body.meaning((*state, *shared))), rounds + 1
        return state

    def grad(self, node, g):
        """Differentiate the loop of `maximum` rounds, those after the last one without effect."""
        if self.maximum is None:
            raise NoGradientError(
                "while_loop has no gradient without a maximum, since it stores the state of every round; "
                "pass maximum= with the most rounds that it may run"
            )
        body = self.body
        inputs = [Var(x.shape, x.dtype, x.name) for x in body.inputs]
        carry, shared = inputs[: len(body.carry)], inputs[len(body.carry) :]
        (p,) = inline(self.condition.shared, self.condition.ys, inputs)
        round_ = Body((), (), body.inputs, (), body.next)
        rest = Body((), (), body.inputs, (), body.carry)
        after = items(apply(Conditional(round_, rest), p, *inputs))
        loop = Loop(Body(tuple(carry), (), tuple(shared), after, ()), self.maximum)
        bounded = apply(loop, *node.operands)
        return loop.grad(bounded, g)


@public
def while_loop(
    condition: Callable[[Values], Any], body: Callable[[Values], Values], state: Values, maximum: int | None = None
) -> Values:
    """Repeat ``state = body(state)`` as long as ``condition(state)`` is True, and return the last state.

    Both functions are called once, with Vars in place of the state; their kernels run in native code.

    Parameters
        condition: takes the state and returns one bool
        body: takes the state and returns the next one, of the same structure, shapes and dtypes
        state: the initial state: a node or array, or nested tuples, lists and dicts of them
        maximum: of rounds; the loop ends there even if the condition is still True. Needed for gradients, which store
            the state of each of them
    Raises
        GraphError: there is no state, or `maximum` is negative
        ShapeError: the condition has several elements, or the next state differs from the present one
    Example
        >>> x = cg.Var((), "float64")
        >>> root = cg.while_loop(lambda y: abs(y * y - x) > 1e-9, lambda y: (y + x / y) / 2, x)
        >>> round(float(cg.compile(root, x)(2.0)), 6)
        1.414214
    """
    carry = nodes_of(state)
    if not carry:
        raise GraphError("while_loop: there is no state, so the condition can never change; pass the initial state")
    if maximum is not None and maximum < 0:
        raise GraphError(f"while_loop: maximum={maximum} is negative; pass a number of rounds, or None")
    names = [Var(x.shape, x.dtype, f"state{i}") for i, x in enumerate(carry)]
    p = condition_node("while_loop", condition(like(state, names)))
    after = next_state("while_loop", state, body(like(state, names)), carry)
    closed = close(names, [p, *after])
    test = Body((), (), (*names, *closed.names), (), closed.results[:1])
    round_ = Body(tuple(names), (), closed.names, closed.results[1:], ())
    outputs = items(apply(WhileLoop(test, round_, maximum), *carry, *closed.shared))
    return like(state, outputs)


def condition_node(name: str, p: Any) -> Node:
    """Return a condition as a bool of rank 0. ShapeError if it has several elements."""
    p = as_node(p).astype(bool)
    if p.size != 1:
        raise ShapeError(
            f"{name}: the condition {p.name} {p.spec} has {p.size} elements; reduce it with any or all, or use where"
        )
    return reshape(p, ())


def next_state(name: str, state: Values, after: Values, carry: Sequence[Node]) -> list[Node]:
    """Return the nodes of the next state. ShapeError if its structure or specs differ from those of the present one."""
    after = ordered(state, after)
    nodes = nodes_of(after)
    if [x.spec for x in nodes] != [x.spec for x in carry] or structure(after) != structure(state):
        before, after_ = (", ".join(str(x.spec) for x in xs) or "none" for xs in (carry, nodes))
        raise ShapeError(
            f"{name}: the state is {before} before a round and {after_} after it; "
            "return the same structure, shapes and dtypes"
        )
    return nodes
