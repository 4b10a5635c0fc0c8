"""QUANTIZE and DEQUANTIZE of TFLite by hand: scales and zero points of an axis, other signs, half precision."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite.fixed import nearest
from tests.support.tflite_models import Network, results_of


def plus_zero(net, x, shape):
    """A sum with an input of zeros, since an operator cannot have a result of constants alone."""
    return results_of(net, [net.op("ADD", [x, net.input(shape)])], np.zeros(shape, "f4"))[0]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("zero", ["one", "each"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_constants_have_the_scale_and_the_zero_point_of_their_place_on_the_axis(axis, zero, dtype):
    numbers = (np.arange(24) * 5).reshape(2, 3, 4).astype(dtype)
    count = numbers.shape[axis]
    scales = (2.0 ** np.arange(count)).astype("f4")
    zeros = np.arange(count) + 3 if zero == "each" else np.full(count, 3)
    net = Network()
    x = net.op("DEQUANTIZE", [net.constant(numbers, scale=scales, zero=(zeros, axis))])
    along = [-1 if i == axis else 1 for i in range(3)]
    want = (numbers.astype(int) - zeros.reshape(along)) * scales.reshape(along)
    np.testing.assert_array_equal(plus_zero(net, x, numbers.shape), want.astype("f4"), strict=True)


def test_constants_of_half_precision_are_widened_and_others_need_a_scale():
    halves = np.array([1.5, -2, 65504, 6e-8], "f2")
    net = Network()
    found = plus_zero(net, net.op("DEQUANTIZE", [net.constant(halves)]), halves.shape)
    np.testing.assert_array_equal(found, halves.astype("f4"), strict=True)
    net = Network()
    with pytest.raises(FormatError, match="int8 without a scale is not a quantised value"):
        plus_zero(net, net.op("DEQUANTIZE", [net.constant(np.ones(4, "i1"))]), (4,))


@pytest.mark.parametrize(("before", "behind"), [("int8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 4.0])
def test_numbers_get_another_scale_zero_point_and_sign(before, behind, ratio):
    ends = np.iinfo(before)
    numbers = np.arange(ends.min, ends.max + 1).astype(before)
    net = Network()
    x = net.input(numbers.shape, before, scale=0.5 * ratio, zero=7)
    y = net.op("QUANTIZE", [x], {"dtype": behind, "scale": 0.5, "zero": 20})
    want = np.clip(nearest((numbers.astype(float) - 7) * ratio) + 20, np.iinfo(behind).min, np.iinfo(behind).max)
    (found,) = results_of(net, [y], numbers)
    assert found.dtype == behind
    ties = (numbers.astype(int) - 7) * ratio % 1 == 0.5  # which may be rounded up or away from zero
    np.testing.assert_array_equal(found[~ties], want[~ties])
    assert np.abs(found[ties].astype(int) - want[ties]).max(initial=0) <= 1
