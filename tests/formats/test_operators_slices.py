"""ScatterND whose indices are a slice becomes a slice: as torch's exporters write it, and nowhere else."""

import numpy as np
import pytest
from onnx import helper

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.slices import slice_of
from cgraph.ops.take import Scatter
from tests.support.onnx_models import FLOAT, assert_equal_results, model_of
from tests.support.rewrites import ops_of

rng = np.random.default_rng(0)


def grid(*ranges):
    """Indices of all elements of a box."""
    return np.stack(np.meshgrid(*(np.arange(*r) for r in ranges), indexing="ij"), -1)


SLICES = {
    "whole": ((2, 3, 4), grid((0, 2), (0, 3), (0, 4))),
    "whole rows": ((2, 3, 4), grid((0, 2), (0, 3))),
    "inner": ((2, 5, 6), grid((0, 2), (1, 4), (2, 6))),
    "rows from the second on": ((4, 3), grid((1, 4))),
    "counted from the end": ((5, 4), grid((-3, 0), (-4, -2))),
    "one element": ((5, 4), grid((2, 3), (3, 4))),
}


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_is_written_as_one(name):
    shape, index = SLICES[name]
    x = rng.normal(size=shape).astype("f4")
    values = rng.normal(size=(*index.shape[:-1], *shape[index.shape[-1] :])).astype("f4")
    want = x.copy()
    want[tuple(np.moveaxis(index, -1, 0))] = values
    file = scatter(shape, values.shape, index=index)
    assert Scatter not in ops_of(load(file).outputs)
    np.testing.assert_array_equal(load(file).compile()(x, values)[0], want)
    assert_equal_results("ScatterND", [x, index, values], [1])


def scatter(shape, updates, **constants):
    """A model of one ScatterND with constant indices."""
    inputs = [("x", FLOAT, shape), ("u", FLOAT, updates)]
    return model_of([helper.make_node("ScatterND", ["x", "index", "u"], ["y"])], inputs, constants)


def test_indices_that_are_joined_in_the_graph_are_a_slice():
    """As TorchScript writes ``x[:, :, 1:, 1:] = u``: ranges, each expanded to all elements, too many to fold."""
    shape, counts = (1, 2, 401, 301), (1, 2, 400, 300)
    nodes, names = [], []
    ranges = [np.arange(1), np.arange(2), np.arange(1, 401), np.arange(1, 301)]
    constants = {"shape": np.array(counts), "last": np.array([-1])}
    for i, r in enumerate(ranges):
        constants[f"r{i}"] = r.reshape(-1, *[1] * (3 - i))
        nodes += [
            helper.make_node("Expand", [f"r{i}", "shape"], [f"e{i}"]),
            helper.make_node("Unsqueeze", [f"e{i}", "last"], [f"c{i}"]),
        ]
        names.append(f"c{i}")
    nodes += [
        helper.make_node("Concat", names, ["index"], axis=-1),
        helper.make_node("ScatterND", ["x", "index", "u"], ["y"]),
    ]
    file = model_of(nodes, [("x", FLOAT, shape), ("u", FLOAT, counts)], constants)
    assert Scatter not in ops_of(load(file).outputs)
    x, u = rng.normal(size=shape).astype("f4"), rng.normal(size=counts).astype("f4")
    want = x.copy()
    want[:, :, 1:, 1:] = u
    np.testing.assert_array_equal(load(file).compile()(x, u)[0], want)


OTHERS = {
    "a step of 2": ((5, 4), grid((0, 5, 2))),
    "backwards": ((5, 4), grid((3, 0, -1))),
    "around the end": ((5, 4), np.array([[-1], [0]])),
    "turned": ((4, 4), np.swapaxes(grid((0, 4), (0, 4)), 0, 1)),
    "a diagonal": ((4, 4), np.repeat(np.arange(4)[:, None], 2, 1)),
    "one twice": ((4, 4), np.array([[1], [1]])),
    "outside": ((4, 4), grid((2, 6))),
    "before the start": ((4, 4), grid((-6, -2))),
    "no element": ((4, 4), np.zeros((0, 1), int)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_indices_are_no_slice(name):
    shape, index = OTHERS[name]
    assert slice_of(cg.Const(index), shape) is None
    if name not in ("outside", "before the start", "one twice"):
        x = rng.normal(size=shape).astype("f4")
        values = rng.normal(size=(*index.shape[:-1], *shape[index.shape[-1] :])).astype("f4")
        assert_equal_results("ScatterND", [x, index, values], [1])


def test_indices_of_a_run_and_joined_ones_of_other_shapes_are_no_slice():
    i, ranges = cg.Var((2, 1), "int64"), np.arange(2)[:, None]
    assert slice_of(i, (4,)) is None
    assert slice_of(cg.concat([cg.Const(ranges), i], 1), (4, 4)) is None
    both = cg.concat([cg.broadcast_to(cg.Const(ranges), (2, 2))], 1)
    assert slice_of(both, (4, 4)) is None  # one axis of counts for two axes of the array


def test_a_sum_is_added_to_a_slice():
    x, u = rng.normal(size=(4, 3)).astype("f4"), rng.normal(size=(2, 3)).astype("f4")
    assert_equal_results("ScatterND", [x, grid((1, 3)), u], [1], reduction="add")


def test_values_that_do_not_fit_a_slice_are_refused():
    with pytest.raises(FormatError, match="ScatterND"):
        load(scatter((4, 3), (1, 3), index=grid((1, 3))))
