"""TFLite's schema: fields of options in their order, defaults, numbers of operators and dtypes."""

import numpy as np
import pytest

from cgraph.formats.tflite.context import OPERATORS
from cgraph.formats.tflite.schema import DTYPE, DTYPE_NAMES, NAMES, OPTIONS, Option, options


def test_fields_have_their_place_type_and_default():
    fields = options(7, "padding:b _ stride:i=3 shape:V").fields
    assert fields["padding"] == Option(0, "b", 0) and fields["stride"] == Option(2, "i", 3)
    assert fields["shape"] == Option(3, "V", 0) and options(7, "a:b").number == 7 and options(7, "").fields == {}


@pytest.mark.parametrize(
    ("name", "number"),
    [("ADD", 0), ("CUSTOM", 32), ("RELU", 19), ("STRIDED_SLICE", 45), ("PLACEHOLDER_FOR_GREATER_OP_CODES", 127)]
    + [("CUMSUM", 128), ("BATCH_MATMUL", 126), ("GELU", 150), ("SIGN", 158), ("BITWISE_XOR", 160)],
)
def test_numbers_of_operators_are_those_of_the_schema(name, number):
    """Source: enum BuiltinOperator of schema.fbs."""
    assert NAMES[number] == name and NAMES.count(name) == 1


def test_dtypes_are_those_of_their_names():
    """Source: enum TensorType of schema.fbs, whose names are NumPy's in capitals."""
    for number, dtype in DTYPE.items():
        assert DTYPE_NAMES[number] == np.dtype(dtype).name.upper()


def test_options_belong_to_operators_that_are_read():
    built_in = {name for name in OPTIONS if not name.startswith("CUSTOM ")}
    assert built_in <= set(NAMES) and OPTIONS.keys() <= OPERATORS.keys()
    dilation = OPTIONS["DEPTHWISE_CONV_2D"].fields["dilation_h"]
    assert (dilation.field, dilation.default) == (6, 1) and OPTIONS["CONV_2D"].fields["dilation_w"].default == 1
    assert OPTIONS["MAX_POOL_2D"].fields["window_w"].field == 3 and OPTIONS["MAX_POOL_2D"].fields["stride_w"].field == 1
