"""Names of Mask R-CNN's weight files: a reader that counts, turned matrices, order of boxes, absorbed biases."""

import numpy as np
import pytest

from cgraph import FormatError
from nn.models.mask_rcnn.names import (
    ArrayReader,
    add_prefix,
    anchor_arrays,
    convolution,
    full_arrays,
    keras_norm,
    matrix,
    reorder_boxes,
)


def numbers(*shape, start=0):
    return np.arange(start, start + np.prod(shape), dtype="f4").reshape(shape)


def test_a_reader_names_what_is_missing_and_what_nobody_read():
    reader = ArrayReader({"a": numbers(2), "b": numbers(1), "n.counter": numbers(1)}, "this network")
    assert reader["a"].tolist() == [0, 1] and "b" in reader and "c" not in reader
    assert (len(reader), list(reader)) == (3, ["a", "b", "n.counter"])
    with pytest.raises(FormatError, match="the file has no c, which this network has"):
        reader["c"]
    with pytest.raises(FormatError, match="the file has b, which this network has not"):
        reader.check_all_read(".counter")
    assert reader["b"] is not None
    reader.check_all_read(".counter")
    with pytest.raises(FormatError, match=r"n\.counter"):
        reader.check_all_read("other")


def test_a_matrix_is_turned_and_its_bias_is_not():
    got = matrix({"fc.weight": numbers(2, 3), "fc.bias": numbers(2)}, "box", "fc")
    assert got["box.weight"].tolist() == [[0, 3], [1, 4], [2, 5]] and got["box.bias"].tolist() == [0, 1]
    assert add_prefix("trunk.", got).keys() == {"trunk.box.weight", "trunk.box.bias"}


def test_a_convolution_is_one_with_a_norm_a_bias_or_an_older_name():
    pair = {"weight": numbers(1), "bias": numbers(1, start=5)}
    new, old, other = (add_prefix(f"{name}.", pair) for name in ("x.0", "x", "before"))
    for arrays, before in ((new, None), (old, None), (other, "before"), (new, "before")):
        assert convolution(arrays, "y", "x", before) == {"y.weight": pair["weight"], "y.bias": pair["bias"]}
    parts = {"weight": 1, "bias": 2, "running_mean": 3, "running_var": 4}
    normed = {f"x.1.{part}": np.float32(i) for part, i in parts.items()} | {"x.0.weight": np.float32(9)}
    want = {"y.conv.weight": 9, "y.norm.scale": 1, "y.norm.shift": 2, "y.norm.mean": 3, "y.norm.variance": 4}
    assert convolution(normed, "y", "x") == want


def test_coded_boxes_become_x_y_w_h():
    assert reorder_boxes(numbers(8)).tolist() == [1, 0, 3, 2, 5, 4, 7, 6]
    assert reorder_boxes(numbers(2, 4)).tolist() == [[1, 0, 3, 2], [5, 4, 7, 6]]


def test_two_logits_of_an_anchor_become_their_difference():
    arrays = {
        "rpn_model/rpn_class_raw/kernel": np.array([1, 11, 2, 22], "f4").reshape(1, 1, 1, 4),
        "rpn_model/rpn_class_raw/bias": np.array([1, 5, 7, 2], "f4"),
        "rpn_model/rpn_bbox_pred/kernel": numbers(1, 1, 1, 8),
        "rpn_model/rpn_bbox_pred/bias": numbers(8, start=100),
    }
    got = anchor_arrays(arrays)
    assert got["rpn.numbers.weight"].shape == (10, 1, 1, 1)
    assert got["rpn.numbers.weight"].ravel().tolist() == [10, 20, 1, 0, 3, 2, 5, 4, 7, 6]
    assert got["rpn.numbers.bias"].tolist() == [4, -5, 101, 100, 103, 102, 105, 104, 107, 106]


def test_a_norms_mean_absorbs_the_bias_of_its_convolution():
    norm = {
        f"n/{part}": np.full(2, i, "f4") for i, part in enumerate(("gamma", "beta", "moving_mean", "moving_variance"))
    }
    arrays = norm | {"c/kernel": numbers(2, 3, 4, 2), "c/bias": np.array([10, 20], "f4")}
    got = keras_norm(arrays, "y", "c", "n")
    assert (
        got["y.conv.weight"].shape == (2, 4, 2, 3)
        and got["y.conv.weight"][1, 3, 0, 2] == arrays["c/kernel"][0, 2, 3, 1]
    )
    assert got["y.norm.mean"].tolist() == [-8, -18] and got["y.norm.scale"].tolist() == [0, 0]
    assert got["y.norm.shift"].tolist() == [1, 1] and got["y.norm.variance"].tolist() == [3, 3]
    full = full_arrays(arrays, "z", "c", "n")
    assert full["z.normal.mean"].tolist() == [2, 2] and full["z.linear.bias"].tolist() == [10, 20]
    cells = numbers(4, 2, 3)
    want = np.einsum("chw,hwck->k", cells, arrays["c/kernel"])
    assert (cells.ravel() @ full["z.linear.weight"]).tolist() == want.tolist()


@pytest.mark.parametrize(("count", "names"), [(1, "a"), (3, "a, b, c"), (5, "a, b, c")])
def test_up_to_three_arrays_that_were_not_read_are_named(count, names):
    reader = ArrayReader({name: numbers(1) for name in "edcba"[-count:]}, "this network")
    with pytest.raises(FormatError) as error:
        reader.check_all_read(".counter")
    assert str(error.value) == f"the file has {names}, which this network has not. Use the file of this network."
