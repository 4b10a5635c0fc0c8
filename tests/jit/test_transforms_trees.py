"""Trees of arguments and results: random ones come back as they went in."""

import collections
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.transforms.trees import Static, flatten, map_leaves, paths, unflatten

Pair = collections.namedtuple("Pair", "first second")


@dataclass
class Node:
    left: Any
    right: Any = None


def draw(rng: np.random.Generator, depth: int) -> Any:
    """A random tree of containers, arrays and numbers."""
    kind = rng.integers(4, 9) if depth == 0 else rng.integers(9)
    parts = [draw(rng, depth - 1) for _ in range(rng.integers(1, 4))] if kind < 4 else []
    match int(kind):
        case 0:
            return tuple(parts)
        case 1:
            return parts
        case 2:
            return dict(zip([("a", 1), True, "b"], parts))
        case 3:
            return Pair(parts[0], Node(parts[-1]))
        case 4:
            return float(rng.normal())
        case 5:
            return int(rng.integers(9))
        case 6:
            return None
        case _:
            return rng.normal(size=rng.integers(0, 4, rng.integers(0, 3)))


def same(x: Any, y: Any) -> bool:
    """Return True if two trees have equal containers, keys and leaves."""
    one: list[Any] = []
    two: list[Any] = []
    return flatten(x, one) == flatten(y, two) and all(map(np.array_equal, one, two))


@pytest.mark.parametrize("seed", range(40))
def test_a_tree_is_built_again_from_its_leaves(seed):
    tree = draw(np.random.default_rng(seed), 3)
    leaves: list[Any] = []
    structure = flatten(tree, leaves)
    assert same(unflatten(structure, iter(leaves)), tree)
    assert hash(structure) == hash(flatten(tree, [])) and len(list(paths(structure, "x"))) == len(leaves)


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_goes_through_a_compiled_function(seed):
    tree = [np.ones(2), draw(np.random.default_rng(seed), 3)]
    got = cg.jit(lambda t: map_leaves(lambda x: 2 * x, t), engine="reference")(tree)
    assert same(got, map_leaves(lambda x: 2 * x, tree))


def test_keys_and_settings_are_compared_with_their_types():
    assert flatten({1: 0.0}, []) != flatten({True: 0.0}, []) != flatten({1.0: 0.0}, [])
    assert (
        Static(1) != Static(True)
        and Static((0.0,)) != Static((-0.0,))
        and Static(frozenset([1])) == Static(frozenset([1]))
    )
    assert Static(slice(1, None)) == Static(slice(1, None)) != Static(slice(True, None))
    assert len({Static(slice(0, 2)), Static(slice(0, 2)), Static(slice(0, 2, 1)), Static((slice(0, 2), 0))}) == 3
