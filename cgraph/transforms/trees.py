"""Trees of arguments and results: nested tuples, lists, dicts, named tuples and dataclasses with arrays as leaves."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from cgraph.ir.spec import DTYPES
from cgraph.numpy.random import RandomStream

LEAF = "*"
"""The structure of a leaf."""
READY = frozenset((np.ndarray, bool, int, float, complex, *{np.dtype(x).type for x in DTYPES}))
"""Classes of leaves that a Function takes unchanged."""


class Branch(NamedTuple):
    """The structure of a container.

    Fields
        kind: its class
        names: the keys of a dict, the fields of a dataclass; nothing for a sequence
        children: the structure of each member
    """

    kind: type
    names: tuple[Any, ...]
    children: tuple[Any, ...]


class Static:
    """A value that is part of the structure: compared by type and value, so that True is not 1 and 0.0 is not -0.0."""

    __slots__ = ("identity", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.identity = value, typed(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"Static({self.value!r})"


def typed(value: Any) -> Any:
    """Return a key by which values are equal if and only if type and value are."""
    kind = type(value)
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, tuple):
        return kind, *map(typed, value)
    if kind is slice:  # Python 3.11 cannot hash one
        return kind, typed(value.start), typed(value.stop), typed(value.step)
    if kind is frozenset:
        return kind, frozenset(map(typed, value))
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        compared = (getattr(value, x.name) for x in fields(value) if x.compare)
        return kind, value, *[typed(x) for x in compared if isinstance(x, Hashable)]
    return kind, value


def flatten(tree: Any, leaves: list[Any]) -> Any:
    """Append the leaves of a tree to `leaves`, and return its structure. None is a tree without leaves."""
    kind = type(tree)
    if kind in READY:  # most leaves come first
        leaves.append(tree)
        return LEAF
    if kind is tuple or kind is list:
        return Branch(kind, (), tuple([flatten(x, leaves) for x in tree]))
    if kind is dict:
        return Branch(kind, tuple(map(key_of, tree)), tuple([flatten(x, leaves) for x in tree.values()]))
    if tree is None or kind is Static:
        return tree
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return Branch(kind, (), tuple([flatten(x, leaves) for x in tree]))
    if is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(x.name for x in fields(tree))
        return Branch(kind, names, tuple([flatten(getattr(tree, x), leaves) for x in names]))
    if isinstance(tree, RandomStream):
        leaves.append(tree.key)
        return Branch(kind, ("key",), (LEAF,))
    leaves.append(tree)
    return LEAF


def key_of(key: Any) -> Any:
    """Return a key of a dict so that equal structures have keys of equal types."""
    return key if type(key) is str else Static(key)


def unflatten(structure: Any, leaves: Iterator[Any]) -> Any:
    """Return the tree of this structure with the next leaves of an iterator."""
    if structure is LEAF:
        return next(leaves)
    if structure is None:
        return None
    if isinstance(structure, Static):
        return structure.value
    kind, names, children = structure
    members = [unflatten(x, leaves) for x in children]
    if kind is list or kind is tuple:
        return kind(members)
    if kind is dict:
        return {name.value if isinstance(name, Static) else name: x for name, x in zip(names, members)}
    if issubclass(kind, tuple):
        return kind(*members)
    tree = object.__new__(kind)
    for name, x in zip(names, members):
        object.__setattr__(tree, name, x)
    return tree


def with_settings(structure: Any, values: Iterator[Any], leaves: list[Any]) -> Any:
    """Return the structure with static values among the next leaves as a part of it; append the others to `leaves`."""
    if structure is LEAF:
        value = next(values)
        if isinstance(value, Static):
            return value
        leaves.append(value)
        return LEAF
    if not isinstance(structure, Branch):
        return structure
    return structure._replace(children=tuple([with_settings(x, values, leaves) for x in structure.children]))


def paths(structure: Any, path: str) -> Iterator[str]:
    """Yield the name of each leaf, such as ``params.w`` or ``xs[1]``."""
    if structure is LEAF:
        yield path
    elif isinstance(structure, Branch):
        _, names, children = structure
        for i, child in enumerate(children):
            name = names[i] if names else i
            name = name.value if isinstance(name, Static) else name
            yield from paths(child, f"{path}.{name}" if isinstance(name, str) else f"{path}[{name!r}]")


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the tree with a function applied to each leaf."""
    leaves: list[Any] = []
    structure = flatten(tree, leaves)
    return unflatten(structure, iter([function(x) for x in leaves]))


def streams_in(tree: Any) -> list[RandomStream]:
    """Return the random streams in a tree, in the order of its leaves."""
    if isinstance(tree, RandomStream):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif is_dataclass(tree) and not isinstance(tree, type):
        tree = [getattr(tree, x.name) for x in fields(tree)]
    elif not isinstance(tree, tuple | list):
        return []
    return [stream for x in tree for stream in streams_in(x)]
