"""bitcast: the bits of each element as another dtype of its size, without a copy."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError
from cgraph.kernels.kernel import Pointer, View
from cgraph.ops.bitcast import Bitcast
from tests.support.computed import computed


def test_bits_of_floats_are_those_of_ieee_754():
    x = cg.Var(np.array([1.0, -0.0, np.inf, -2.5], "float32"))
    assert computed(cg.bitcast(x, "uint32")).tolist() == [0x3F800000, 0x80000000, 0x7F800000, 0xC0200000]
    assert computed(cg.bitcast(x, "int32"))[1] == -(2**31)
    assert computed(cg.bitcast(cg.bitcast(x, "int32"), "float32")).tobytes() == x.value.tobytes()


@pytest.mark.parametrize("dtype, other", [("int8", "uint8"), ("int16", "uint16"), ("float64", "int64"),
                                          ("complex64", "uint64")])  # fmt: skip
def test_any_two_dtypes_of_one_size_in_any_order_of_bytes(dtype, other):
    x = np.arange(-3, 9).astype(dtype).reshape(3, 4)
    got = computed(cg.bitcast(cg.transpose(cg.Var(x)), other))
    np.testing.assert_array_equal(got, np.ascontiguousarray(x.T).view(other))
    assert cg.bitcast(cg.Var((0, 3), dtype), other).spec.shape == (0, 3)
    assert cg.bitcast(cg.Var((), dtype), other).shape == ()


def test_bytes_become_bool_by_their_value_and_bool_becomes_bytes():
    x = cg.Var(np.array([0, 1, 2, 255], "uint8"))
    assert computed(cg.bitcast(x, "bool")).tolist() == [False, True, True, True]
    truth = cg.Var(np.array([True, False]))
    assert cg.bitcast(truth, bool) is truth
    assert computed(cg.bitcast(truth, "uint8")).tolist() == [1, 0]


def test_another_size_is_refused_and_the_same_dtype_is_the_operand():
    x = cg.Var((2,), "float32")
    assert cg.bitcast(x, "float32") is x
    with pytest.raises(DTypeError, match="float32 has 4 bytes, float64 has 8; use astype for values"):
        cg.bitcast(x, "float64")
    with pytest.raises(DTypeError, match="float32 has 4 bytes, bool has 1"):
        cg.bitcast(x, "bool")
    with pytest.raises(DTypeError, match="int8 has 1 bytes, bool has 1"):
        Bitcast(np.dtype(bool)).infer(cg.Var((2,), "int8").spec)


def test_it_is_a_view_of_the_bytes_and_one_node_for_each_dtype():
    x = cg.Var((2, 3), "float32")
    assert cg.bitcast(x, "int32") is cg.bitcast(x, np.int32) is not cg.bitcast(x, "uint32")
    view = View(Pointer("bytes", 8), (2, 3), (4, 8), "f4")
    assert Bitcast(np.dtype("uint32")).alias(view) == View(Pointer("bytes", 8), (2, 3), (4, 8), "u4")
