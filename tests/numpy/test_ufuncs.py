"""Methods of ufuncs and the dtypes that a call requests are NumPy's."""

from contextlib import suppress
from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import NoMeaningError
from cgraph.numpy.ufuncs import ACCUMULATED, GROUPED, REDUCED, signature_of_dtype
from tests.numpy.evaluated import compare

X = np.array([[3, 0, 5, 6], [6, 9, 4, 0], [1, 7, 2, 2]])
OF_INTEGERS = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm)


def operand(ufunc: np.ufunc) -> np.ndarray:
    return X if ufunc in OF_INTEGERS else X / 4


@pytest.mark.parametrize("ufunc", {**GROUPED, **REDUCED}, ids=lambda u: u.__name__)
def test_reductions_of_every_ufunc(ufunc):
    x, name = operand(ufunc), f"np.{ufunc.__name__}.reduce"
    several = () if ufunc is np.lcm else (None, (0, 1))  # NumPy has no order for several axes there
    for axis, keepdims in product((0, 1, -1, (-1,), *several), (False, True)):
        compare(f"{name}(x, axis={axis}, keepdims={keepdims})", x=x)
    compare(f"{name}(x)", x=x)
    compare(f"{name}(x, axis=1)", x=x[:, :1])
    for shape in ((0, 3), (2, 0)):
        compare(f"{name}(x)", x=np.zeros(shape, x.dtype))
        compare(f"{name}(x, axis=1, keepdims=True)", x=np.zeros(shape, x.dtype))


@pytest.mark.parametrize("ufunc", {**GROUPED, **ACCUMULATED}, ids=lambda u: u.__name__)
def test_scans_of_every_ufunc(ufunc):
    x, name = operand(ufunc), f"np.{ufunc.__name__}.accumulate"
    for axis in (0, 1, -1, 2):
        compare(f"{name}(x, axis={axis})", x=x)
    compare(f"{name}(x)", x=np.tile(x, 3)[0])
    compare(f"{name}(x)", x=x[:0])


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "gcd", "logical_or"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_groups_between_positions_rising_falling_and_equal(name, axis):
    for at in ([0], [0, 2], [1, 2, 2, 0], [2, 0], [2, 2], [1]):
        compare(f"np.{name}.reduceat(x, {at}, axis={axis})", x=X)


def test_first_values_masks_and_dtypes_of_reductions():
    mask = X > 2
    for how in ("dtype='float32'", "initial=10", "where=w", "where=w, initial=2", "dtype='int32', axis=1"):
        compare(f"np.add.reduce(x, {how})", "float32" if "float32" in how else "float64", x=X, w=mask)
    compare("np.maximum.reduce(x, where=w, initial=-1)", x=X, w=mask)
    compare("np.add.accumulate(x, dtype='float32')", x=X)
    compare("np.add.reduceat(x, [0, 2], 1, 'float32')", x=X)


@pytest.mark.parametrize("call", [
    "np.subtract.reduce(x)", "np.divide.accumulate(x)", "np.power.reduce(x)", "np.gcd.reduce(x, initial=2)",
    "np.maximum.reduce(x, dtype=int)",    "np.add.reduceat(x, node)",
])  # fmt: skip
def test_what_depends_on_the_order_is_refused(call):
    names = {"x": cg.Const(X), "node": cg.Var((2,), "int64")}
    with pytest.raises(NoMeaningError, match="; use "):
        eval(call, {"np": np, **names})


@pytest.mark.parametrize("call", [
    "np.add(x, y, dtype='float32', casting='unsafe')", "np.add(x, y, dtype='int8')", "np.add(x, y, casting='no')",
    "np.sqrt(x, dtype='float32')", "np.add(x, 1, signature=(None, None, 'd'))", "np.divmod(x, 2, dtype='float64')",
    "np.add.outer(x, y[0], dtype='float64')", "np.less(x, y, signature=('f', 'f', '?'), casting='unsafe')",
    "np.add(x, 1.5, dtype='int64')", "np.modf(x, sig=('f', 'f', 'f'), casting='unsafe')",
    "np.frexp(x, sig=('f', 'f', 'i'), casting='unsafe')",
])  # fmt: skip
def test_a_call_computes_in_the_dtype_that_it_requests(call):
    compare(call, "float32" if "'f" in call else "float64", x=X, y=X + 0.5)


@pytest.mark.parametrize("option", [
    "dtype='float32'", "dtype='complex128'", "sig=('f', 'f', 'f'), casting='unsafe'", "dtype='int16', casting='unsafe'",
    "dtype='float32', casting='no'", "dtype='int8'",
])  # fmt: skip
@pytest.mark.parametrize("call", [
    "np.multiply(x, y{})", "np.multiply.outer(x, y[0]{})", "np.multiply.reduce(x, 1{})",
    "np.multiply.accumulate(x, 1{})", "np.multiply.reduceat(x, [0, 2], 1{})",
])  # fmt: skip
def test_no_way_of_calling_a_ufunc_loses_an_option(call, option):
    """Each option changes the result, or is refused where NumPy refuses it."""
    if "np.multiply(" not in call and "outer" not in call:
        option = option.split(", cast")[0].replace("sig=('f', 'f', 'f')", "dtype='f'")  # these take a dtype only
    arrays = {"x": X / 4, "y": X / 4 + 1}
    plain, asked = call.format(""), call.format(f", {option}")
    with suppress(TypeError):  # NumPy's refusal, which is compared below
        assert eval(asked, {"np": np, **arrays}).dtype != eval(plain, {"np": np, **arrays}).dtype
    compare(asked, "float32" if "'f" in option else "float64", **arrays)


def test_a_dtype_is_that_of_every_result_and_of_no_operand():
    dtype = np.dtype("f4")
    assert signature_of_dtype(np.add, {"dtype": "f4"}) == {"signature": (None, None, dtype)}
    assert signature_of_dtype(np.modf, {"dtype": "f4"}) == {"signature": (None, dtype, dtype)}
    assert signature_of_dtype(np.add, {"sig": "ddd", "casting": "safe"}) == {
        "casting": "safe",
        "signature": tuple("ddd"),
    }
    assert signature_of_dtype(np.add, {"dtype": None}) == {}


@pytest.mark.parametrize("call", [
    "np.add.reduce(x, 0, initial=np._NoValue)", "np.maximum.reduce(x, 1, initial=np._NoValue)",
    "np.add.reduce(x, 0, None, initial=None)", "np.maximum.reduce(x, 1, initial=0.5)",
    "np.minimum.reduce(x, initial=2)",
    "np.multiply.reduce(x, 1, keepdims=True, initial=2)", "np.add.reduce(x, None)", "np.add.reduce(x, (0, 1))",
    "np.maximum.accumulate(x, 1)", "np.add.accumulate(x, 1, 'float64')", "np.multiply.accumulate(x, dtype='float64')",
    "np.maximum.accumulate(i, 0, 'int8')", "np.minimum.accumulate(i, 1, dtype='float64')",
    "np.logaddexp.accumulate(i, 1, dtype='float64')", "np.bitwise_or.accumulate(i, 1, dtype='int8')",
])  # fmt: skip
def test_options_of_reductions_and_running_results(call):
    i = np.array([[3, 1, 7, 2], [5, 0, 6, 9], [4, 4, 8, 1]])
    compare(call, x=i / 4 - 1, i=i)
