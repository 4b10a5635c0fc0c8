"""Pad and CenterCropPad: modes, axes in any order, negative widths, odd differences, older opsets."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, assert_equal_results, one
from tests.support.onnx_open import node, open_model

pytest.importorskip("onnxruntime")
X = np.arange(1, 13, dtype="f4").reshape(3, 4)
MODES = ("constant", "edge", "reflect", "wrap")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 2, 2, 0], [0, 3, 1, 1], [2, 0, 0, 3]])
def test_frames_of_every_mode(mode, pads):
    value = np.array(7.5, "f4") if mode == "constant" else None
    assert_equal_results("Pad", [X, np.array(pads), value], (1, 2), mode=mode)


@pytest.mark.parametrize("axes", [[0], [1], [-1], [1, 0], [-2, -1]])
def test_frames_of_some_axes(axes):
    pads = np.arange(2 * len(axes))
    assert_equal_results("Pad", [X, pads, np.array(2, "f4"), np.array(axes)], (1, 3))
    assert_equal_results("Pad", [X, pads, None, np.array(axes)], (1, 3), mode="edge")


@pytest.mark.parametrize("pads", [[-1, 0, 0, 0], [0, -1, 2, -2], [-2, 1, 3, -1], [1, 0, -2, 0]])
def test_negative_widths_cut(pads):
    assert_equal_results("Pad", [X, np.array(pads), np.array(9, "f4")], (1, 2))


@pytest.mark.parametrize("dtype", ["i4", "i8", "f8", "u1", "?"])
def test_frames_of_other_dtypes(dtype):
    assert_equal_results("Pad", [X.astype(dtype), np.array([0, 1, 1, 0]), np.array(1, dtype)], (1, 2), opset=18)
    assert_equal_results("Pad", [X.astype(dtype), np.array([0, 1, 1, 0])], (1,), opset=18)


def test_a_value_of_a_run_fills():
    assert_equal_results("Pad", [X, np.array([1, 0, 0, 2]), np.array(3.5, "f4")], (1,))


def test_older_files_have_widths_and_value_as_attributes():
    assert_equal_results("Pad", [X], opset=10, pads=[1, 0, 2, 3], value=4.5)
    assert_equal_results("Pad", [X], opset=10, pads=[1, 0, 1, 2], mode="edge")


@pytest.mark.parametrize("axes", [None, [0, 1], [1, 0], [-1, 0], [1]])
@pytest.mark.parametrize("shape", [(2, 2), (5, 3), (3, 4), (4, 7), (1, 1), (6, 9)])
def test_the_centre_stays(axes, shape):
    lengths = np.array(shape[: len(axes or shape)])
    options = {} if axes is None else {"axes": axes}
    assert_equal_results("CenterCropPad", [X, lengths], (1,), by="reference", **options)


def test_widths_are_two_for_each_axis():
    for pads in ([1, 2], [1, 2, 3, 4, 5]):
        with pytest.raises(FormatError, match="Pad.*do not fit 2 axes: give two for each"):
            load(one("Pad", [("x", FLOAT, (3, 4))], {"p": np.array(pads)}))


def test_a_wrapped_frame_is_charged():
    with pytest.raises(FormatError, match="Pad.*would take"):
        load(one("Pad", [("x", FLOAT, (3,))], {"p": np.array([0, 10_000_000])}, mode="wrap"))


@pytest.mark.parametrize("opset", [1, 2, 10, 11, 13])
def test_frames_of_every_version(opset):
    """Widths are operands from version 11 on; the first files call them paddings."""
    names = {1: "paddings"}
    pads, value = [1, 0, 2, 3], 4.5
    want = np.pad(X, ((1, 2), (0, 3)), constant_values=value)
    if opset < 11:
        raw = one("Pad", [("x", FLOAT, X.shape)], opset=opset, value=value, **{names.get(opset, "pads"): pads})
    else:
        raw = one("Pad", [("x", FLOAT, X.shape)], {"p": np.array(pads), "v": np.array(value, "f4")}, opset)
    np.testing.assert_array_equal(load(raw).compile(engine="reference")(X)[0], want)


def test_wrapped_frames_may_be_cut_to_nothing():
    for pads, want in (([-1, 0, 0, 2], np.pad(X[1:], ((0, 0), (0, 2)), "wrap")), ([0, -1, 0, -1], X[:, 1:-1])):
        raw = one("Pad", [("x", FLOAT, X.shape)], {"p": np.array(pads)}, mode="wrap")
        np.testing.assert_array_equal(load(raw).compile(engine="reference")(X)[0], want)
    raw = one("Pad", [("x", FLOAT, X.shape)], {"p": np.array([-2, 0, -1, 1])}, mode="wrap")
    assert load(raw).outputs[0].shape == (0, 5)


@pytest.mark.parametrize(("count", "axes"), [(3, None), (4, [0]), (2, [0, 1])])
def test_widths_of_a_run_are_two_for_each_axis(count, axes):
    names = ["x", "p"] + ([] if axes is None else ["", "a"])
    inputs = {"x": ("f4", X.shape), "p": ("i8", (count,))}
    constants = {} if axes is None else {"a": np.array(axes)}
    with pytest.raises(FormatError, match=f"{count} pads do not fit {len(axes or X.shape)} axes: give two for each"):
        load(open_model([node("Pad", names, ["y"])], inputs, constants), maximum={"p": 3})
