"""The layers of a graph that may round: their names, their work, and which can."""

import numpy as np

import cgraph as cg
from cgraph.kernels.target import host_target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.ops.physical.matmul import PackedMatmul
from cgraph.ops.physical.pairs import PairedMatmul
from tests.support.emulated import with_pairs

RNG = np.random.default_rng(0)
A, B = (RNG.standard_normal((16, 16)).astype("f4") for _ in range(2))
X = cg.Var((4, 16), name="x")


def lowered(y, layers, target=None):
    """The ops of a graph lowered with these layers."""
    options = LoweringOptions(pairs=True, layers=layers)
    (node,) = lower_graph((y,), target or with_pairs(host_target()), options)
    ops = []
    while node.operands:
        ops.insert(0, type(node.op))
        node = node.operands[0]
    return ops


def test_only_the_named_layers_round():
    y = X @ cg.Const(A, name="a") @ cg.Const(B, name="b")
    assert lowered(y, RoundedLayers(frozenset(["b"]))) == [PackedMatmul, PairedMatmul]
    assert lowered(y, RoundedLayers(frozenset())) == [PackedMatmul] * 2
    assert lowered(y, RoundedLayers()) == lowered(y, None) == [PairedMatmul] * 2


def test_layers_are_listed_in_running_order_with_their_work():
    layers = RoundedLayers(frozenset())
    lowered(X @ cg.Const(A, name="a") @ B + X @ X.T[:, :1], layers)
    assert layers.multiply_adds == {"a": 4 * 16 * 16, "matmul": 4 * 16, "matmul.2": 4 * 16 * 16}
    assert layers.able == {"a", "matmul.2"} and layers.reason == ""  # four rows gain less than rounding costs


def test_layers_that_read_the_same_weights_are_one():
    layers, a = RoundedLayers(), cg.Const(A, name="a")
    assert lowered(X @ a @ a, layers) == [PairedMatmul] * 2
    assert layers.multiply_adds == {"a": 2 * 4 * 16 * 16}


def test_a_graph_that_is_lowered_again_has_the_same_layers_with_the_same_work():
    layers, y = RoundedLayers(frozenset(["a"])), X @ cg.Const(A, name="a") @ B + X @ X.T[:, :1]
    ops = lowered(y, layers)
    names, able, reason = dict(layers.multiply_adds), set(layers.able), layers.reason
    assert lowered(y, layers) == ops
    assert list(layers.multiply_adds.items()) == list(names.items()) and (layers.able, layers.reason) == (able, reason)
    lowered(X @ B, layers)
    assert list(layers.multiply_adds.values()) == [4 * 16 * 16]
    assert layers.able == layers.multiply_adds.keys()


def test_layers_that_cannot_round_are_listed_but_not_able():
    x = cg.Var((1, 3, 8, 8), name="x")
    first, deep = (cg.Const(RNG.standard_normal(s).astype("f4"), name=n) for n, s in
                   (("first", (16, 3, 3, 3)), ("deep", (16, 1, 3, 3))))  # fmt: skip
    layers = RoundedLayers()
    lowered(cg.conv2d(cg.relu(cg.conv2d(x, first)), deep, groups=16), layers)
    assert list(layers.multiply_adds) == ["first", "deep"] and not layers.able
    line, volume = RoundedLayers(), RoundedLayers()
    lowered(cg.conv1d(cg.Var((1, 8, 12)), np.ones((8, 1, 3), "f4"), groups=8), line)
    lowered(cg.conv3d(cg.Var((1, 16, 4, 8, 8)), np.ones((16, 16, 3, 3, 3), "f4")), volume)
    assert line.multiply_adds == {"conv1d": 8 * 10 * 3} and not line.able
    assert volume.multiply_adds == {"frames_conv": 16 * 2 * 6 * 6 * 16 * 27} and not volume.able
    wide = RoundedLayers()
    lowered(X.astype("float64") @ A.astype("f8"), wide)
    assert not wide.multiply_adds


def test_a_processor_that_rounds_nothing_has_a_reason():
    layers = RoundedLayers()
    target = host_target() if not host_target().bf16 else None
    if target is not None:
        lowered(X @ A, layers, target)
        assert layers.reason and not layers.able and list(layers.multiply_adds) == ["matmul"]
