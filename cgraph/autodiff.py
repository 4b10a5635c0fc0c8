"""gradient(y, xs): graph in, graph out.

Reverse mode walks the graph once from `y` down, asking each op for the gradient of its operands. Forward mode is
reverse mode twice: the gradient is linear in the gradient `u` of the result, so its own gradient with respect to `u`
carries a tangent forward, whatever `u` is (Townsend 2017, "A new trick for calculating Jacobian vector products").
"""

from collections.abc import Sequence
from typing import Any, overload

from cgraph.errors import DTypeError, NoGradientError, ShapeError
from cgraph.ir.graph import OPS, Node, apply, public
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import descendants, post_order, rebuild
from cgraph.ops.leaf import Var
from cgraph.ops.shape import Item, items


@overload
def gradient(y: Node, xs: Node, seed: Node | None = None) -> Node: ...
@overload
def gradient(y: Node, xs: Sequence[Node], seed: Node | None = None) -> list[Node]: ...
def gradient(y: Node, xs: Node | Sequence[Node], seed: Node | None = None) -> Any:
    """The gradient of `y` with respect to each of `xs`, as nodes of their shapes.

    Parameters
        y: a float node; of any shape when `seed` is given, else of one element
        xs: one node or several; zeros for those that `y` does not depend on
        seed: the gradient with respect to `y` itself, of its shape; ones by default
    Raises
        NoGradientError: an op on the way has no gradient; it is named
        ShapeError, DTypeError: `y` has several elements and no seed, or is no float
    """
    wanted = [xs] if isinstance(xs, Node) else list(xs)
    result = pullback([y], [seed_of(y, seed)], wanted)
    return result[0] if isinstance(xs, Node) else result


@public
def pullback(ys: Sequence[Node], seeds: Sequence[Node], xs: Sequence[Node]) -> list[Node]:
    """The gradient of the sum of all ``ys * seeds`` with respect to each of `xs`: one walk for several results.

    Parameters
        ys: float nodes
        seeds: for each of them the gradient with respect to it, of its shape
        xs: float nodes; zeros for those that no result depends on
    Raises
        NoGradientError, ShapeError, DTypeError: as for `gradient`
    """
    for x in xs:
        if x.dtype.kind != "f":
            raise DTypeError(f"gradient: {x.name} {x.spec} is no float, so there is no gradient with respect to it")
    sums: dict[Any, Node] = {}
    for y, seed in zip(ys, seeds):
        _add(sums, y, seed_of(y, seed))
    found = gradients(ys, xs, sums)
    return [found[x] if x in found else OPS["zeros_like"](x) for x in xs]


def seed_of(y: Node, seed: Node | None) -> Node:
    if y.dtype.kind != "f":
        raise DTypeError(f"gradient: {y.name} {y.spec} is no float, so it has no gradient")
    if seed is None:
        if y.size != 1:
            raise ShapeError(
                f"gradient: {y.name} {y.spec} has {y.size} elements; give a seed, or take the gradient of its sum"
            )
        return OPS["ones_like"](y)
    if seed.spec != y.spec:
        raise ShapeError(f"gradient: seed {seed.spec} for {y.name} {y.spec}")
    return seed


def gradients(ys: Sequence[Node], xs: Sequence[Node], sums: dict[Any, Node]) -> dict[Any, Node]:
    """`sums`, which has the gradients of `ys`, with those of every node between `xs` and `ys`."""
    order = post_order(ys)
    relevant = descendants(order, xs)
    for node in reversed(order):
        if not any(x in relevant for x in node.operands):
            continue
        g = _gradient_of(node, sums)
        if g is None:
            continue
        if isinstance(node.op, Item):
            _add(sums, (node.operands[0], node.op.index), g)
            continue
        for x, gx in zip(node.operands, operand_gradients(node, g)):
            if gx is not None and x in relevant and x.dtype.kind == "f":
                _add(sums, x, gx)
    return sums


def operand_gradients(node: Node, g: Any) -> "tuple[Node | None, ...]":
    """What the op says. NoGradientError names the op, its operands and the user's line."""
    try:
        return node.op.grad(node, g)
    except NoGradientError as error:
        named = ", ".join(f"{x.name} {x.spec}" for x in node.operands)
        raise NoGradientError(f"gradient: {error} (made at {node.where} of {named})") from None


def _gradient_of(node: Node, sums: dict[Any, Node]) -> Any:
    """What has been added up for a node; for a Bundle, one per result, zeros where nobody asked."""
    if not isinstance(node.spec, Bundle):
        return sums.get(node)
    results = items(node)
    given = [sums.get((node, i)) for i in range(len(results))]
    if all(g is None for g in given):
        return None
    return tuple(OPS["zeros_like"](x) if g is None else g for g, x in zip(given, results))


def _add(sums: dict[Any, Node], key: Any, g: Node) -> None:
    sums[key] = sums[key] + g if key in sums else g


def jvp(y: Node, xs: Sequence[Node], tangents: Sequence[Node]) -> Node:
    """The change of `y` when each of `xs` changes along its tangent: forward mode, a node of y's spec.

    Parameters
        y: a float node of any shape
        xs, tangents: as many of one as of the other, pairs of equal specs
    Raises
        NoGradientError: an op on the way has no gradient
        ShapeError, DTypeError: a tangent does not fit, or there are not as many; `y` is no float
    """
    if len(xs) != len(tangents):
        raise ShapeError(f"jvp: {len(xs)} nodes to change, {len(tangents)} tangents")
    for x, t in zip(xs, tangents):
        if x.spec != t.spec:
            raise ShapeError(f"jvp: tangent {t.spec} for {x.name} {x.spec}")
    u = Var(y.shape, y.dtype, "cotangent")
    return replaced(pullback(gradient(y, list(xs), u), tangents, [u])[0], u, OPS["zeros_like"](y))


def replaced(y: Node, old: Node, new: Node) -> Node:
    """`y` with `new` in the place of `old`."""

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node is old:
            return new
        return node if all(a is b for a, b in zip(operands, node.operands)) else apply(node.op, *operands)

    return rebuild((y,), change)[0]


def hessian_vector_product(y: Node, x: Node, v: Node) -> Node:
    """The second derivative of `y` (one element) with respect to `x` times `v`, of x's spec: forward over reverse.

    Raises
        NoGradientError, ShapeError, DTypeError: as for `gradient` and `jvp`
    """
    if v.spec != x.spec:
        raise ShapeError(f"hessian_vector_product: direction {v.spec} for {x.name} {x.spec}")
    return gradient(gradient(y, x), x, seed=v)
