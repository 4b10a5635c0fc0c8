"""Shape operators beside onnxruntime: copied and inferred lengths, negative axes, ends of slices, blocks, sequences."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.shape import copy_value
from cgraph.ops.leaf import Var
from tests.support.onnx_context import context, length
from tests.support.onnx_models import FLOAT, assert_equal_results, one

pytest.importorskip("onnxruntime")
X = np.arange(120, dtype="f4").reshape(2, 3, 4, 5)


def ints(*values):
    return np.array(values, "i8")


@pytest.mark.parametrize("shape", [(6, 20), (0, -1), (-1,), (0, 0, 20), (2, -1, 5), (1, 0, 8, 5), (2, 3, 4, 5, 1)])
def test_zero_copies_and_minus_one_is_the_rest(shape):
    assert_equal_results("Reshape", [X, ints(*shape)], (1,))


def test_arrays_without_elements():
    empty = np.zeros((0, 3), "f4")
    for shape, options in (((3, 0), {"allowzero": 1}), ((0, 3), {}), ((0, 7), {"allowzero": 1})):
        assert_equal_results("Reshape", [empty, ints(*shape)], (1,), **options)
    got = load(one("Reshape", [("x", FLOAT, (3, 0))], {"s": ints(2, -1)})).outputs[0]
    assert got.shape == (2, 0)
    with pytest.raises(FormatError, match="leaves axis -1 of an operand without elements undetermined"):
        load(one("Reshape", [("x", FLOAT, (0, 3))], {"s": ints(0, -1)}))


@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (4, 1), (4, 5), (3, 1, 1), (2, 1, 1, 5), (7, 1, 1, 1, 1), (1, 3, 4, 5)]
)
def test_a_shape_may_have_fewer_axes_than_the_operand_or_more(shape):
    assert_equal_results("Expand", [X, ints(*shape)], (1,))


@pytest.mark.parametrize("axis", [0, 1, 2, 4, -1, -3])
def test_two_axes_of_all(axis):
    assert_equal_results("Flatten", [X], axis=axis)


def test_without_axes_all_are_turned_and_one_is_kept():
    assert_equal_results("Transpose", [X])
    assert_equal_results("Transpose", [X], perm=[2, 0, 3, 1])
    assert_equal_results("Flatten", [X])
    assert_equal_results("Concat", [X, X[:, :1]], axis=1)
    assert_equal_results("Concat", [X, X[:, :, :2]], axis=-2)


@pytest.mark.parametrize("axes", [None, [0], [-1], [2, 0], [-4, -1]])
def test_axes_of_one_element_go(axes):
    x = X[:1, :, :1, :1]
    assert_equal_results("Squeeze", [x] if axes is None else [x, ints(*axes)], (1,))
    if axes is not None:
        assert_equal_results("Squeeze", [x], opset=11, axes=axes)


@pytest.mark.parametrize("axes", [[0], [-1], [2, 0], [1, -1, 3]])
def test_axes_of_one_element_come(axes):
    assert_equal_results("Unsqueeze", [X[0], ints(*axes)], (1,))
    assert_equal_results("Unsqueeze", [X[0]], opset=11, axes=axes)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_parts_are_given_or_equal_with_a_shorter_last_one(axis):
    n = X.shape[axis]
    assert_equal_results("Split", [X, ints(1, n - 1)], (1,), results=2, axis=axis)
    assert_equal_results("Split", [X, ints(n, 0)], (1,), results=2, axis=axis)
    assert_equal_results("Split", [X], opset=18, results=2, axis=axis, num_outputs=2)
    assert_equal_results("Split", [X], opset=11, results=2, axis=axis, split=[n - 1, 1])
    assert_equal_results("Split", [X[:, :2, :2, :4]], opset=13, results=2, axis=axis)


def test_more_parts_than_elements_and_parts_that_do_not_add_up():
    x = np.arange(5, dtype="f4")
    got = load(one("Split", [("x", FLOAT, (5,))], opset=18, num_outputs=4)).compile(engine="reference")(x)
    assert got[0].tolist() == [0, 1]
    assert_equal_results("Split", [np.arange(7, dtype="f4")], opset=18, results=3, num_outputs=3)
    for lengths in ([2, 4], [6, -1], [2, 2]):
        with pytest.raises(FormatError, match=r"do not add up to axis 0 of .*: their sum must be 5"):
            load(one("Split", [("x", FLOAT, (5,))], {"s": ints(*lengths)}))


FAR = 2**63 - 1
SLICES = [
    ([1], [3], None, None),
    ([-2], [FAR], [-1], None),
    ([1, 0], [9, 2], [1, 3], [2, 1]),
    ([-1], [-9], [2], [-1]),
    ([FAR], [-FAR], [3], [-2]),
    ([3], [0], [2], [-1]),
    ([0], [0], [0], None),
    ([2], [1], [1], [1]),
    ([-9, 4], [2, 0], [-2, -1], [1, -3]),
    ([-9], [3], [2], [-1]),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_slices_are_cut_to_their_axis(starts, ends, axes, steps):
    operands = [X, *(None if v is None else ints(*v) for v in (starts, ends, axes, steps))]
    while operands[-1] is None:
        operands.pop()
    assert_equal_results("Slice", operands, (1, 2, 3, 4))


def test_older_slices_have_attributes():
    assert_equal_results("Slice", [X], opset=9, starts=[1, -3], ends=[3, -1])
    assert_equal_results("Slice", [X], opset=9, starts=[1], ends=[1000], axes=[2])


@pytest.mark.parametrize("shape", [(2, 3), (4, 1, 3), (1, 1), (5, 2, 3), ()])
def test_expansion_goes_both_ways(shape):
    x = np.arange(3, dtype="f4").reshape(1, 3) if shape != (2, 3) else np.arange(2, dtype="f4").reshape(2, 1)
    assert_equal_results("Expand", [x, ints(*shape)], (1,))


@pytest.mark.parametrize("times", [(1, 1), (2, 3), (0, 1), (3, 1)])
def test_repeats_of_each_axis(times):
    assert_equal_results("Tile", [X[0, 0], ints(*times)], (1,))


@pytest.mark.parametrize("mode", [None, "DCR", "CRD"])
def test_blocks_of_channels_and_pixels(mode):
    x = np.arange(2 * 12 * 2 * 3, dtype="f4").reshape(2, 12, 2, 3)
    assert_equal_results("DepthToSpace", [x], blocksize=2, **({} if mode is None else {"mode": mode}))
    assert_equal_results("SpaceToDepth", [np.arange(96, dtype="f4").reshape(2, 2, 4, 6)], blocksize=2)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
@pytest.mark.parametrize("lengths", [(1, 2, 3), (3, 3, 1)])
def test_sequences_are_reversed_up_to_their_length(axes, lengths):
    x = np.arange(36, dtype="f4").reshape(3, 3, 4)
    options = {"time_axis": axes[0], "batch_axis": axes[1]}
    assert_equal_results("ReverseSequence", [x, ints(*lengths)], **options)
    assert_equal_results("ReverseSequence", [x, ints(*lengths)])


@pytest.mark.parametrize("opset", [1, 4])
def test_the_first_files_have_the_shape_as_an_attribute(opset):
    for shape, want in (([6, 20], (6, 20)), ([0, -1], (2, 60)), ([-1], (120,)), ([0, 0, 20], (2, 3, 20))):
        got = load(one("Reshape", [("x", FLOAT, X.shape)], opset=opset, shape=shape)).compile(engine="reference")(X)[0]
        np.testing.assert_array_equal(got, X.reshape(want))


@pytest.mark.parametrize("opset", [9, 10, 11, 13])
@pytest.mark.parametrize("axes", [None, [1, 3], [3, 0]])
def test_slices_of_every_version(opset, axes):
    starts, ends = [1, 0], [3, 2]
    options = {} if axes is None else {"axes": axes}
    if opset < 10:
        operands, attributes = {}, {"starts": starts, "ends": ends, **options}
    else:
        operands, attributes = {"s": ints(*starts), "e": ints(*ends)}, {}
        operands |= {} if axes is None else {"a": ints(*axes)}
    raw = one("Slice", [("x", FLOAT, X.shape)], operands, opset, **attributes)
    index = [slice(None)] * 4
    for axis, start, end in zip(axes or [0, 1], starts, ends):
        index[axis] = slice(start, end)
    np.testing.assert_array_equal(load(raw).compile(engine="reference")(X)[0], X[tuple(index)])
    if opset >= 10:
        with pytest.raises(FormatError, match="step"):
            load(one("Slice", [("x", FLOAT, X.shape)], {**operands, "a": ints(0, 1), "t": ints(1, 0)}, opset))


def test_a_length_that_may_be_0_copies_the_operands():
    c = context(Var((4, 3), "float32", "x"))
    n, least = length(c, "n", 9), length(c, "k", 9, 1)
    got = copy_value(c, n, 4)
    for value, want in ((0, 4), (3, 3), (9, 9)):
        assert int(evaluate([got.node], {n.node: np.array(value)})[0]) == want
    m = length(c, "m", 9)
    assert copy_value(c, least, 4) is least and copy_value(c, m, m) is m and copy_value(c, 5, m) == 5
    other = copy_value(c, m, n)
    assert int(evaluate([other.node], {m.node: np.array(0), n.node: np.array(7)})[0]) == 7
