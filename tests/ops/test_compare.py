"""Comparisons, logic, shifts and selection: every special value and end as NumPy's, dtypes, refusals, gradients."""

import operator
from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.compare import Where
from tests.support.computed import computed, gradients

OPERATORS = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
COMPARISONS = [*OPERATORS]
NAN, INF = np.nan, np.inf
FLOATS = np.array([-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN])


def pairs_of(values):
    return [a.ravel() for a in np.meshgrid(values, values)]


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize(
    "values",
    [FLOATS, np.array([-(2**63), -1, 0, 2**63 - 1]), np.array([0, 1, 2**64 - 1], "uint64"), np.array([False, True])],
    ids=["floats", "int64", "uint64", "bool"],
)
def test_comparisons_are_numpys(name, values):
    x, y = pairs_of(values)
    got = computed(getattr(cg, name)(cg.Var(x), cg.Var(y)))
    np.testing.assert_array_equal(got, getattr(np, name)(x, y))
    assert got.dtype == bool


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_python_integers_outside_the_dtype_are_compared_by_value(name, dtype):
    x, numbers = np.array([[0, 5, 100]], dtype), (-(2**70), -1, 127, 256, 2**64)
    call, want = getattr(cg, name), getattr(np, name)
    got = cg.compile([call(cg.Var(x), n) for n in numbers] + [call(n, cg.Var(x)) for n in numbers])()
    for a, b in zip(got, [want(x, n) for n in numbers] + [want(n, x) for n in numbers], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", COMPARISONS)
def test_python_integers_are_compared_by_value_with_bool_and_with_each_other(name):
    """NumPy refuses some of these integers beside bool. Python's operators do not."""
    call, want = getattr(cg, name), OPERATORS[name]
    numbers = (-(2**70), -(2**63), -1, 0, True, 2, 2**63, 2**64, 2**70, 1e300)
    for x, y in product(numbers, repeat=2):
        assert bool(computed(call(x, y))) == want(x, y), (x, y)
    for x in numbers:
        for values in ([True, False], np.array([True, False])):
            assert computed(call(values, x)).tolist() == [want(one, x) for one in (True, False)], x
            assert computed(call(x, values)).tolist() == [want(x, one) for one in (True, False)], x


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("values", [[1, 2, 3], (1, 2), [[1], [5]], [0.5, 2.0]], ids=str)
def test_lists_are_compared_with_numbers_as_arrays(name, values):
    call, want = getattr(cg, name), getattr(np, name)
    for n in (2, 2**70, -(2**70), 1.5, True):
        for got, expected in ((call(values, n), want(values, n)), (call(n, values), want(n, values))):
            np.testing.assert_array_equal(computed(got), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_complex_numbers_are_compared_by_the_real_part_first():
    x, y = pairs_of(np.array([1 + 1j, 1 - 1j, 2, complex(NAN, 0)]))
    for name in COMPARISONS:
        np.testing.assert_array_equal(computed(getattr(cg, name)(cg.Var(x), cg.Var(y))), getattr(np, name)(x, y))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits_of_integers_and_logic_of_bool(name):
    for values in (np.array([0b1100, 0b1010, -1, -128], "int8"), np.array([False, True])):
        x, y = pairs_of(values)
        np.testing.assert_array_equal(computed(getattr(cg, name)(cg.Var(x), cg.Var(y))), getattr(np, name)(x, y))
    with pytest.raises(DTypeError, match=f"{name} needs integers or bool, not float32; use a comparison, astype or"):
        getattr(cg, name)(cg.Var((2,)), cg.Var((2,)))
    assert computed(~cg.Var(np.array([0, 255], "uint8"))).tolist() == [255, 0]
    assert computed(~cg.Var(np.array([True, False]))).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"])
def test_no_bits_of_floats_and_complex_numbers_are_combined(name, dtype):
    x = cg.Var((2,), dtype)
    with pytest.raises(DTypeError, match="needs integers or bool, not|does not support complex"):
        getattr(cg, name)(*[x] * (1 if name == "invert" else 2))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
def test_shifts_by_the_width_or_more_leave_the_sign(name, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    low = np.iinfo(dtype).min
    x, y = (a.ravel() for a in np.meshgrid(np.array([low, 1, 5, 127], dtype),
                                           np.array([0, 1, bits - 1, bits, 100], dtype)))  # fmt: skip
    np.testing.assert_array_equal(computed(getattr(cg, name)(cg.Var(x), cg.Var(y))), getattr(np, name)(x, y))


def test_shifts_of_bool_are_bytes():
    x = cg.Var(np.array([True, False]))
    got = computed(cg.left_shift(x, x))
    assert (got.tolist(), got.dtype) == ([2, 0], np.dtype("int8"))


def test_logic_of_numbers_asks_whether_they_are_zero():
    x, y = cg.Var(np.array([0.0, 2.0, 0.0, NAN])), cg.Var(np.array([0, 0, -1, 3]))
    a, b = x.value, y.value
    assert computed(cg.logical_not(x)).tolist() == [True, False, True, False]
    for name in ("logical_and", "logical_or", "logical_xor"):
        np.testing.assert_array_equal(computed(getattr(cg, name)(x, y)), getattr(np, name)(a, b))


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_what_is_finite(name):
    z = np.array([1j, complex(INF, 0), complex(0, -INF), complex(NAN, 1), complex(1, NAN), complex(NAN, INF)])
    for values in (FLOATS, FLOATS.astype("float32"), z, np.array([0, -1]), np.array([True])):
        got = computed(getattr(cg, name)(cg.Var(values)))
        np.testing.assert_array_equal(got, getattr(np, name)(values))
        assert got.dtype == bool


def test_where_selects_and_both_choices_receive_their_part_of_the_gradient():
    p = cg.Var(np.array([[True], [False]]))
    x, y = cg.Var(np.array([1.0, 2.0])), cg.Var(np.array(9.0))
    assert computed(cg.where(p, x, y)).tolist() == [[1, 2], [9, 9]]
    to_x, to_y = gradients(cg.where(p, x, y), x, y, seed=[[1, 10], [100, 1000]])
    assert (to_x.tolist(), to_y.tolist()) == ([1, 10], 1100)
    assert computed(cg.where(cg.Var(np.array([0.5, 0.0])), 1, 2)).tolist() == [1, 2]
    assert cg.where(p, cg.Var((2,), "int32"), cg.Var((2,), "float32")).dtype == "float64"
    assert cg.where(p, x.astype("float32"), 1.5).dtype == "float32"


def test_where_passes_nothing_of_the_other_choice():
    p, x = cg.Var(np.array([True, False])), cg.Var(np.array([4.0, 0.0]))
    safe = cg.where(p, 1 / cg.where(p, x, 1.0), 0.0)
    assert gradients(safe, x).tolist() == [-0.0625, 0]


def test_comparisons_have_no_gradient_and_shapes_that_do_not_broadcast_are_named():
    x, y = cg.Var((2,), "float64", "x"), cg.Var((3,), "float64", "y")
    assert computed(cg.gradient(cg.sum((x > 0) * 1.0), x.assign([1, -1]))).tolist() == [0, 0]
    assert apply(Where(), x > 0, x, x).dtype == "float64"
    for operands in ((x > 0, x, x.astype("float32")), (x, x, x)):
        with pytest.raises(DTypeError, match="pass a bool condition, and x and y of one dtype"):
            apply(Where(), *operands)
    with pytest.raises(ShapeError, match=r"x float64\[2\], y float64\[3\]; use equal lengths or 1"):
        cg.less(x, y)
