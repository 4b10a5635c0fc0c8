"""gradient(y, xs): graph in, graph out.

Reverse mode walks the graph once from `y` down, asking each op for the gradient of its operands. Forward mode is
reverse mode twice: the gradient is linear in the gradient `u` of the result, so its own gradient with respect to `u`
carries a tangent forward (Townsend 2017, "A new trick for calculating Jacobian vector products").
"""

from collections.abc import Sequence
from typing import Any, overload

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import OPS, Node
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import descendants, post_order
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
    single = isinstance(xs, Node)
    wanted = [xs] if isinstance(xs, Node) else list(xs)
    found = gradients(y, wanted, seed_of(y, seed))
    result = [found.get(x) if found.get(x) is not None else OPS["zeros_like"](x) for x in wanted]
    return result[0] if single else result


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


def gradients(y: Node, xs: Sequence[Node], seed: Node) -> dict[Node, Node]:
    """The gradient for every node between `xs` and `y`, both included."""
    order = post_order([y])
    relevant = descendants(order, xs)
    stop = set(xs)
    sums: dict[Any, Node] = {y: seed}
    for node in reversed(order):
        if node not in relevant or (node in stop and node is not y and not _passes_on(node, stop, relevant)):
            continue
        g = _gradient_of(node, sums)
        if g is None or not any(x in relevant for x in node.operands):
            continue
        if isinstance(node.op, Item):
            _add(sums, (node.operands[0], node.op.index), g)
            continue
        for x, gx in zip(node.operands, node.op.grad(node, g)):
            if gx is not None and x in relevant and (isinstance(x.spec, Bundle) or x.dtype.kind == "f"):
                _add(sums, x, gx)
    return sums


def _passes_on(node: Node, stop: set[Node], relevant: set[Node]) -> bool:
    """A wanted node that itself depends on another wanted node hands its gradient on."""
    return any(x in relevant for x in node.operands)


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
    """The change of `y` when each of `xs` changes along its tangent: forward mode, a node of y's spec."""
    u = Var(y.shape, y.dtype, "cotangent")
    back = gradient(y, list(xs), u)
    parts = [gradient(g, u, t) for g, t in zip(back, tangents) if u in descendants(post_order([g]), [u])]
    total = parts[0] if parts else OPS["zeros_like"](y)
    for part in parts[1:]:
        total = total + part
    return total


def hessian_vector_product(y: Node, x: Node, v: Node) -> Node:
    """The second derivative of `y` (one element) times `v`: the gradient of (gradient of y) · v."""
    return gradient(OPS["sum"](gradient(y, x) * v), x)
