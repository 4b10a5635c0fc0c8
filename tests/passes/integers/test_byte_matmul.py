"""Products of two computed values of bytes: what their ops mean, on every target, and nothing else is taken."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.ops.physical.byte_matmul import ByteMatmul
from cgraph.passes.integers.compute_integers import compute_integers
from tests.passes.integers.test_compute_integers import KINDS, TARGETS, Net, drawn, scale_of


def products(*nodes):
    return [node for node in post_order(compute_integers(nodes)) if isinstance(node.op, ByteMatmul)]


def attention(kind):
    """Scores of heads, their softmax, and what they weigh, as a quantiser writes them."""
    net = Net(kind)
    x = cg.Var((2, 21, 3, 20), name="x")
    q, k, v = (net.bytes(cg.transpose(net.bytes(x * factor), (0, 2, 1, 3))) for factor in (0.7, -0.8, 0.9))
    scores = net.bytes(q @ net.bytes(cg.transpose(k, (0, 1, 3, 2))), 0.05)
    weights = net.bytes(cg.softmax(scores), 1 / 256, np.iinfo(kind).min)
    return x, [net.bytes(weights @ v), cg.relu(scores @ v)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_attention_has_the_bits_of_the_meaning(target, kind):
    x, outputs = attention(kind)
    value = drawn(x)
    roots = compute_integers(tuple(outputs))
    assert len(products(*outputs)) == 3
    want = evaluate(roots, {x: value})
    for threads in (1, 2):
        got = cg.compile(outputs, [x], engine=CpuEngine(target, threads, poison=True))(value)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_those_of_floats_but_for_single_quanta(kind):
    net = Net(kind)
    a, b = cg.Var((3, 40, 50), name="a"), cg.Var((3, 50, 30), name="b")
    made = net.bytes(cg.maximum(net.bytes(a) @ net.bytes(b), -3.0), 0.2)
    values = {a: drawn(a), b: drawn(b)}
    assert len(products(made)) == 1
    got, want = (
        np.rint(v / scale_of(made)) for v in (cg.compile(made, [a, b])(*values.values()), evaluate([made], values)[0])
    )
    assert np.abs(got - want).max() <= 1 and (got != want).mean() <= 1e-3


def test_a_right_side_with_a_zero_point_is_taken_and_others_stay():
    net = Net()
    x = cg.Var((7, 24), name="x")
    y = cg.Const(net.rng.integers(0, 256, (24, 10)).astype("u1"))
    odd = net.bytes(x) @ cg.dequantize(y, np.float32(0.01), 77)
    assert len(products(odd)) == 1
    value = drawn(x)
    np.testing.assert_array_equal(cg.compile(odd, [x])(value), evaluate(compute_integers((odd,)), {x: value})[0])
    scales = cg.Const(net.rng.uniform(0.5, 2, 10).astype("f4"))
    by_column = net.bytes(x) @ cg.dequantize(y, scales, np.full(10, 77, "u1"))
    assert not products(by_column, net.bytes(x) @ cg.Var((24, 3), name="floats"))


@pytest.mark.parametrize("shape", [(33, 20), (1, 1, 33, 20), (3, 33, 20), (2, 3, 33, 20)])
def test_a_constant_right_side_of_any_number_of_axes_gives_the_bytes_of_the_floats(shape):
    rng = np.random.default_rng(0)
    x = cg.Var((2, 3, 40, 33), "uint8", name="x")
    y = rng.integers(-100, 100, shape).astype("i1")
    product = cg.dequantize(x, np.float32(0.1), np.uint8(9)) @ cg.dequantize(y, np.float32(0.05))
    value = rng.integers(0, 256, x.shape).astype("u1")
    got = cg.compile(cg.quantize(product, np.float32(4), np.uint8(100)), [x])(value)
    exact = (value.astype("i8") - 9) @ y.astype("i8") * (0.1 * 0.05 / 4) + 100
    assert np.abs(got - np.clip(exact, 0, 255)).max() <= 0.5 + 1e-3
