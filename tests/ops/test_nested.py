"""Nested values of loops and branches: the order of nodes, the arrangement back, and equality of structures."""

from collections import namedtuple

import numpy as np

import cgraph as cg
from cgraph.ops.nested import like, nodes_of, ordered, structure

Pair = namedtuple("Pair", "first second")
A, B, C, D = (cg.Var((i,), name=f"v{i}") for i in range(4))


def test_nodes_come_in_the_order_of_keys_and_positions():
    assert nodes_of({"b": A, "a": (B, [C, None]), "n": None}) == [A, B, C]
    assert nodes_of(Pair(B, A)) == [B, A] and nodes_of(None) == [] == nodes_of(())
    (number,) = nodes_of(np.float32(2.5))
    assert number.dtype == "float32" and number.shape == ()


def test_nodes_are_arranged_as_the_pattern_is_nested():
    pattern = {"b": 1, "a": (2, [3, None]), "n": None, "p": Pair(4, ())}
    got = like(pattern, [A, B, C, D])
    assert got == {"b": A, "a": (B, (C, None)), "n": None, "p": Pair(D, ())}
    assert list(got) == ["b", "a", "n", "p"] and isinstance(got["p"], Pair) and isinstance(got["a"][1], tuple)
    assert like(7, [A]) is A


def test_going_there_and_back_changes_nothing():
    values = (A, {"x": (B, None), "y": C}, ())
    assert like(values, nodes_of(values)) == values


def test_dicts_take_the_order_of_the_pattern_at_every_depth():
    pattern = ({"a": 0, "b": {"c": 0, "d": 0}},)
    got = ordered(pattern, ({"b": {"d": A, "c": B}, "a": C},))
    assert nodes_of(got) == [C, B, A]
    other = {"a": A, "z": B}
    assert ordered({"a": 0, "b": 0}, other) is other
    short = [A]
    assert ordered((0, 0), short) is short and ordered(None, A) is A


def test_structures_are_equal_where_like_arranges_alike():
    assert structure([A, (B,)]) == structure((1, [2.5])) == ("node", ("node",))
    assert structure({"a": A}) != structure({"b": A})
    assert structure((A, None)) != structure((A, B)) and structure((A,)) != structure(A)
    assert structure(None) is None and structure(()) == ()
