"""Activations: ends of their ranges, dtypes, which parameter is which, gradients by hand where a branch changes."""

import math

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError
from cgraph.ir.graph import apply
from cgraph.ops.activation import Gelu
from tests.support.computed import computed, float64, gradients
from tests.support.tolerance import assert_near

NAMES = """relu sigmoid softplus relu6 leaky_relu elu selu celu hard_sigmoid hard_swish swish mish softsign
    thresholded_relu gelu""".split()
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("name", NAMES)
def test_complex_numbers_are_refused_and_empty_arrays_and_single_numbers_are_not(name):
    function = getattr(cg, name)
    with pytest.raises(DTypeError, match="complex"):
        function(cg.Var((2,), "complex64", "z"))
    assert function(cg.Var((0, 3))).shape == (0, 3)
    assert function(float64(0.5)).shape == ()


def test_nan_stays_nan_in_each_of_them():
    x = float64([NAN])
    assert [name for name in NAMES if not np.isnan(computed(getattr(cg, name)(x))).all()] == ["thresholded_relu"]


def test_dtypes_of_integers_and_floats():
    whole, single = cg.Var((2,), "int32"), cg.Var((2,), "float32")
    assert cg.relu(whole).dtype == "int32"
    assert cg.sigmoid(whole).dtype == cg.softplus(whole).dtype == "float64"
    assert {getattr(cg, name)(single).dtype for name in NAMES} == {np.dtype("float32")}
    assert cg.relu(cg.Var(np.array([-3, 4], "int32"))).eval().tolist() == [0, 4]


def test_large_arguments_do_not_overflow():
    x = float64([-1000.0, 1000.0, -INF, INF])
    np.testing.assert_array_equal(computed(cg.sigmoid(x)), [0, 1, 0, 1])
    np.testing.assert_array_equal(computed(cg.softplus(x)), [0, 1000, 0, INF])
    np.testing.assert_array_equal(computed(cg.relu6(x)), [0, 6, 0, 6])
    np.testing.assert_array_equal(computed(cg.elu(x, 2.0)), [-2, 1000, -2, INF])
    np.testing.assert_array_equal(gradients(cg.elu(x, 2.0), x), [0, 1, 0, 1])


def test_two_parameters_are_not_exchanged():
    x = float64([-2.0, 1.0])
    low = 1 - math.exp(-2)
    assert_near(computed(cg.selu(x, 3.0, 0.5)), [-1.5 * low, 0.5], "float64 formulas")
    assert_near(computed(cg.celu(x, 4.0)), [-4 * (1 - math.exp(-0.5)), 1], "float64 formulas")
    assert_near(computed(cg.hard_sigmoid(x, 0.25, 0.75)), [0.25, 1], "float64 formulas")
    assert_near(gradients(cg.hard_sigmoid(x, 0.25, 0.5), x), [0, 0.25], "float64 formulas")  # 0 at the bound


def test_both_operands_of_prelu_receive_a_gradient_of_their_shape():
    x, slope = float64([[-1.0, 2.0], [-3.0, 0.0]], [0.5, 0.25])
    np.testing.assert_array_equal(computed(cg.prelu(x, slope)), [[-0.5, 2], [-1.5, 0]])
    to_x, to_slope = gradients(cg.prelu(x, slope), x, slope, seed=[[1, 2], [3, 4]])
    np.testing.assert_array_equal(to_x, [[0.5, 2], [1.5, 1]])
    np.testing.assert_array_equal(to_slope, [-10, 0])


def test_a_threshold_itself_gives_zero():
    x = float64([0.999, 1.0, 1.001])
    np.testing.assert_array_equal(computed(cg.thresholded_relu(x)), [0, 0, 1.001])
    np.testing.assert_array_equal(gradients(cg.thresholded_relu(x), x), [0, 0, 1])


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_keeps_small_results_of_negative_arguments(approximate):
    """Written out they are 0: the sum cancels."""
    x, far = float64([-2.0, 0.0, 2.0], [-9.0])
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    slopes = gradients(cg.gelu(x, approximate), x)
    if not approximate:
        share = 0.5 * math.erfc(math.sqrt(2))
        assert_near(slopes, [share - 2 * density, 0.5, 1 - share + 2 * density], "float64 formulas near zero")
    assert_near(slopes[0] + slopes[2], 1.0, "float64 formulas")
    got = cg.compile(cg.gelu(far, approximate))()
    assert -1e-8 < got[0] < 0


def test_both_kinds_of_gelu_are_two_nodes():
    x = cg.Var((2,))
    assert cg.gelu(x) is cg.gelu(x) is not cg.gelu(x, True)
    assert apply(Gelu(), x).op == Gelu(False) != Gelu(True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint64"])
def test_activations_of_integers_are_those_of_floats(dtype):
    x = cg.Const(np.array([0, 1, 1]), dtype)
    for function in (cg.gelu, lambda y: cg.gelu(y, True), cg.swish, cg.mish, cg.softsign, cg.sigmoid, cg.softplus):
        got, want = cg.compile([function(x), function(x.astype("float64"))])()
        assert_near(got, want.astype(got.dtype), "float32 formulas")
