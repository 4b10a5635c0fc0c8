"""gradient(y, xs): graph in, graph out.

Reverse mode walks the graph once from `y` down, asking each op for the gradient of its operands. Forward mode is
reverse mode twice: the gradient is linear in the gradient `u` of the result, so its own gradient with respect to `u`
carries a tangent forward, whatever `u` is (Townsend 2017, "A new trick for calculating Jacobian vector products").
"""

from collections.abc import Sequence
from typing import Any, overload

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, NodeLike, locates_errors
from cgraph.ir.roots import rebuild
from cgraph.ops.leaf import Var, as_node
from cgraph.ops.pullback import pullback, seed_of
from cgraph.ops.shape import zeros_like


@overload
def gradient(y: NodeLike, xs: Node, seed: NodeLike | None = None) -> Node: ...
@overload
def gradient(y: NodeLike, xs: Sequence[Node], seed: NodeLike | None = None) -> list[Node]: ...
@locates_errors
def gradient(y: NodeLike, xs: Node | Sequence[Node], seed: NodeLike | None = None) -> Any:
    """The gradient of `y` with respect to each of `xs`, as nodes of their shapes.

    Parameters
        y: a float node; of any shape, and perhaps complex, when `seed` is given, else of one element
        xs: one node or several; zeros for those that `y` does not depend on; of a real `y`, the gradient for a complex
            ``a + ib`` is ``dy/da - i dy/db``
        seed: the gradient with respect to `y` itself, of its shape; ones by default
    Raises
        NoGradientError: an op on the way has no gradient; it is named
        ShapeError, DTypeError: `y` has several elements and no seed, or is no float
    """
    nodes = [xs] if isinstance(xs, Node) else list(xs)
    result = pullback([y], [seed_of(y, seed)], nodes)
    return result[0] if isinstance(xs, Node) else result


@locates_errors
def jvp(y: NodeLike, xs: Node | Sequence[Node], tangents: Any) -> Node:
    """The change of `y` when each of `xs` changes along its tangent: forward mode, a node of y's spec.

    Parameters
        y: a float node of any shape
        xs, tangents: a node and its tangent, or as many of one as of the other; pairs of equal specs; a tangent is a
            node or an array
    Raises
        NoGradientError: an op on the way has no gradient
        ShapeError, DTypeError: a tangent does not fit, or there are not as many; `y` is no float
    """
    nodes, along = pairs(xs, tangents, "tangent")
    u = Var(y.shape, y.dtype, "cotangent")
    return substitute(pullback(gradient(y, nodes, u), along, [u])[0], u, zeros_like(y))


def pairs(xs: Node | Sequence[Node], along: Any, what: str) -> tuple[list[Node], list[Node]]:
    """Nodes, and a node of the same spec for each. ShapeError where one does not fit, or there are not as many."""
    nodes, vectors = ([xs], [along]) if isinstance(xs, Node) else (list(xs), list(along))
    if len(nodes) != len(vectors):
        raise ShapeError(f"{len(nodes)} nodes to change, {len(vectors)} {what}s")
    directions = [as_node(v, x.dtype) for x, v in zip(nodes, vectors)]
    for x, v in zip(nodes, directions):
        if x.spec != v.spec:
            raise ShapeError(f"{what} {v.spec} for {x.name} {x.spec}")
    return nodes, directions


def substitute(y: Node, old: Node, new: Node) -> Node:
    """`y` with `new` in the place of `old`."""
    return rebuild((y,), lambda node, _: new if node is old else None)[0]


@overload
def hessian_vector_product(y: NodeLike, xs: Node, v: Any) -> Node: ...
@overload
def hessian_vector_product(y: NodeLike, xs: Sequence[Node], v: Sequence[Any]) -> list[Node]: ...
@locates_errors
def hessian_vector_product(y: NodeLike, xs: Node | Sequence[Node], v: Any) -> Any:
    """The second derivative of `y` (one element) with respect to `xs` times `v`, of their specs: forward over reverse.

    `xs` is one node or several, `v` a node or an array for each.

    Raises
        NoGradientError, ShapeError, DTypeError: as for `gradient` and `jvp`
    """
    nodes, along = pairs(xs, v, "direction")
    products = pullback(gradient(y, nodes), along, nodes)
    return products[0] if isinstance(xs, Node) else products
