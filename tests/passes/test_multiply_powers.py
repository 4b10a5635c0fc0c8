"""A power by a constant is a product that means the same, whatever the base is."""

import numpy as np
import onnx
import pytest

import cgraph as cg
from cgraph.formats.onnx import load
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.ops.loop import Loop
from cgraph.ops.power import Power
from cgraph.passes import rewrite_graph
from cgraph.passes.multiply_powers import multiply_powers
from tests.support.rewrites import assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close, assert_near

FLOATS = [0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 1.5]
EXPONENTS = [*FLOATS, *(-n for n in FLOATS)]
PLAIN = np.concatenate([np.linspace(-3, 3, 31), [0.01, 30.0]])
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]
WHOLE = np.arange(-20, 21)


def raised(x: cg.Node, exponent: float) -> cg.Node:
    """The power as readers of files build it: by a constant, not by a Python number."""
    return cg.power(x, cg.Const(np.asarray(exponent, x.dtype)))


def numpys_power(a: np.ndarray, exponent: float) -> np.ndarray:
    """The power by an array: for one number 0.5 NumPy takes the root, which of -inf is NaN."""
    with np.errstate(all="ignore"):
        return np.power(a, np.full(a.shape, exponent, a.dtype))


def has_power(*outputs: cg.Node) -> bool:
    """Whether a power is left after all passes, in a fused op or by itself."""
    return any("Power(" in repr(n.op) for n in post_order(rewrite_graph(outputs)))


def extremes(dtype: str) -> np.ndarray:
    """Numbers whose powers overflow, or nearly vanish."""
    info = np.finfo(dtype)
    sizes = [10.0 ** (sign * k) for sign in (1, -1) for k in range(1, int(np.log10(float(info.max))))]
    return np.array([*SPECIAL, *sizes, *(-s for s in sizes), info.max, info.tiny], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_products_are_the_power(exponent, dtype):
    x = cg.Var((PLAIN.size,), dtype)
    node = raised(x, exponent)
    assert ops_of((node,))["power"] == 1 and not ops_of(multiply_powers((node,)))["power"]
    a = PLAIN.astype(dtype)
    assert_close(np.asarray(cg.compile(node, x)(a)), numpys_power(a, exponent))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_overflow_and_what_is_no_number_stay_as_in_numpy(exponent, dtype):
    a = extremes(dtype)
    x = cg.Var(a.shape, dtype)
    got = np.asarray(cg.compile(raised(x, exponent), x)(a))
    want = numpys_power(a, exponent)
    exact = ~np.isfinite(want) | (want == 0)
    np.testing.assert_array_equal(got[exact], want[exact])
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))
    normal = ~exact & (np.abs(want) >= np.finfo(dtype).tiny)
    assert_near(got[normal] / want[normal], np.ones(normal.sum()), f"{dtype} formulas")
    assert (np.abs(got[~exact & ~normal]) < 2 * np.finfo(dtype).tiny).all()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 64, 99])
def test_products_of_integers_wrap_as_the_power(exponent, dtype):
    a = WHOLE.astype(dtype)
    x = cg.Var(a.shape, dtype)
    node = raised(x, exponent)
    assert not ops_of(multiply_powers((node,)))["integer_power"]
    np.testing.assert_array_equal(cg.compile(node, x)(a), np.power(a, np.asarray(exponent, dtype)))


@pytest.mark.parametrize("exponent", [2.0, 3.0, -1.0, 0.5])
def test_half_precision_is_multiplied_in_float32(exponent):
    x = cg.Var((PLAIN.size,), "float16")
    node = raised(x, exponent)
    assert has_power(node ** cg.Var(())) and not has_power(node)
    a = PLAIN.astype("float16")
    assert_close(np.asarray(cg.compile(node, x)(a)), numpys_power(a.astype("float32"), exponent))


def test_integers_to_a_negative_power_are_0():
    x = cg.Var((41,), "int32")
    np.testing.assert_array_equal(cg.compile(raised(x, -1), x)(WHOLE.astype("int32")), np.zeros(41, "int32"))


X = cg.Var((3, 4), name="x")
LEFT = {
    "five": raised(X, 5.0),
    "nearly two": raised(X, 2.0 + 2.0**-20),
    "nearly a half": raised(X, 0.5 + 2.0**-20),
    "two and a half": raised(X, 2.5),
    "no number": raised(X, np.nan),
    "without end": raised(X, np.inf),
    "one exponent for each column": cg.power(X, np.array([2, 2, 2, 3], "f4")),
    "a Var": cg.power(X, cg.Var(())),
    "a constant to x": cg.power(cg.Const(np.float32(2)), X),
    "many factors of integers": raised(cg.Var((3,), "int64"), 100),
    "complex": apply(Power(), cg.Var((3,), "complex64"), cg.Const(np.full(3, 2, "complex64"))),
}


@pytest.mark.parametrize("name", LEFT)
def test_other_powers_are_left(name):
    assert_left(multiply_powers, LEFT[name])


@pytest.mark.parametrize("exponent", [3.0, -1.0, 1.5, 2.0])
def test_the_gradient_is_that_of_the_power_and_a_product_too(exponent):
    slope = cg.gradient(cg.sum(raised(cg.abs(X) + 1.0, exponent)), X)
    assert_same_values(multiply_powers, slope)
    assert not has_power(slope)
    a = np.random.default_rng(0).normal(size=X.shape).astype("float32")
    base = np.abs(a.astype("float64")) + 1
    want = np.sign(a) * exponent * base ** (exponent - 1)
    assert_near(np.asarray(cg.compile(slope, X)(a)), want, "float32 formulas")


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_power_in_an_onnx_file_is_a_square(dtype, shape):
    two = onnx.numpy_helper.from_array(np.full(shape, 2, dtype), "two")
    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [3, 4]) for n in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Pow", ["x", "two"], ["y"])], "g", [x], [y], [two])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    outputs = rewrite_graph(tuple(load(model.SerializeToString()).outputs))
    assert ops_of(outputs) == {"square": 1}


def test_powers_in_the_body_of_a_loop_are_products():
    start = cg.Var((3,))
    last = cg.fori(0, 9, lambda _, x: raised(x, 3.0) * 0.5, start)
    a = np.array([0.5, -1.0, 1.25], "float32")
    want = a.copy()
    for _ in range(9):
        want = want**3 * np.float32(0.5)
    assert_near(np.asarray(cg.compile(last, start)(a)), want, "float32 formulas")
    (loop,) = [n.op for n in post_order(rewrite_graph((last,))) if isinstance(n.op, Loop)]
    assert not any("Power(" in repr(n.op) for n in post_order(loop.body.results))
