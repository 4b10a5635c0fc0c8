"""Gelu that is written out becomes one op: in the forms of exporters, and for its own constants alone."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.passes import rewrite_graph
from cgraph.passes.fuse_gelu import fuse_gelu
from cgraph.passes.multiply_powers import multiply_powers
from tests.support.rewrites import assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close

X = cg.Var((3, 7), name="x")
ROOT, SLOPE, CUBE = 0.5**0.5, (2 / np.pi) ** 0.5, 0.044715


def constant(value, dtype="float32"):
    return cg.Const(np.asarray(value, dtype))


def by_erf(x, half=0.5, root=ROOT, one=1.0):
    return x * constant(half) * (cg.erf(x * constant(root)) + constant(one))


def by_tanh(x, half=0.5, slope=SLOPE, cube=CUBE, one=1.0):
    inner = constant(slope) * (x + constant(cube) * cg.power(x, constant(3)))
    return constant(half) * x * (constant(one) + cg.tanh(inner))


ERF = {
    "torch, TorchScript": lambda x: x * (cg.erf(x / constant(2**0.5)) + constant(1)) * constant(0.5),
    "torch, dynamo": lambda x: constant(0.5) * (x * (constant(1) + cg.erf(x * constant(ROOT)))),
    "Keras": lambda x: constant(0.5) * x * (constant(1) + cg.erf(x / constant(2**0.5))),
    "a share first": lambda x: (constant(0.5) * (constant(1) + cg.erf(x * constant(ROOT)))) * x,
    "a half as a divisor": lambda x: x * (cg.erf(constant(ROOT) * x) + constant(1)) / constant(2),
    "as many products as are looked through": lambda x: x * constant(0.5) * (cg.erf(times(x, ROOT, 6)) + constant(1)),
    "of a product": lambda x: by_erf(x * cg.exp(x)),
    "of a product with a number": lambda x: by_erf(x * constant(1.75)),
}
TANH = {
    "transformers, a power": by_tanh,
    "transformers, fast": lambda x: (
        constant(0.5) * x * (1 + cg.tanh(x * constant(SLOPE) * (1 + constant(CUBE) * x * x)))
    ),
    "Keras": lambda x: constant(0.5) * x * (1 + cg.tanh((x + x * x * x * constant(CUBE)) * constant(SLOPE))),
    "TFLite": lambda x: x * (constant(0.5) * (1 + cg.tanh(constant(SLOPE) * (x + constant(CUBE) * (x * (x * x)))))),
    "a sum of products": lambda x: (
        x * (1 + cg.tanh(x * constant(SLOPE) + constant(SLOPE * CUBE) * (cg.square(x) * x))) * constant(0.5)
    ),
}


def after_powers(outputs):
    return fuse_gelu(multiply_powers(outputs))


@pytest.mark.parametrize("name", ERF)
def test_gelu_by_erf_is_one_op(name):
    node = ERF[name](X)
    ops = ops_of(after_powers((node,)))
    assert ops["gelu"] == 1 and not ops["erf"]
    assert not next(n for n in post_order(after_powers((node,))) if n.op.name == "gelu").op.approximate
    assert_same_values(after_powers, node)
    assert_same_values(rewrite_graph, node)


@pytest.mark.parametrize("name", TANH)
def test_gelu_by_tanh_is_one_op(name):
    node = TANH[name](X)
    (fused,) = after_powers((node,))
    assert ops_of((fused,)) == {"gelu": 1} and fused.op.approximate
    assert_same_values(after_powers, node)
    assert_same_values(rewrite_graph, node)


def test_a_gated_gelu_is_one_op_and_a_product():
    gate = cg.Var(X.shape, name="gate")
    node = by_erf(X) * gate
    assert ops_of(fuse_gelu((node,))) == {"gelu": 1, "multiply": 1}
    assert_same_values(fuse_gelu, node)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 300.0, -300.0, 1.0, -1.0], "float32")


@pytest.mark.parametrize("form", [by_erf, by_tanh])
def test_nan_infinities_and_zeros_stay_as_written_out(form):
    x = cg.Var(SPECIAL.shape)
    (want,) = evaluate((form(x),), {x: SPECIAL})
    got = np.asarray(cg.compile(form(x), x)(SPECIAL))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))
    assert_close(got[number], want[number])


def times(x, number, count):
    """x times a number, by as many products."""
    for factor in [number, *[1.0] * (count - 1)]:
        x = x * constant(factor)
    return x


OFF = 1 + 1e-5
LEFT = {
    "a quotient by zero": X * constant(0.5) * (cg.erf(X / constant(0)) + constant(1)),
    "a quotient by itself": X * constant(0.5) * (cg.erf(X / X * constant(ROOT)) + constant(1)),
    "half of a quotient by zero": X / constant(0) * (cg.erf(X * constant(ROOT)) + constant(1)),
    "a half by a quotient": X * (cg.erf(X * constant(ROOT)) + constant(1)) * (constant(0.5) / X),
    "more products than are looked through": X * constant(0.5) * (cg.erf(times(X, ROOT, 7)) + constant(1)),
    "half": by_erf(X, half=0.5 * OFF),
    "root": by_erf(X, root=ROOT * OFF),
    "one": by_erf(X, one=OFF),
    "minus": X * constant(0.5) * (constant(1) - cg.erf(X * constant(ROOT))),
    "erf of another": X * constant(0.5) * (cg.erf(cg.Var(X.shape) * constant(ROOT)) + constant(1)),
    "a term": X * constant(0.5) * (cg.erf(X * constant(ROOT) + constant(1e-5)) + constant(1)),
    "half, tanh": by_tanh(X, half=0.5 * OFF),
    "slope": by_tanh(X, slope=SLOPE * OFF),
    "cube": by_tanh(X, cube=CUBE * OFF),
    "one, tanh": by_tanh(X, one=OFF),
    "a square for a cube": X * constant(0.5) * (1 + cg.tanh(constant(SLOPE) * (X + constant(CUBE) * X * X))),
    "an unknown half": X * cg.Var(()) * (cg.erf(X * constant(ROOT)) + constant(1)),
    "a half dtype's root in float32": by_erf(X, root=float(np.float16(ROOT))),
    "erf of a complex product's part": X
    * constant(0.5)
    * (cg.erf(cg.real(cg.Var(X.shape, "complex64") * constant(ROOT, "complex64"))) + constant(1)),
    "a float32's root in float64": (lambda x: x * 0.5 * (1 + cg.erf(x * float(np.float32(ROOT)))))(
        cg.Var(3, "float64")
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_other_constants_and_operands_are_left(name):
    (node,) = multiply_powers((LEFT[name],))
    assert_left(fuse_gelu, node)


def test_values_that_others_read_are_left():
    share = cg.erf(X * constant(ROOT)) + constant(1)
    assert_left(fuse_gelu, X * constant(0.5) * share, share)
    assert_left(fuse_gelu, X * constant(0.5) * share + share)


def test_float64_needs_the_constants_of_float64():
    x = cg.Var((5,), "float64")
    node = x * 0.5 * (1 + cg.erf(x / 2**0.5))
    assert ops_of(fuse_gelu((node,))) == {"gelu": 1}
    assert_same_values(fuse_gelu, node)
