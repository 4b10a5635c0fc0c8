"""Shapes, constants, ranges and triangles: ends of slices, dtypes, steps down, diagonals, what is charged."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, assert_equal_results, model_of, one
from tests.support.onnx_open import agrees, node, open_model

pytest.importorskip("onnxruntime")
X = np.arange(24, dtype="f4").reshape(2, 3, 4)


@pytest.mark.parametrize(
    "options", [{}, {"start": 1}, {"end": -1}, {"start": -2, "end": 9}, {"start": 2, "end": 1}], ids=str
)
def test_a_part_of_the_shape(options):
    assert_equal_results("Shape", [X], **options)


def test_the_number_of_elements():
    for x in (X, np.array(3.0), np.zeros((0, 4))):
        assert_equal_results("Size", [x])


@pytest.mark.parametrize(
    "attributes",
    [
        {"value_int": 7},
        {"value_ints": [1, -2]},
        {"value_float": 2.5},
        {"value_floats": [0.5, 1.5]},
        {"value": numpy_helper.from_array(np.array([[1, 2]], "u1"))},
    ],
    ids=str,
)
def test_constants_have_the_dtype_of_their_attribute(attributes):
    assert_equal_results("Constant", [], **attributes)


def test_constants_of_no_kind_that_is_read_are_refused():
    with pytest.raises(FormatError, match="Constant.*attribute value is missing"):
        load(model_of([helper.make_node("Constant", [], ["y"])]))


@pytest.mark.parametrize("value", [None, np.array([7], "i4"), np.array([2.5]), np.array([True])], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (0, 2), ()])
def test_filled_shapes(value, shape):
    options = {} if value is None else {"value": numpy_helper.from_array(value)}
    assert_equal_results("ConstantOfShape", [np.array(shape, "i8")], (0,), **options)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_ones_along_a_diagonal(shape, k):
    assert_equal_results("EyeLike", [np.zeros(shape, "f4")], k=k)
    assert_equal_results("EyeLike", [np.zeros(shape, "i4")], k=k, dtype=TensorProto.DOUBLE)


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (1, 10, 3), (10, 1, -3), (3, 3, 1), (5, 0, 1), (-2, 2, 2)]
)
def test_ranges_end_before_their_limit(dtype, start, stop, step):
    operands = [np.array(v, dtype) for v in (start, stop, step)]
    assert_equal_results("Range", operands, (0, 1, 2))


def test_ranges_of_parts():
    assert_equal_results("Range", [np.array(v, "f4") for v in (0.5, 2.75, 0.5)], (0, 1, 2))


@pytest.mark.parametrize("upper", [None, 0, 1])
@pytest.mark.parametrize("k", [None, -2, -1, 0, 1, 3, 9])
def test_triangles_from_a_diagonal_on(upper, k):
    operands = [X] if k is None else [X, np.array(k, "i8")]
    assert_equal_results("Trilu", operands, (1,), **({} if upper is None else {"upper": upper}))


def test_large_tables_are_charged_before_they_are_made():
    huge = np.array(2**40)
    constants = {"a": np.array(0), "b": huge, "c": np.array(1)}
    with pytest.raises(FormatError, match="Range.*would take"):
        load(model_of([helper.make_node("Range", ["a", "b", "c"], ["y"])], [], constants))
    with pytest.raises(FormatError, match="EyeLike.*would take"):
        load(one("EyeLike", [("x", FLOAT, (2**16, 2**16))]))


@pytest.mark.parametrize("kind", ["i8", "f4"])
@pytest.mark.parametrize("step", [1, 2, -1, -3])
@pytest.mark.parametrize("opened", ["stop", "start", "step", "start stop", "start stop step"])
def test_ranges_whose_ends_or_step_a_run_decides(kind, step, opened):
    """Up to ten elements; none where the step leads away from the limit."""
    numbers = {"start": 2, "stop": 9, "step": step}
    inputs = {name: (kind, ()) for name in numbers if name in opened.split()}
    constants = {name: np.array(v, kind) for name, v in numbers.items() if name not in inputs}
    raw = open_model([node("Range", ["start", "stop", "step"], ["y"])], inputs, constants)
    ends = [(0, 9), (5, -4), (3, 3), (-2, 6), (1, 2)]
    feeds = [{"start": np.array(a, kind), "stop": np.array(b, kind), "step": np.array(step, kind)} for a, b in ends]
    agrees(raw, [{name: v for name, v in feed.items() if name in inputs} for feed in feeds], {"y": 20})
    if kind == "f4":
        parts = {"start": np.float32(0.25), "stop": np.float32(2), "step": np.float32(0.5 * step)}
        agrees(raw, [{name: v for name, v in parts.items() if name in inputs}], {"y": 20})
    with pytest.raises(FormatError, match="nothing bounds axis 0"):
        load(raw)
