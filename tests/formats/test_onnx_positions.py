"""Positions in ONNX models that are data: one outside its axis is refused wherever it is known."""

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import PositionError
from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, INT32, INT64, model_of

POSITIONS = [  # operator, shape of what it reads or writes, positions, updates, attributes; whether all lie inside
    ("Gather", (3, 4), np.array([-3]), None, {}, True),
    ("Gather", (3, 4), np.array([-4]), None, {}, False),
    ("Gather", (3, 4), np.array([3], "i4"), None, {}, False),
    ("Gather", (3, 0), np.array([3]), None, {}, False),
    ("Gather", (0, 3), np.array([-4]), None, {"axis": 1}, False),
    ("GatherElements", (3, 4), np.full((3, 1), -5), None, {"axis": 1}, False),
    ("GatherElements", (3, 4), np.full((3, 1), 4), None, {"axis": 1}, False),
    ("GatherElements", (3, 4), np.full((2, 1), -4), None, {"axis": 1}, True),
    ("GatherND", (3, 4), np.array([[0, 5]]), None, {}, False),
    ("GatherND", (3, 4), np.array([[-1, -5]]), None, {}, False),
    ("GatherND", (3, 4), np.array([[-3, -4]]), None, {}, True),
    ("GatherND", (3, 4, 0), np.array([[0, 5]]), None, {}, False),
    ("GatherND", (3, 4), np.array([[0], [4], [1]]), None, {"batch_dims": 1}, False),
    ("GatherND", (3, 4), np.array([[0], [-4], [3]]), None, {"batch_dims": 1}, True),
    ("ScatterND", (3, 4), np.array([[0, 5]]), (1,), {}, False),
    ("ScatterND", (3, 4), np.array([[-4]]), (1, 4), {}, False),
    ("ScatterND", (3, 0), np.array([[3]]), (1, 0), {}, False),
    ("ScatterND", (3, 4), np.array([[2, 3]]), (1,), {"reduction": "add"}, True),
    ("ScatterElements", (3, 4), np.array([[6]]), (1, 1), {"axis": 1}, False),
    ("ScatterElements", (3, 4), np.array([[-5]]), (1, 1), {"axis": 1, "reduction": "mul"}, False),
    ("ScatterElements", (3, 4), np.array([[-4, 3]]), (1, 2), {"axis": 1}, True),
    ("ScatterElements", (0, 3), np.array([[-4], [1]]).reshape(2, 1)[:0], (0, 1), {"axis": 1}, True),
]


@pytest.mark.parametrize(("kind", "shape", "places", "updates", "attributes", "inside"), POSITIONS)
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_position_outside_its_axis_is_refused_wherever_it_is_known(
    kind, shape, places, updates, attributes, inside, engine
):
    """When it runs; when constants are computed while compiling, or while reading."""
    rng = np.random.default_rng(0)
    values = {"x": rng.standard_normal(shape).astype("f4"), "i": places}
    if updates is not None:
        values["u"] = rng.standard_normal(updates).astype("f4")
    code = {np.dtype("f4"): FLOAT, np.dtype("i4"): INT32, np.dtype("i8"): INT64}
    inputs = [(name, code[x.dtype], x.shape) for name, x in values.items()]
    node = helper.make_node(kind, list(values), ["y"], **attributes)

    def at_run():
        return load(model_of([node], inputs)).compile(engine=engine)(*values.values())[0]

    def at_load():
        return load(model_of([node], [], values)).compile(engine=engine)()[0]

    if inside:
        np.testing.assert_array_equal(at_run(), at_load())
        return
    for way in (at_run, at_load):
        with pytest.raises(PositionError):
            way()


@pytest.mark.parametrize(
    ("start", "mode", "inside"),
    [(1, "linear", True), (2, "linear", False), (-1, "linear", False), (5, "circular", True)],
)
def test_a_cache_is_written_within_its_axis(start, mode, inside):
    values = [np.zeros((2, 3, 1), "f4"), np.ones((2, 2, 1), "f4"), np.array([start, 0])]
    inputs = [("x", FLOAT, (2, 3, 1)), ("u", FLOAT, (2, 2, 1)), ("w", INT64, (2,))]
    node = helper.make_node("TensorScatter", ["x", "u", "w"], ["y"], axis=1, mode=mode)
    function = load(model_of([node], inputs, opset=24)).compile()
    if not inside:
        with pytest.raises(PositionError):
            function(*values)
        return
    found = function(*values)[0]
    assert found[0, [start % 3, (start + 1) % 3], 0].tolist() == [1, 1] and found.sum() == 4


@pytest.mark.parametrize(
    ("kind", "at"),
    [("SequenceAt", 2), ("SequenceAt", -3), ("SequenceErase", 2), ("SequenceInsert", 3), ("SequenceInsert", -3)],
)
def test_a_position_outside_a_sequence_is_refused(kind, at):
    names = ["s", "x", "i"] if kind == "SequenceInsert" else ["s", "i"]
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"]), helper.make_node(kind, names, ["t"])]
    nodes.append(helper.make_node("Identity", ["x"], ["y"]))
    with pytest.raises(PositionError, match=f"index {at} is outside a sequence of 2"):
        load(model_of(nodes, [("x", FLOAT, (2,))], {"i": np.array(at)}))


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_few_or_many_of_the_largest_have_the_places_of_a_stable_sort_whose_nan_is_larger_than_infinity(
    dtype, largest, is_open
):
    """Few are selected, many sorted; equal ones keep their order."""
    rng = np.random.default_rng(5)
    for n, k in ((1, 0), (1, 1), (9, 1), (9, 8), (40, 3), (40, 10), (40, 11), (40, 40)):
        for axis in (0, 1):
            x = rng.integers(-4, 5, (n, 3) if axis == 0 else (3, n)).astype(dtype)
            if dtype == "f4":
                for value, share in ((np.nan, 0.2), (np.inf, 0.2), (-np.inf, 0.1), (-0.0, 0.1)):
                    x[rng.random(x.shape) < share] = value
            inputs = [("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape), *[("k", INT64, (1,))] * is_open]
            constants = {} if is_open else {"k": np.array([k])}
            node = helper.make_node("TopK", ["x", "k"], ["y", "z"], axis=axis, largest=largest)
            model = model_of([node], inputs, constants, ("y", "z"))
            function = load(model, maximum={"k": max(k, 1)} if is_open else None).compile()
            y, z = function(x, np.array([k])) if is_open else function(x)
            turned = np.flip(x, axis) if largest else x
            order = np.argsort(turned, axis, kind="stable")
            order = n - 1 - np.flip(order, axis) if largest else order
            order = np.take(order, range(k), axis)
            np.testing.assert_array_equal(z, order)
            np.testing.assert_array_equal(y, np.take_along_axis(x, order, axis))
