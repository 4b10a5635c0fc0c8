"""Distances of two computed positions that the graph shows."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.dynamic.apart import known_number, most_apart, source
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_open import agrees, node, numbers, open_model

I, J, N = (Var((), "int64", name=name) for name in "ijn")
ROW = Var((1,), "int64", name="row")
SHOWN = {
    "a number more": (I + 3, I, 3),
    "in another order": (3 + I, I, 3),
    "fewer": (I + -2, I, -2),
    "at most the axis": (cg.minimum(I + 1, N), I, 1),
    "the axis at most": (cg.minimum(N, I + 4), I, 4),
    "the minimum of three": (cg.minimum(cg.minimum(N, J), I + 2), I, 2),
    "through a float": (cg.astype(cg.astype(I, "float32") + 1.0, "int64"), I, 1),
    "a fraction, rounded up": (cg.astype(cg.astype(I, "float32") + 1.5, "int64"), I, 2),
    "from a vector": (cg.reshape(ROW, ()) + 1, cg.reshape(ROW, ()), 1),
    "of a vector": (cg.minimum(ROW + 1, cg.reshape(N, (1,))), cg.astype(cg.reshape(ROW, ()), "int32"), 1),
}
NOT_SHOWN = {
    "two numbers": (J, I),
    "another start": (J + 1, I),
    "a sum of two": (I + J, I),
    "a difference": (I - 1, I),
    "the maximum": (cg.maximum(I + 1, N), I),
    "an infinite distance": (cg.astype(I, "float32") + np.float32(np.inf), I),
    "no number": (cg.astype(I, "float32") + np.float32(np.nan), I),
    "a constant": (Const(np.array(5)), I),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_distance_that_the_graph_shows(name):
    stop, start, want = SHOWN[name]
    assert most_apart(stop, start) == want


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_a_distance_that_it_does_not_show(name):
    assert most_apart(*NOT_SHOWN[name]) is None


def test_a_minimum_of_many_shared_ones_is_visited_once_for_each():
    stop = cg.minimum(J, N)
    for _ in range(200):
        stop = cg.minimum(stop, stop + J)
    assert most_apart(stop, I) is None
    for _ in range(60):
        stop = cg.minimum(stop, stop)
    assert most_apart(stop, I) is None
    assert most_apart(cg.minimum(stop, I + 5), I) == most_apart(cg.minimum(I + 5, stop), I) == 5


def test_copies_of_one_element_have_its_source_and_constants_their_number():
    assert source(cg.astype(cg.reshape(ROW, ()), "float32")) is ROW
    assert source(cg.reshape(Var((2,), "int64"), (2, 1))[0:1]).shape == (1, 1)
    assert known_number(Const(np.array([[2.5]]))) == 2.5 and known_number(I) is None
    assert known_number(Const(np.array([1, 2]))) is None and known_number(Const(np.array(True))) is None


STARTS = {"one": numbers(1), "three": numbers(3), "axis": numbers(1), "n": numbers(5), "half": np.float32([1])}
ENDS = [node("Add", ["i", "three"], ["more"]), node("Min", ["more", "n"], ["end"])]


def test_a_slice_from_an_index_to_a_few_further_needs_no_maximum_and_no_more_memory():
    raw = open_model(
        [*ENDS, node("Slice", ["x", "i", "end", "axis"], ["y"])], {"x": ("f4", (2, 5)), "i": ("i8", (1,))}, STARTS
    )
    x = np.arange(10, dtype="f4").reshape(2, 5)
    agrees(raw, [{"x": x, "i": numbers(i)} for i in (0, 1, 2, 3, 4, 5, 7, -1, -3, -4, -6)])
    assert load(raw).outputs[0].shape == (2, 3)


@pytest.mark.parametrize("step", [1, 2])
def test_a_range_from_a_number_to_a_few_further_needs_no_maximum(step):
    squeezed = [node("Squeeze", [name], [f"{name}0"]) for name in ("i", "end", "step")]
    nodes = [*ENDS, *squeezed, node("Range", ["i0", "end0", "step0"], ["y"])]
    raw = open_model(nodes, {"i": ("i8", (1,))}, {**STARTS, "step": numbers(step)})
    agrees(raw, [{"i": numbers(i)} for i in (-4, 0, 1, 2, 3, 5, 9)])
    assert load(raw).outputs[0].shape == (-(-3 // step),)


def test_a_distance_that_rounding_exceeds_ends_the_run():
    nodes = [
        node("Cast", ["i"], ["f"], to=1),
        node("Add", ["f", "half"], ["g"]),
        node("Cast", ["g"], ["end"], to=7),
        *[node("Squeeze", [name], [f"{name}0"]) for name in ("i", "end", "one")],
        node("Range", ["i0", "end0", "one0"], ["y"]),
    ]
    function = load(open_model(nodes, {"i": ("i8", (1,))}, STARTS)).compile()
    np.testing.assert_array_equal(function(numbers(7))[0], [7])
    with pytest.raises(InputError, match="more than 1 positions|longer than 1"):
        function(numbers((1 << 24) + 2))  # float32 has no number between it and 2**24 + 4
