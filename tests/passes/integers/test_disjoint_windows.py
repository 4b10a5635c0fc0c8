"""Transposed convolutions of bytes: products for each pixel where windows do not overlap, floats where they do."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.physical.integer import IntegerConv
from cgraph.passes.integers.compute_integers import compute_integers
from tests.passes.integers.test_compute_integers import KINDS, TARGETS, Net, drawn

WINDOWS = ((2, 2), (1, 3), (3, 2))
OVERLAPPING = (
    {"window": (3, 3), "stride": 2},
    {"window": (2, 2), "stride": 1},
    {"window": (2, 2), "stride": 2, "pad": 1},
    {"window": (2, 2), "stride": 2, "output_pad": 1},
    {"window": (2, 2), "stride": 2, "dilation": 2},
    {"window": (2, 2), "stride": 2, "groups": 2},
)


def spread(kind, window, bias=True, **moves):
    """A transposed convolution of 6 channels as floats, and the input."""
    net, x = Net(kind, 1), cg.Var((2, 6, 5, 7), name="x")
    f, scale = net.filters(6, 19, *window, axis=1)
    read = net.bytes(x)
    made = cg.conv_transpose2d(read, f, **moves)
    return x, made + cg.reshape(net.bias(read, scale), (-1, 1, 1)) if bias else made, net


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_windows_that_do_not_overlap_are_products(kind, window, bias):
    x, floats, net = spread(kind, window, bias, stride=window)
    scale = np.float32(0.02)
    outputs, value = [net.bytes(cg.relu(floats), scale), floats], drawn(x)
    for output, most in zip(outputs, (scale, 1e-5), strict=True):
        roots = compute_integers((output,))
        met = [node.op for node in post_order(roots)]
        assert any(isinstance(op, IntegerConv) for op in met)
        assert not any(isinstance(op, ConvTranspose) for op in met)
        (meant,), (exact,) = evaluate(roots, {x: value}), evaluate((output,), {x: value})
        wrong = np.abs(meant - exact)
        assert wrong.max() < 1.01 * most
        assert (wrong > 1e-5).mean() < 1e-3
        for target in TARGETS:
            got = cg.compile(output, [x], engine=CpuEngine(target, 2, poison=True))(value)
            np.testing.assert_array_equal(got, meant)


@pytest.mark.parametrize("moves", OVERLAPPING)
def test_other_windows_stay_floats(moves):
    x, floats, net = spread("uint8", bias=False, **moves)
    output, value = net.bytes(floats), drawn(x)
    roots = compute_integers((output,))
    assert any(isinstance(node.op, ConvTranspose) for node in post_order(roots))
    np.testing.assert_array_equal(*evaluate((*roots, output), {x: value}))
