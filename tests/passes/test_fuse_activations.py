"""Functions that convolutions apply before they store: the bits of the op that they replace, on every target."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.roots import Roots
from cgraph.ir.traverse import post_order
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.target import host_target, target_named
from cgraph.lowering.lower import lower_images
from cgraph.lowering.options import LoweringOptions
from cgraph.ops.family import Pointwise
from cgraph.ops.leaf import ConstOp
from cgraph.ops.physical.conv import BlockedConv
from cgraph.passes import rewrite_graph
from cgraph.passes.fuse_activations import fuse_activations
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(3)


def random(*shape):
    return RNG.normal(size=shape).astype("f4")


def hard_swish(x):
    return x * cg.minimum(cg.maximum(x + 3, 0), 6) / 6


def hard_swish_by_sigmoid(x):
    return x * cg.clip(x / 6 + 0.5, 0, 1)


SHORT = [
    hard_swish,
    hard_swish_by_sigmoid,
    lambda x: x * x - x,
    lambda x: cg.where(x > 1, x, x * 0.25),
    lambda x: 0 - x,
]
LAYERS = {  # channels in and out, window, stride, groups
    "1x1": (16, 40, (1, 1), 1, 1),
    "3x3 by Winograd": (32, 64, (3, 3), 1, 1),
    "3x3 with stride": (16, 24, (3, 3), 2, 1),
    "depthwise": (24, 24, (3, 3), 1, 24),
    "depthwise, rows of 9": (24, 24, (9, 9), 1, 24),
    "depthwise, any": (24, 24, (3, 8), 1, 24),
    "first layer": (3, 24, (3, 3), 2, 1),
}


def layer(name, function, residual=False):
    """A layer with a bias and a function, read by a layer that needs a halo."""
    c, k, window, stride, groups = LAYERS[name]
    x = cg.Var((2, c, 14, 15))
    y = cg.conv2d(x, random(k, c // groups, *window), stride, (window[0] // 2, window[1] // 2), 1, groups)
    y = y + random(k, 1, 1)
    y = y + cg.Var(y.shape) if residual else y
    return cg.conv2d(function(y), random(16, k, 3, 3), 1, 1)


def lowered(output, target):
    return lower_images(rewrite_graph((output,)), target, LoweringOptions())


def of_kind(roots, kind):
    return [node for node in post_order(roots) if isinstance(node.op, kind)]


def values_of(conv):
    """Values for the operands of a convolution, in the form of each."""
    xs = [x.op.array if isinstance(x.op, ConstOp) else random(*x.shape) for x in conv.operands]
    for i, form in ((0, conv.op.source), (3, conv.op.residual)):
        if i < len(xs) and form is not None:
            xs[i] = form.to_blocked(form.plain(xs[i]))
    return xs


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", SHORT)
@pytest.mark.parametrize("name", LAYERS)
def test_a_function_inside_keeps_every_bit(name, function, target):
    target = target_named(target)
    roots = lowered(layer(name, function), target)
    before, after = of_kind(roots, BlockedConv)[0], of_kind(fuse_activations(roots, target), BlockedConv)[0]
    (node,) = of_kind(roots, Pointwise)
    assert before.op.function is None and after.op.function is not None
    assert not of_kind(fuse_activations(roots, target), Pointwise)
    xs = values_of(before)
    sums = kernel_result(before, xs, "all", target=target)[0]
    numbers = [sums if x is before else np.broadcast_to(x.operands[0].op.array, x.shape) for x in node.operands]
    want = kernel_result(node, numbers, "all", target=target)[0]
    for order in ("all", "single", "reverse"):
        np.testing.assert_array_equal(kernel_result(after, xs, order, target=target)[0], want)
    sums = before.op.meaning(*xs)
    operands = [sums if x is before else number for x, number in zip(node.operands, numbers)]
    np.testing.assert_array_equal(after.op.meaning(*xs), node.op.meaning(*operands))


@pytest.mark.parametrize("name", ["1x1", "3x3 by Winograd"])
def test_a_residual_is_added_before_the_function(name):
    roots = lowered(layer(name, hard_swish, residual=True), host_target())
    (conv, _) = of_kind(fuse_activations(roots, host_target()), BlockedConv)
    assert conv.op.residual is not None and conv.op.function is not None
    xs = values_of(conv)
    (got,) = kernel_result(conv, xs, "all", target=host_target())
    assert_near(got, conv.op.meaning(*xs), "float32 networks")


@pytest.mark.parametrize("function", [lambda x: x * cg.sigmoid(x), cg.gelu, cg.tanh, lambda x: cg.tanh(x) * cg.relu(x)])
def test_long_functions_stay_ops(function):
    roots = lowered(layer("1x1", function), host_target())
    assert fuse_activations(roots, host_target()) == roots


def test_a_result_that_others_read_stays():
    x = cg.Var((1, 16, 14, 14))
    y = cg.conv2d(x, random(40, 16, 1, 1))
    for outputs in ((hard_swish(y), y), (cg.conv2d(hard_swish(y), random(16, 40, 3, 3), 1, 1), cg.sum(y))):
        roots = lower_images(rewrite_graph(outputs), host_target(), LoweringOptions())
        assert all(node.op.function is None for node in of_kind(fuse_activations(roots, host_target()), BlockedConv))


def products(count, negative):
    def function(x):
        x = x * x
        for i in range(count):
            x = x * (i + 2)
        return -x if negative else x

    return function


@pytest.mark.parametrize(
    "count, negative, is_taken", [(7, False, True), (6, True, True), (7, True, False), (8, False, False)]
)
def test_at_most_16_instructions_are_taken(count, negative, is_taken):
    """One that reads the sum, its square, two for each factor, one for the sign."""
    roots = lowered(layer("1x1", products(count, negative)), host_target())
    assert (of_kind(fuse_activations(roots, host_target()), Pointwise) == []) is is_taken


def test_a_comparison_whose_result_is_bool_stays():
    x = cg.Var((1, 16, 14, 14))
    roots = lowered(cg.conv2d(x, random(40, 16, 1, 1)) > 1, host_target())
    assert of_kind(roots, BlockedConv) and fuse_activations(roots, host_target()) == roots


def test_a_second_function_stays_an_op():
    roots = lowered(layer("1x1", hard_swish), host_target())
    before, (node,) = of_kind(roots, BlockedConv)[0], of_kind(roots, Pointwise)
    (after, *_) = of_kind(fuse_activations(roots, host_target()), BlockedConv)
    again = Roots([apply(node.op, *[after if x is before else x for x in node.operands])])
    assert fuse_activations(again, host_target()) == again


def test_an_op_of_two_images_stays():
    x = cg.Var((1, 16, 14, 14))
    y, z = (cg.conv2d(x, random(40, 16, 1, 1)) for _ in range(2))
    roots = lowered(cg.conv2d(y * z, random(16, 40, 3, 3), 1, 1), host_target())
    assert fuse_activations(roots, host_target()) == roots


def test_bounds_come_before_no_function():
    roots = lowered(layer("1x1", lambda x: hard_swish(cg.relu(x))), host_target())
    assert fuse_activations(roots, host_target()) == roots


def test_a_gpu_keeps_its_ops():
    target = gpu_target(9, 0)
    roots = lowered(layer("1x1", hard_swish), target)
    assert fuse_activations(roots, target) is roots


def test_the_whole_network_keeps_its_values():
    output = layer("1x1", hard_swish)
    (x,) = (node for node in post_order((output,)) if type(node.op).__name__ == "VarOp")
    value = random(*x.shape)
    got = cg.compile(output, [x])(value)
    assert_near(got, cg.compile(output, [x], engine="reference")(value), "float32 networks")
