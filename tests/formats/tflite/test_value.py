"""TfliteValue: bytes of signed numbers, zero points, shapes in the file's order, transposes that do not accumulate."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.tflite.value import FIRST, LAST, QuantisedFormat, TfliteValue, have_one_format, permute
from cgraph.ops.leaf import Var


def scaled(scale=0.5, zero=3, is_signed=True):
    return QuantisedFormat(np.atleast_1d(np.float32(scale)), np.atleast_1d(np.int64(zero)), 0, is_signed)


def test_the_byte_of_zero_has_the_offset_of_signed_numbers_alone():
    assert scaled(zero=-128).zero == 0 and scaled(zero=127).zero == 255
    assert scaled(zero=7, is_signed=False).zero == 7
    assert scaled(scale=0.25).scale == np.float32(0.25)


def test_one_scale_and_one_zero_point_are_expected():
    with pytest.raises(FormatError, match="2 scales, one is expected"):
        _ = scaled([1.0, 2.0]).scale
    with pytest.raises(FormatError, match="2 zero points, one is expected"):
        _ = scaled(zero=[1, 2]).zero


def test_formats_are_equal_where_each_byte_represents_the_same_float():
    assert scaled().equals(scaled())
    assert scaled(zero=-125).equals(scaled(zero=3, is_signed=False))  # 3 is the byte of zero of both
    assert not scaled().equals(scaled(scale=0.25))
    assert not scaled().equals(scaled(zero=4))
    assert not scaled().equals(scaled(is_signed=False))


def test_signed_constants_are_stored_with_an_offset():
    numbers = np.array([-128, -1, 0, 127], "i1")
    np.testing.assert_array_equal(TfliteValue(array=numbers, quantised=scaled()).stored, [0, 127, 128, 255])
    assert TfliteValue(array=numbers).stored is numbers
    unsigned = numbers.view("u1")
    assert TfliteValue(array=unsigned, quantised=scaled(is_signed=False)).stored is unsigned
    with pytest.raises(FormatError, match="float16 is not supported here. Convert it with DEQUANTIZE"):
        _ = TfliteValue(array=np.ones(2, "f2")).stored


def test_a_shape_is_in_the_files_order():
    x = Var((2, 3, 4, 5))
    assert TfliteValue(x).shape == (2, 3, 4, 5) and TfliteValue(x, first=True).shape == (2, 4, 5, 3)
    assert TfliteValue(x, first=True).plain.shape == (2, 4, 5, 3) and TfliteValue(x).images.shape == (2, 5, 3, 4)
    assert TfliteValue(x, first=True).images is x and TfliteValue(x).plain is x
    assert TfliteValue(x).ndim == 4 and TfliteValue(array=np.ones((6, 7))).shape == (6, 7)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 4, 5), (5,), ()])
def test_channels_of_images_stand_first_and_missing_axes_lead(shape):
    numbers = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    want = numbers.reshape((1,) * (4 - len(shape)) + shape).transpose(0, 3, 1, 2)
    x = Var(shape)
    for images in (TfliteValue(array=numbers).images, TfliteValue(x).images):
        np.testing.assert_array_equal(evaluate([images], {x: numbers})[0], want, strict=True)


def test_a_tensor_of_five_axes_is_no_image():
    with pytest.raises(FormatError, match="a tensor of 5 axes is not an image"):
        _ = TfliteValue(Var((1, 2, 3, 4, 5))).images
    with pytest.raises(FormatError, match="Quantise all or none"):
        _ = TfliteValue(Var(2)).bytes


def test_only_the_inverse_of_a_transpose_undoes_it():
    x = Var((2, 3, 4, 5))
    assert permute(permute(x, LAST), FIRST) is x and permute(permute(x, FIRST), LAST) is x
    assert permute(permute(x, FIRST), FIRST).shape == (2, 4, 5, 3)


@pytest.mark.parametrize("dtypes", [("uint8", "int16"), ("int16", "int32"), ("uint8", "int32"), ("int16", "int16")])
def test_numbers_of_other_bits_have_another_format(dtypes):
    """Whatever their scale and zero point."""
    one, other = (QuantisedFormat(np.float32([0.5]), np.int64([0]), 0, False, np.dtype(dtype)) for dtype in dtypes)
    assert one.equals(other) is other.equals(one) is (dtypes[0] == dtypes[1])
    assert have_one_format(one, other) is (dtypes[0] == dtypes[1])
    assert not have_one_format(one, None) and not have_one_format(None, other) and have_one_format(None, None)
