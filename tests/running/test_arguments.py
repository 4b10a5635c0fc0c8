"""The arrays of a call: by position, by name or in a dictionary, each once, and messages that say how to pass them."""

import io
from collections import ChainMap, OrderedDict, UserDict
from types import MappingProxyType

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError
from cgraph.running.arguments import argument, by_name, is_names, ordered, run_by_name

X, Y, Z = cg.Var((2,), name="x"), cg.Var((3,), "int32", name="y"), cg.Var((), name="in")


def test_values_come_in_the_order_of_the_inputs_however_they_are_passed():
    for args, named in [
        ((1, 2, 3), {}),
        ((1,), {"in": 3, "y": 2}),
        ((), {"in": 3, "y": 2, "x": 1}),
        (({"in": 3, "x": 1, "y": 2},), {}),
        (({"in": 3},), {"y": 2, "x": 1}),
    ]:
        assert ordered(args, named, (X, Y, Z)) == (1, 2, 3)
    assert ordered((), {}, ()) == ()
    assert ordered((None,), {}, (X,)) == (None,), "None is a value that a later check refuses"


def npz(arrays):
    """The arrays as a file of NumPy's."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    return np.load(file)


@pytest.mark.parametrize("inputs", [(X,), (X, Y), (X, Y, Z)], ids=len)
@pytest.mark.parametrize("made", [dict, OrderedDict, MappingProxyType, UserDict, ChainMap, npz])
def test_any_mapping_passes_arrays_by_name(made, inputs):
    arrays = {x.name: i for i, x in reversed(list(enumerate(inputs)))}
    assert ordered((made(arrays),), {}, inputs) == tuple(range(len(inputs)))
    first = arrays.pop("x")
    assert ordered((made(arrays),), {"x": first}, inputs) == tuple(range(len(inputs)))
    for wrong, text in (arrays, "input x float32.* is missing"), ({"z": 0, "x": 0}, "has no input 'z'"):
        with pytest.raises(InputError, match=text):
            ordered((made(wrong),), {}, inputs)


def test_each_wrong_call_is_named():
    cases = [
        ((1, 2, 3, 4), {}, "takes 3 inputs, got 4"),
        ((1,), {"z": 1}, "has no input 'z'. Use one of x, y, in"),
        ((1,), {"x": 1}, "input 'x' is given twice. Pass it by position or by name"),
        (({"x": 1},), {"x": 2}, "input 'x' is given twice. Pass it in the dictionary or by keyword"),
        (({"x": 1, "y": 2, "in": 3},), {"in": 4}, "input 'in' is given twice. Pass it in the dictionary or by keyword"),
        (({"x": 1, "y": 2, "in": 3},), {"z": 4}, "has no input 'z'. Use one of x, y, in"),
        ((1,), {"in": 3}, r"input y int32\[3\] is missing. Pass y=array"),
        ((1, 2), {}, r"input in float32\[\] is missing. Pass {'in': array}"),
    ]
    for args, named, text in cases:
        with pytest.raises(InputError, match=text):
            ordered(args, named, (X, Y, Z))
    with pytest.raises(InputError, match="Use one of none"):
        ordered((), {"z": 1}, ())


def test_a_dictionary_counts_only_as_the_sole_argument():
    named = {"y": 2}
    assert by_name(({"x": 1},), named) == ((), {"x": 1, "y": 2}) and named == {"y": 2}
    assert by_name(({"x": 1}, 2), named) == (({"x": 1}, 2), named)
    assert by_name((), named) == ((), named)


def test_the_code_that_passes_an_input_is_python():
    assert [argument(x) for x in ("x", "x.1", "for", "")] == [
        "x=array", "{'x.1': array}", "{'for': array}", "{'': array}",
    ]  # fmt: skip


def test_outputs_are_returned_in_the_order_of_their_names():
    def function(inputs):
        return [inputs["x"], 2 * inputs["x"]]

    outputs = ("one", "two")
    assert run_by_name(function, outputs, ["two", "one", "two"], {"x": 3}) == [6, 3, 6]
    assert run_by_name(function, outputs, None, {"x": 3}) == [3, 6]
    array = np.arange(2)
    assert run_by_name(lambda inputs: array, ("y",), None, {})[0] is array, "a single output is no list"


def test_nothing_runs_for_names_or_inputs_of_another_kind():
    def function(inputs):
        raise AssertionError("it ran")

    for names, inputs, text in [
        (["no"], {}, "no output 'no'"),
        ("one", {}, "takes a list of output names, or None"),
        ([1], {}, r"not \[1\] and"),
        (None, [1], "a dictionary of arrays"),
    ]:
        with pytest.raises(InputError, match=text):
            run_by_name(function, ("one",), names, inputs)
    assert [is_names(x) for x in (["a"], ("a", "b"), [], "a", ["a", 1], {"a"})] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
