"""Detection of gelu written with plain ops, by the error function or by tanh."""

from collections.abc import Iterator

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.activation import CUBE, ROOT, SLOPE, Gelu
from cgraph.ops.arithmetic import Add, Multiply, Square, TrueDivide
from cgraph.ops.elementary import Erf, Tanh
from cgraph.ops.shape import number_of
from cgraph.passes.patterns import either, is_closed, is_nearly

CURVES = ((Erf, False, {1: ROOT}), (Tanh, True, {1: SLOPE, 3: SLOPE * CUBE}))
DEEPEST = 6  # nested sums and products that are looked through


def fuse_gelu(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """x * 0.5 * (1 + erf(x / sqrt(2))), x * 0.5 * (1 + tanh(a * x + b * x ** 3)) -> one op, if no other node reads the
    values in between.

    The factors stand in any order. A constant may differ by two roundings. Values change in the last places.
    """
    graph = Roots.of(outputs)
    if not graph.has(Erf, Tanh):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, Multiply | TrueDivide) or node.dtype.kind != "f":
            return None
        for number, factors in products(node, DEEPEST):
            if len(factors) != 2 or not is_nearly(number, 0.5, node):
                continue
            for x, share in (factors, factors[::-1]):
                approximate = kind_of_share(share, x)
                if approximate is not None and is_closed(graph, node, (x,)):
                    return apply(Gelu(approximate), new[x])
        return None

    return rebuild(graph, change)


def products(node: Node, depth: int) -> Iterator[tuple[float, tuple[Node, ...]]]:
    """Yield every number and nodes, at most two, whose product the node is."""
    number = number_of(node)
    if number is not None:
        yield number, ()
        return
    yield 1.0, (node,)
    if not depth or not isinstance(node.op, Multiply | TrueDivide):
        return
    x, y = node.operands
    if isinstance(node.op, TrueDivide):
        divisor = number_of(y)
        yield from ((a / divisor, left) for a, left in products(x, depth - 1) if divisor)
        return
    right = list(products(y, depth - 1))
    for a, left in products(x, depth - 1):
        yield from ((a * b, left + more) for b, more in right if len(left + more) <= 2)


def kind_of_share(node: Node, x: Node) -> bool | None:
    """Return whether 1 + erf(...) or 1 + tanh(...) is that of the approximate gelu of `x`; None if it is of neither."""
    for curve, one in either(node, Add):
        if number_of(one) != 1:
            continue
        for kind, approximate, coefficients in CURVES:
            if isinstance(curve.op, kind):
                inner = polynomial(curve.operands[0], x, DEEPEST) or {}
                same = inner.keys() == coefficients.keys()
                if same and all(is_nearly(inner[i], c, x) for i, c in coefficients.items()):
                    return approximate
    return None


def polynomial(node: Node, x: Node, depth: int) -> dict[int, float] | None:
    """Return the coefficients, by degree, of a node that is a polynomial of `x`; None of anything else."""
    number = number_of(node)
    if node is x or number is not None:
        return {1: 1.0} if number is None else {0: number}
    if not depth or not isinstance(node.op, Add | Multiply | Square | TrueDivide):
        return None
    first, last = (polynomial(node.operands[i], x, depth - 1) for i in (0, -1))
    if first is None or last is None:
        return None
    match node.op:
        case Add():
            return {i: first.get(i, 0.0) + last.get(i, 0.0) for i in first | last}
        case Multiply() | Square():
            return product_of(first, last)
        case TrueDivide() if last.keys() == {0} and last[0]:
            return {i: c / last[0] for i, c in first.items()}
    return None


def product_of(p: dict[int, float], q: dict[int, float]) -> dict[int, float]:
    """Return the product of two polynomials."""
    result: dict[int, float] = {}
    for i, a in p.items():
        for j, b in q.items():
            result[i + j] = result.get(i + j, 0.0) + a * b
    return result
