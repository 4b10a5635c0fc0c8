"""Trees of arguments and results: random ones come back as they went in."""

import collections
import pickle
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.transforms.trees import Static, flatten, map_leaves, paths, streams_in, unflatten

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


@dataclass
class Measured:
    """It computes a field, and changes another."""

    x: Any
    size: Any = field(init=False)

    def __post_init__(self) -> None:
        self.x, self.size = self.x + 1, 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    x: Any
    size: Any = field(default=2.0, repr=False, compare=False)


@dataclass
class Counted:
    x: Any
    step: InitVar[float]
    size: Any = 0.0

    def __post_init__(self, step: float) -> None:
        self.size = self.size + step


@pytest.mark.parametrize("tree", [Measured(1.0), Frozen(x=1.0), Counted(1.0, 2.0)], ids=lambda x: type(x).__name__)
def test_a_dataclass_comes_back_with_each_field_and_is_not_constructed_again(tree):
    want = {"x": 2 * tree.x, "size": 2 * tree.size}
    for got in (map_leaves(lambda x: 2 * x, tree), cg.jit(lambda t: map_leaves(lambda x: 2 * x, t))(tree)):
        assert type(got) is type(tree) and {name: float(getattr(got, name)) for name in want} == want


@dataclass(frozen=True)
class Config:
    scale: object
    name: list = field(default_factory=list, compare=False)


WRAPPERS = {
    "itself": lambda x: x,
    "tuple": lambda x: (1, x),
    "frozenset": lambda x: frozenset([x]),
    "slice": lambda x: slice(None, x),
    "dataclass": Config,
    "nested": lambda x: Config((x, "a")),
}
ZEROS = (
    0,
    False,
    0.0,
    -0.0,
    0j,
    complex(0.0, -0.0),
    *(kind(x) for kind in (np.float32, np.float64) for x in (0.0, -0.0)),
)


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_settings_are_equal_where_type_and_value_are(wrap):
    values = (*ZEROS, np.int64(0), np.bool_(False))
    assert len({Static(wrap(x)) for x in values}) == len(values)
    assert {Static(wrap(x)) for x in values} == {Static(wrap(pickle.loads(pickle.dumps(x)))) for x in values}


@pytest.mark.parametrize("x", [float("nan"), np.float32("nan"), np.float64("nan"), complex(0, float("nan"))])
def test_a_setting_that_is_not_a_number_is_equal_to_another(x):
    assert Static(x) == Static(pickle.loads(pickle.dumps(x)))


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_each_setting_has_a_function_of_its_own(wrap):
    function = cg.jit(lambda x, setting: x if setting is None else x * 2, static_argnums=1)
    before = cg.jit.cache_info().compilations
    for _ in range(2):
        for x in ZEROS:
            function(np.ones(2), wrap(x))
    assert cg.jit.cache_info().compilations == before + len(ZEROS)


def test_keys_and_settings_are_compared_with_their_types():
    assert flatten({1: 0.0}, []) != flatten({True: 0.0}, []) != flatten({1.0: 0.0}, [])
    assert (
        Static(1) != Static(True)
        and Static((0.0,)) != Static((-0.0,))
        and Static(frozenset([1])) == Static(frozenset([1]))
    )
    assert Static(slice(1, None)) == Static(slice(1, None)) != Static(slice(True, None))
    assert len({Static(slice(0, 2)), Static(slice(0, 2)), Static(slice(0, 2, 1)), Static((slice(0, 2), 0))}) == 3


def test_each_leaf_has_the_name_that_leads_to_it():
    tree = {"w": [1.0, (2.0, None)], 1: Pair(3.0, Node(4.0)), ("a", 2): {"b": 5.0}, "": ()}
    assert [*paths(flatten(tree, []), "p")] == ["p.w[0]", "p.w[1][0]", "p[1][0]", "p[1][1].left", "p[('a', 2)].b"]
    assert [*paths(flatten(3.0, []), "x")] == ["x"] and [*paths(flatten(None, []), "x")] == []


class Plain(tuple):
    """A class of tuples without fields: one leaf."""


def test_classes_and_tuples_of_other_classes_are_leaves():
    for x in (Node, Config, Plain((1, 2)), int, {1, 2}, "ab"):
        leaves: list[Any] = []
        assert flatten((x, 3.0), leaves) == flatten((1.0, 2.0), []) and leaves[0] is x and leaves[1] == 3.0
    assert streams_in((Node, Config, 1.0)) == [] and Static(Node) == Static(Node) != Static(Config)
    one, two = (np.random.default_rng(i) for i in (1, 2))
    assert one is not two and streams_in({"a": one}) == []


def test_random_streams_are_found_in_the_order_of_the_leaves():
    a, b, c, d = (cg.numpy.random.default_rng(i) for i in range(4))
    tree = {"x": (a, [b, 1.0]), "y": Node(None, Pair(c, {"z": d}))}
    leaves: list[Any] = []
    flatten(tree, leaves)
    assert [*map(id, streams_in(tree))] == [*map(id, (a, b, c, d))]
    places = [*map(id, leaves)]
    assert [places.index(id(x.key)) for x in (a, b, c, d)] == [0, 1, 3, 4]


@dataclass(frozen=True)
class Settings:
    first: Any
    second: Any
    third: Any = field(default=0, compare=False)


def test_each_compared_field_of_a_setting_counts():
    values = [(0, 0), (0, False), (False, 0), (0.0, 0), (0, 0.0), (0, -0.0)]
    assert len({Static(Settings(*x)) for x in values}) == len(values)
    assert Static(Settings(1, 2, 3)) == Static(Settings(1, 2, [4]))
