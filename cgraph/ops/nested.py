"""Nested tuples, lists and dicts of nodes, as functions of loops and branches take and return them."""

from collections.abc import Iterator, Sequence
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ops.leaf import as_node

Values = Any  # a node or array; a tuple, list or dict of Values; or None


def nodes_of(values: Values) -> list[Node]:
    """Return the nodes in nested values, in order; of a dict, in the order of its keys."""
    if values is None:
        return []
    if isinstance(values, dict):
        return [x for value in values.values() for x in nodes_of(value)]
    if isinstance(values, tuple | list):
        return [x for value in values for x in nodes_of(value)]
    return [as_node(values)]


def like(pattern: Values, nodes: Sequence[Node]) -> Values:
    """Arrange nodes as `pattern` is nested; lists become tuples."""
    return arranged(pattern, iter(nodes))


def arranged(pattern: Values, rest: Iterator[Node]) -> Values:
    """Arrange the next nodes as `pattern` is nested."""
    if pattern is None:
        return None
    if isinstance(pattern, dict):
        return {key: arranged(value, rest) for key, value in pattern.items()}
    if isinstance(pattern, tuple | list):
        parts = (arranged(value, rest) for value in pattern)
        return type(pattern)(*parts) if hasattr(pattern, "_fields") else tuple(parts)
    return next(rest)


def ordered(pattern: Values, values: Values) -> Values:
    """Return values whose dicts have the order of those in `pattern`; other values unchanged."""
    if isinstance(pattern, dict) and isinstance(values, dict) and pattern.keys() == values.keys():
        return {key: ordered(value, values[key]) for key, value in pattern.items()}
    if isinstance(pattern, tuple | list) and isinstance(values, tuple | list) and len(pattern) == len(values):
        return tuple(ordered(a, b) for a, b in zip(pattern, values))
    return values


def structure(values: Values) -> Any:
    """Return the nesting of values: equal for values that `like` arranges alike."""
    if values is None:
        return None
    if isinstance(values, dict):
        return {key: structure(value) for key, value in values.items()}
    if isinstance(values, tuple | list):
        return tuple(map(structure, values))
    return "node"
