"""The graph file of a saved Function, compiled anew: one result or several, names given and names of the file."""

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import FormatError
from cgraph.formats.compile_onnx import compile_onnx
from tests.support.onnx_models import FLOAT, model_of

NODES = [helper.make_node("Sub", ["a", "b"], ["y"]), helper.make_node("Mul", ["a", "b"], ["z"])]
RAW = model_of(NODES, [("a", FLOAT, (3,)), ("b", FLOAT, (3,))], outputs=("y", "z"))
A, B = np.array([1, 2, 3], "f4"), np.array([5, 7, -1], "f4")


def compiled(single=False, names=(), raw=RAW):
    return compile_onnx(memoryview(raw), single, 1, names)


def test_one_result_is_an_array_and_several_have_names_in_the_order_of_the_file():
    single = compiled(single=True)(A, B)
    assert isinstance(single, np.ndarray)
    np.testing.assert_array_equal(single, A - B)
    results = compiled(names=["difference", "product"])(b=B, a=A)
    assert results.names == ("difference", "product")
    np.testing.assert_array_equal(results["difference"], A - B)
    np.testing.assert_array_equal(results[1], A * B)


@pytest.mark.parametrize("names", [(), ("one",), ("one", "two", "three")])
def test_names_of_another_number_leave_those_of_the_file(names):
    assert compiled(names=names)(A, B).names == ("y", "z")


def test_equal_names_are_told_apart():
    assert compiled(names=["same", "same"])(A, B).names == ("same", "same_1")


def test_the_number_of_threads_is_that_of_the_call():
    for threads in (1, 3):
        assert compile_onnx(memoryview(RAW), False, threads, ()).program.threads == threads


def test_a_damaged_file_is_named():
    with pytest.raises(FormatError, match="graph.onnx"):
        compiled(raw=RAW[: len(RAW) // 2])
