"""Dynamic-range quantisation of TFLite by hand: scales and zero points of rows, rows of zeros, frames."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.formats.tflite.dynamic import Dynamic, asymmetric, pad_image, symmetric
from cgraph.ops.leaf import Const
from tests.support.tolerance import assert_near

X = np.array([[-1, 0.5, 2, 0.25], [0, 0, 0, 0], [-8, 4, 1, -2], [1, 2, 3, 4]], "f4")


def parts(dynamic):
    return evaluate([dynamic.numbers, dynamic.zero, dynamic.scale], {})


@pytest.mark.parametrize("axes", [(1,), (0,), (0, 1)])
def test_symmetric_numbers_have_the_largest_at_the_end(axes):
    numbers, zero, scale = parts(symmetric(Const(X), axes))
    most = np.abs(X).max(axes, keepdims=True)
    assert numbers.dtype == np.uint8 and zero.dtype == np.int32 and (zero == 128).all() and zero.shape == most.shape
    assert_near(scale, np.where(most == 0, 1, most / 127), "float32 formulas")
    signed = numbers.astype(int) - 128
    assert np.abs(signed).max() == 127
    assert_near(signed * scale, X, "numbers of a unit", scale)


@pytest.mark.parametrize("axes", [(1,), (0,), (0, 1)])
def test_asymmetric_numbers_use_the_whole_range_and_zero_is_exact(axes):
    numbers, zero, scale = parts(asymmetric(Const(X), axes))
    low, high = np.minimum(X.min(axes, keepdims=True), 0), np.maximum(X.max(axes, keepdims=True), 0)
    assert_near(scale, np.where(low == high, 1, (high - low) / 255), "float32 formulas")
    assert zero.min() >= 0 and zero.max() <= 255 and zero.shape == low.shape
    back = (numbers.astype(int) - zero) * scale
    assert not back[X == 0].any()
    assert_near(back, X, "numbers of a unit", 2 * np.broadcast_to(scale, X.shape))


def test_rows_by_hand():
    numbers, zero, scale = parts(asymmetric(Const(X[:2]), (1,)))
    # 255 units of 3/255 from -1 to 2: zero is the unit 85
    assert (
        zero.tolist() == [[85], [128]]
        and numbers[0, [0, 2, 3]].tolist() == [0, 255, 106]
        and numbers[1].tolist() == [128] * 4
    )
    assert_near(scale, [[3 / 255], [1]], "float32 formulas")
    numbers, _, _ = parts(symmetric(Const(X[:2]), (1,)))
    assert numbers.tolist() == [[64, 160, 255, 144], [128] * 4]


def test_frames_are_of_the_zero_point_of_their_image():
    numbers = Const(np.arange(12, dtype="u1").reshape(2, 1, 2, 3))
    x = Dynamic(numbers, Const(np.array([100, 200], "i4").reshape(2, 1, 1, 1)), Const(np.ones((2, 1, 1, 1), "f4")))
    assert pad_image(x, (0, 0, 0, 0)) is numbers
    got = evaluate([pad_image(x, (1, 0, 0, 2))], {})[0]
    for i, fill in enumerate((100, 200)):
        want = np.pad(np.arange(6).reshape(2, 3) + 6 * i, ((1, 0), (0, 2)), constant_values=fill)
        np.testing.assert_array_equal(got[i, 0], want)
