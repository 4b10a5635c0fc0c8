"""Convolutions of sequences become those of images of one row, with the same values."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.passes.fold_sequences import fold_sequences
from tests.support.kernels import TARGETS
from tests.support.rewrites import assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)


def sequence(n=2, c=6, w=11, dtype="float32"):
    return cg.Var((n, c, w), dtype, name="x")


def filters(*shape, dtype="float32"):
    return cg.Const(RNG.normal(size=shape).astype(dtype))


def assert_folded(node, name):
    counts = ops_of(fold_sequences((node,)))
    assert counts[name] == 1 and not counts["conv1d"]
    assert_same_values(fold_sequences, node)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("window", "stride", "pad", "dilation", "groups"),
    [(3, 1, 0, 1, 1), (3, 2, (1, 0), 1, 1), (5, 3, (0, 4), 2, 1), (2, 1, 1, 3, 3), (11, 1, 0, 1, 2)],
)
def test_convolutions_keep_their_values(dtype, window, stride, pad, dilation, groups):
    x, f = sequence(dtype=dtype), filters(6, 6 // groups, window, dtype=dtype)
    assert_folded(cg.conv1d(x, f, stride, pad, dilation, groups), "conv2d")


@pytest.mark.parametrize(
    ("window", "stride", "pad", "dilation", "groups", "more"),
    [(4, 2, 1, 1, 1, 0), (3, 3, 0, 1, 1, 2), (2, 5, (0, 1), 1, 1, 0), (3, 2, (1, 2), 2, 3, 1), (3, 1, 1, 1, 1, 0)],
)
def test_transposed_convolutions_keep_their_values(window, stride, pad, dilation, groups, more):
    x, f = sequence(), filters(6, 4, window)
    node = cg.conv_transpose1d(x, f, stride, pad, dilation, groups, more)
    assert_folded(node, "conv_transpose")
    assert fold_sequences((node,))[0].operands[0].ndim == 4


@pytest.mark.parametrize("target", TARGETS)
def test_compiled_sequences_have_the_values_of_the_reference(target):
    x = sequence(c=5, w=40)
    y = cg.tanh(cg.conv1d(x, filters(8, 5, 7), 1, 3) + cg.Const(RNG.normal(size=(8, 1)).astype("f4")))
    y = cg.conv_transpose1d(y, filters(8, 9, 8), 4, 2)
    node = cg.conv1d(cg.where(y > 0, y, 0.1 * y), filters(3, 9, 3), 2, 1)
    value = RNG.normal(size=x.shape).astype("f4")
    engine = CpuEngine(target=target, poison=True)
    got, want = cg.compile(node, [x], engine=engine)(value), cg.compile(node, [x], engine="reference")(value)
    assert_close(got, want, 20)


def test_filters_keep_their_name():
    """By which a choice of precision names the layer."""
    f = cg.Const(np.ones((6, 6, 3), "f4"), name="stem")
    for node in (cg.conv1d(sequence(), f), cg.conv_transpose1d(sequence(), f)):
        (folded,) = fold_sequences((node,))
        assert folded.operands[0].operands[1].op.label == "stem"


def test_what_gains_nothing_is_left():
    x, f = sequence(), cg.Var((4, 6, 3), name="f")
    assert_left(fold_sequences, cg.conv1d(x, f))
    assert_left(fold_sequences, cg.conv1d(x, filters(4, 6, 1), 2))
    assert_left(fold_sequences, cg.conv1d(x, filters(6, 1, 3), groups=6))
    assert_left(fold_sequences, cg.conv1d(sequence(c=2), filters(3, 2, 3)))
    assert_left(fold_sequences, cg.conv1d(sequence(n=0), filters(4, 6, 3)))
    assert_left(fold_sequences, cg.conv1d(cg.astype(cg.Var((2, 6, 9), "int32"), "int32"), filters(4, 6, 3, dtype="i4")))
    assert_left(fold_sequences, cg.conv2d(cg.Var((2, 6, 5, 5)), filters(4, 6, 3, 3)), cg.relu(x))
    assert_left(fold_sequences, cg.conv_transpose2d(cg.Var((2, 6, 5, 5)), filters(6, 4, 3, 3)))
