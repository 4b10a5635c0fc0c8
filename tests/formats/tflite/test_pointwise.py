"""Elementwise operators of TFLite: operands of fewer axes, conditions, casts, quotients of integers."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from tests.support.tflite_models import Network, reference, results_of
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", ["SELECT", "SELECT_V2"])
@pytest.mark.parametrize(("condition", "shape"), [
    ((5,), (5,)), ((2, 3), (2, 3)), ((3,), (3, 2)), ((3,), (3, 2, 4)), ((3,), (3, 2, 4, 3)), ((3, 3), (3, 3)),
    ((2, 1, 3, 1), (2, 1, 3, 1)),
])  # fmt: skip
def test_a_condition_of_a_row_chooses_whole_rows_in_the_older_operator_alone(kind, condition, shape):
    p = RNG.random(condition) > 0.5
    p.flat[:2] = True, False
    x, y = RNG.standard_normal((2, *shape)).astype("f4")
    net = Network()
    result = net.op(kind, [net.input(condition, "bool"), net.input(shape), net.input(shape)])
    wide = p.reshape(*condition, *[1] * (len(shape) - len(condition))) if kind == "SELECT" else p
    if kind == "SELECT_V2" and len(condition) < len(shape) and shape[-1] != condition[-1]:
        with pytest.raises(FormatError, match="in SELECT_V2 0: "):
            results_of(net, [result], p, x, y)
        return
    np.testing.assert_array_equal(results_of(net, [result], p, x, y)[0], np.where(wide, x, y), strict=True)


def test_numbers_are_cast_to_the_dtype_of_the_result():
    """Complex ones lose their imaginary part unless the result is complex."""
    x = np.float32([[1.75, -2.5, 0, 3, -0.25, 8]])
    net = Network()
    spectrum = net.op("RFFT2D", [net.input((1, 6)), net.constant(np.array([1, 6], "i4"))], "complex64")
    kinds = ("float32", "complex64", "int32")
    made = [net.op("CAST", [spectrum], kind) for kind in kinds]
    whole, *found = results_of(net, [spectrum, *made], x)
    for got, want, kind in zip(found, (whole.real, whole, whole.real.astype("i4")), kinds, strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == kind
    net = Network()
    given = net.input((1, 6))
    made = [net.op("CAST", [given], kind) for kind in ("int32", "int64", "bool", "float32", "complex64")]
    for got, kind in zip(results_of(net, made, x), ("i4", "i8", "?", "f4", "c8"), strict=True):
        np.testing.assert_array_equal(got, x.astype(kind), strict=True)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_quotients_of_integers_are_cut_towards_0_or_rounded_down(dtype):
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(np.arange(-7, 8), [-3, -2, -1, 1, 2, 3, 5]))
    net = Network()
    a, b = net.input(x.shape, dtype), net.input(y.shape, dtype)
    made = [net.op(kind, [a, b], dtype) for kind in ("DIV", "FLOOR_DIV", "FLOOR_MOD")]
    want = (np.sign(x * y) * (np.abs(x) // np.abs(y)), x // y, x % y)
    for got, rule in zip(results_of(net, made, x, y), want, strict=True):
        np.testing.assert_array_equal(got, rule, strict=True)


ACTIVATED = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide}
OTHERS = {"MAXIMUM": np.maximum, "MINIMUM": np.minimum, "SQUARED_DIFFERENCE": lambda x, y: (x - y) ** 2}


@pytest.mark.parametrize("activation", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [*ACTIVATED, *OTHERS])
def test_operands_of_fewer_axes_are_repeated_and_sums_have_an_activation(kind, activation):
    """In both orders of the operands, also beside images that are turned."""
    rule, options = ACTIVATED.get(kind), {"activation": activation}
    if rule is None:
        rule, options, activation = OTHERS[kind], {}, 0
    low, high = {0: (-np.inf, np.inf), 1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}[activation]
    x = RNG.integers(1, 9, (2, 3, 4, 5)).astype("f4")
    eye = np.eye(5, dtype="f4").reshape(5, 1, 1, 5)
    for turned in (False, True):
        for shape in ((), (5,), (4, 1), (3, 1, 5), (1, 3, 4, 5)):
            y = -RNG.integers(1, 9, shape).astype("f4")
            for swapped in (False, True):
                net = Network()
                a = net.input(x.shape)
                if turned:
                    a = net.op("CONV_2D", [a, net.constant(eye), net.constant(np.zeros(5, "f4"))], stride_w=1,
                               stride_h=1)  # fmt: skip
                b = net.constant(y)
                made = net.op(kind, [b, a] if swapped else [a, b], **options)
                want = np.clip(rule(y, x) if swapped else rule(x, y), low, high)
                (got,) = results_of(net, [made], x)
                np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_sum_of_any_number_of_operands(count):
    xs = RNG.integers(-9, 9, (count, 2, 3)).astype("f4")
    net = Network()
    made = net.op("ADD_N", [net.input((2, 3)) for _ in xs])
    np.testing.assert_array_equal(results_of(net, [made], *xs)[0], xs.sum(0), strict=True)


@pytest.mark.parametrize("approximate", [False, True])
def test_a_gelu_is_exact_unless_told_otherwise(approximate):
    x = np.linspace(-4, 4, 33, dtype="f4")
    net = Network()
    made = net.op("GELU", [net.input(x.shape)], approximate=approximate)
    raw = net.bytes(made)
    assert_near(results_of(net, [made], x)[0], reference(raw, x)[0], "float32 formulas near zero")
