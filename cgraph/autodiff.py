"""Differentiation: a graph with gradient nodes from a graph.

Reverse mode walks the graph once from `y` to its operands and calls each op's `grad`. Forward mode is reverse mode
twice: the gradient is linear in the gradient `u` of the result, so its own gradient with respect to `u` carries a
tangent forward, for any `u` (Townsend 2017, "A new trick for calculating Jacobian vector products").
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
    """Return the gradient of `y` with respect to each of `xs`, as nodes of their shapes.

    Parameters
        y: a float node of one element; with `seed`, of any shape, and possibly complex
        xs: one node or several; the gradient is zero for those on which `y` does not depend. For a real `y` and a
            complex ``a + ib`` it is ``dy/da - i dy/db``
        seed: the gradient with respect to `y` itself, of its shape; ones by default
    Raises
        NoGradientError: an op on the path has no gradient; the message names it
        ShapeError, DTypeError: `y` has several elements and no seed, or is not a float
    """
    nodes = [xs] if isinstance(xs, Node) else list(xs)
    result = pullback([y], [seed_of(y, seed)], nodes)
    return result[0] if isinstance(xs, Node) else result


@locates_errors
def jvp(y: NodeLike, xs: Node | Sequence[Node], tangents: Any) -> Node:
    """Return the directional derivative of `y` along tangents of `xs`: forward mode, a node of y's spec.

    Parameters
        y: a float node of any shape
        xs, tangents: a node and its tangent, or equally many of both; a tangent is a node or array of the same spec
    Raises
        NoGradientError: an op on the path has no gradient
        ShapeError, DTypeError: a tangent does not fit, or their number; `y` is not a float
    """
    nodes, along = pairs(xs, tangents, "tangent")
    u = Var(y.shape, y.dtype, "cotangent")
    return substitute(pullback(gradient(y, nodes, u), along, [u])[0], u, zeros_like(y))


def pairs(xs: Node | Sequence[Node], along: Any, what: str) -> tuple[list[Node], list[Node]]:
    """Return nodes, and a node of the same spec for each. ShapeError if one does not fit, or their number."""
    nodes, vectors = ([xs], [along]) if isinstance(xs, Node) else (list(xs), list(along))
    if len(nodes) != len(vectors):
        raise ShapeError(f"there are {len(nodes)} nodes and {len(vectors)} {what}s; pass one {what} for each node")
    directions = [as_node(v, x.dtype) for x, v in zip(nodes, vectors)]
    for x, v in zip(nodes, directions):
        if x.spec != v.spec:
            raise ShapeError(f"{what} {v.spec} does not fit {x.name} {x.spec}; pass one of the same shape and dtype")
    return nodes, directions


def substitute(y: Node, old: Node, new: Node) -> Node:
    """Return `y` with `old` replaced by `new`."""
    return rebuild((y,), lambda node, _: new if node is old else None)[0]


@overload
def hessian_vector_product(y: NodeLike, xs: Node, v: Any) -> Node: ...
@overload
def hessian_vector_product(y: NodeLike, xs: Sequence[Node], v: Sequence[Any]) -> list[Node]: ...
@locates_errors
def hessian_vector_product(y: NodeLike, xs: Node | Sequence[Node], v: Any) -> Any:
    """Return the product of the Hessian of `y` (one element) with `v`, by forward over reverse mode.

    Parameters
        xs: one node or several, with respect to which the Hessian is taken
        v: a node or an array of the same spec for each

    Raises
        NoGradientError, ShapeError, DTypeError: as for `gradient` and `jvp`
    """
    nodes, along = pairs(xs, v, "direction")
    products = pullback(gradient(y, nodes), along, nodes)
    return products[0] if isinstance(xs, Node) else products
