"""State of several functions: one Var, or Vars of one name, shape and value, in one order for all."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.standalone.shared_state import check_same, shared_state


def variable(name: str, value, shape=(2,)) -> cg.Var:
    return cg.Var(shape, "float32", name).assign(np.full(shape, value, "f4"))


def names(states) -> list[list[str]]:
    return [[x.name for x in own] for own in states]


def test_state_of_one_function_is_its_own_in_order():
    a, b = variable("v", 1), variable("v", 1)
    (own,) = shared_state([cg.compile(a + b, [], {a: a + 1, b: b + 1})])
    assert own[0] is a and own[1] is b, "equal Vars of one function stay apart"


def test_all_functions_have_all_state_in_one_order():
    a, b, c = variable("a", 1), variable("b", 2), variable("b", 2)
    first, second = shared_state([cg.compile(a, [], {a: a + 1}), cg.compile(a + c, [], {c: c + a, a: a * 2})])
    assert names([first, second]) == [["a", "b"], ["a", "b"]]
    assert (first[0] is a, first[1] is c, second[0] is a, second[1] is c) == (True,) * 4
    first, second = shared_state([cg.compile(b, [], {b: b + 1}), cg.compile(c + 1, [])])
    assert first[0] is b and second[0] is c, "one that a size only reads"


def test_vars_of_one_name_differ_in_neither_shape_nor_value():
    with pytest.raises(FormatError, match=r"v is float32\[3\] at one size and float32\[2\] at another"):
        check_same(variable("v", 1), variable("v", 1, (3,)))
    with pytest.raises(FormatError, match="v has other values at another size"):
        check_same(variable("v", 1), variable("v", 2))
    check_same(variable("v", 1), variable("v", 1))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "bool", "float64"])
@pytest.mark.parametrize("value", [0, 1])
def test_vars_of_one_name_and_other_dtypes_are_refused_even_if_their_bytes_are_equal(dtype, value):
    other = cg.Var((2,), dtype, "v").assign(np.full(2, value, dtype))
    with pytest.raises(FormatError, match=rf"v is {dtype}\[2\] at one size and float32\[2\] at another"):
        check_same(variable("v", value), other)


@pytest.mark.parametrize("empty", ["first", "second", "both"])
def test_a_var_without_a_value_is_compared_by_its_spec_alone(empty):
    first, second = variable("v", 1), variable("v", 2)
    bare = cg.Var((2,), "float32", "v"), cg.Var((2,), "float32", "v")
    pair = (bare[0] if empty != "second" else first), (bare[1] if empty != "first" else second)
    check_same(*pair)
    wide = cg.Var((3,), "float32", "v")
    with pytest.raises(FormatError, match=r"v is float32\[3\] at one size"):
        check_same(pair[0], wide)


def test_places_of_each_function_are_in_the_order_of_all():
    """The second has what the first lacks, in another order, and reads a Var of a name that is state elsewhere."""
    a, b, c, d = (variable(name, i) for i, name in enumerate("abcd"))
    other_a, other_c = variable("a", 0), variable("c", 2)
    first = cg.compile([a + b], [], {b: b + 1, a: a + 1})
    second = cg.compile([other_c + d], [], {d: d + 1, other_c: other_c * 2, other_a: other_a + 1})
    third = cg.compile([c + a], [])
    states = shared_state([first, second, third])
    assert names(states) == [["b", "a", "d", "c"]] * 3
    assert [x is y for x, y in zip(states[0], (b, a, d, other_c))] == [True] * 4
    assert [x is y for x, y in zip(states[1], (b, other_a, d, other_c))] == [True] * 4
    assert [x is y for x, y in zip(states[2], (b, a, d, c))] == [True] * 4
