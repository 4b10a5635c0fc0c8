"""Distances of computed lengths: `n + 1` is one more than `n`, whatever n is.

A length is a sum of terms, elements of other values with a whole coefficient. Integers wrap around alike in both forms,
so that an equation of two sums holds exactly.
"""

from collections import Counter
from math import inf

from cgraph.formats.onnx.dynamic.bounds import Element, Length, LengthBounds, Size, node_of
from cgraph.ir.graph import Node
from cgraph.ops.arithmetic import Add, FloorDivide, Maximum, Minimum, Multiply, Negative, Subtract
from cgraph.ops.compare import Where

MOST_VISITED = 64  # nodes of one sum; those beyond are terms
DEEPEST = 6  # nesting depth of selected numbers whose parts are looked at


def exact_distance(limits: LengthBounds, x: Length, y: Length) -> int | None:
    """Return ``x - y`` if it is one number in all runs; None if it is not known to be one."""
    if isinstance(x, int) and isinstance(y, int):
        return x - y
    terms, constant = difference(limits, node_of(x), node_of(y))
    return None if terms else constant


def most_distance(limits: LengthBounds, x: Length, y: Length, depth: int = DEEPEST) -> float:
    """Return an upper bound of ``x - y``; infinite if there is none. A sum of terms that wraps around can exceed it."""
    element = element_of(limits, node_of(x))
    if depth and isinstance(element, Element) and element.node.size == 1:
        op, operands = element.node.op, element.node.operands
        if isinstance(op, Where | Maximum | Minimum):
            choose = min if isinstance(op, Minimum) else max
            return choose(most_distance(limits, Size(part, -inf, inf), y, depth - 1) for part in operands[-2:])
    terms, constant = difference(limits, node_of(x), node_of(y))
    return constant + sum(most_of_term(limits, term, times) for term, times in terms.items())


def most_of_term(limits: LengthBounds, term: Element, times: int) -> float:
    """Return the upper bound of a term."""
    low, high = limits.bounds(term.node)
    least, most = (float(v.flat[term.place] if v.size > 1 else v.reshape(())) for v in (low, high))
    return times * (most if times > 0 else least)


def difference(limits: LengthBounds, x: Node, y: Node) -> tuple[dict[Element, int], int]:
    """Return ``x - y``, of one element each, as terms with their coefficients and a constant."""
    terms: Counter[Element] = Counter()
    constant, waiting, visited = 0, [(x, 1), (y, -1)], 0
    while waiting:
        node, times = waiting.pop()
        element = element_of(limits, node)
        if isinstance(element, int):
            constant += times * element
            continue
        parts = parts_of(limits, element) if visited < MOST_VISITED else []
        visited += 1
        waiting += [(part, times * factor) for part, factor in parts]
        if not parts:
            terms[element] += times
    return {term: times for term, times in terms.items() if times}, constant


def element_of(limits: LengthBounds, node: Node) -> int | Element:
    """Return the number of a value of one element, or the element that it copies."""
    sources = limits.source(node)
    return Element(node, 0) if sources is None else sources.flat[0]


def parts_of(limits: LengthBounds, element: Element) -> list[tuple[Node, int]]:
    """Return the parts of a sum with their factors; none if an element is not a sum."""
    x = element.node
    if x.size != 1 or x.dtype.kind not in "iu":
        return []
    if isinstance(x.op, Add | Subtract):
        return [(x.operands[0], 1), (x.operands[1], 1 if isinstance(x.op, Add) else -1)]
    if isinstance(x.op, Negative):
        return [(x.operands[0], -1)]
    if isinstance(x.op, FloorDivide) and element_of(limits, x.operands[1]) == 1:
        return [(x.operands[0], 1)]
    if isinstance(x.op, Multiply):
        for a, b in (x.operands, x.operands[::-1]):
            factor = element_of(limits, b)
            if isinstance(factor, int):
                return [(a, factor)]
    return []
