"""Small networks of bytes, one for each thing that a lowering of bytes may do wrong: the bits of the logical graph."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.kernels.conv8.calls import Join, Result
from cgraph.kernels.isa.arm import DOT, I8MM, NEON
from cgraph.kernels.isa.riscv import RISCV64_BYTES
from cgraph.kernels.isa.thumb import CORTEX_M7_BYTES
from cgraph.kernels.isa.thumb_mve import CORTEX_M55
from cgraph.kernels.isa.wasm import WASM
from cgraph.kernels.pool8.rounding_margin import Mean
from cgraph.kernels.target import target_named
from cgraph.lowering.lower import lower_images
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.ops.conv import Conv2d
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.form import NO_HALO
from cgraph.ops.physical.integer import BlockedIntegerConv, BlockedPixelSum, IntegerConv, IntegerMatmul, PixelSum
from cgraph.ops.physical.lanes import ClearHalo, ToBlocked, ToPlain
from cgraph.ops.physical.table import ByteTable
from cgraph.record import Record, replace

RNG = np.random.default_rng(0)
IMAGE = cg.Var((2, 8, 9, 10), "uint8", "image")
FEW = cg.Var((2, 4, 9, 10), "uint8", "few")
WIDE = cg.Var((2, 17, 9, 10), "uint8", "wide")
SCALAR = cg.Var((), "uint8", "scalar")


def filters(k, c, *window):
    return cg.Const(RNG.integers(-128, 128, (k, c, *window), "int8"))


def conv(x, f, zero=0, residual=None, **moves):
    """A convolution of bytes, scaled so that few of its results are at the ends."""
    conv2d = {"stride": (1, 1), "pad": (1, 1, 1, 1), "dilation": (1, 1), "groups": 1} | moves
    k = f.shape[0]
    bias, scale = RNG.integers(-900, 900, k, "int32"), RNG.uniform(0.5, 1, k).astype("float32") / 900
    join = None if residual is None else Join(1.0, -100, 120, 1.5, 2.0, 7)
    operands = [x, f, cg.Const(bias), cg.Const(scale)] + ([] if residual is None else [residual])
    return apply(IntegerConv(Conv2d(**conv2d), zero, Result(zero=120, join=join)), *operands)


FIRST = conv(IMAGE, filters(17, 8, 3, 3), 5)
WHOLE = conv(IMAGE, filters(16, 8, 3, 3), 5)
SAME = filters(6, 4, 3, 3)
AROUND = BytePool((3, 2), (1, 2), (1, 0, 1, 1), (1, 1), False, False, Mean(0.5, 9, 0.3, 20))


def following(x, zero=0):
    """A convolution that reads a halo of `x`."""
    return conv(x, filters(5, x.shape[1], 3, 3), zero)


def table(x, at_0):
    values = RNG.integers(1, 256, 256, "uint8")
    values[[0, 9]] = at_0, 200
    return apply(ByteTable(), x, cg.Const(values))


class Network(Record):
    """Outputs, how many conversions lowering inserts, and how many halos are written anew."""

    outputs: list
    moved: int
    cleared: int = 0


NETWORKS = {
    "one layer": Network([FIRST], 2),
    "other strides": Network([conv(IMAGE, filters(17, 8, 3, 3), 5, stride=(1, 2))], 2),
    "other dilations": Network([conv(IMAGE, filters(17, 8, 3, 3), 5, dilation=(2, 1))], 2),
    "other pads": Network([conv(IMAGE, filters(17, 8, 3, 2), 5, pad=(0, 1, 2, 3))], 2),
    "few channels": Network([conv(FEW, filters(17, 4, 3, 3), 5)], 2),
    "few channels in groups": Network([conv(FEW, filters(16, 2, 3, 3), 5, groups=2)], 2),
    "groups": Network([conv(WHOLE, filters(12, 8, 3, 3), 5, groups=2)], 2),
    "depthwise": Network([conv(WHOLE, filters(16, 1, 3, 3), 5, groups=16)], 2),
    "two layers": Network([following(FIRST, 7)], 2),
    "readers with other zero points": Network([following(FIRST, 3), following(FIRST, 250)], 5),
    "the same filters of one group and of two": Network([conv(FEW, SAME, 1), conv(IMAGE, SAME, 1, groups=2)], 4),
    "a residual": Network([following(conv(IMAGE, filters(17, 8, 3, 3), 5, residual=FIRST), 9)], 2),
    "a residual that is an image": Network([following(conv(IMAGE, filters(8, 8, 3, 3), 1, residual=IMAGE), 9)], 3),
    "sums over pixels": Network([FIRST, apply(PixelSum(), FIRST)], 2),
    "sums over pixels between readers": Network([following(FIRST, 9), apply(PixelSum(), FIRST)], 2),
    "a table": Network([following(table(FIRST, 77), 3)], 2, 1),
    "a table whose halo stays": Network([following(table(WHOLE, 0))], 2),
    "a table without a halo": Network([table(FIRST, 77)], 2),
    "a table of another halo": Network([following(table(FIRST, 0), 9), following(FIRST, 9)], 3, 1),
    "a table of the halo's number": Network([following(table(FIRST, 0), 200), following(FIRST, 9)], 3),
    "a largest of two": Network([following(cg.maximum(FIRST, cg.bitwise_or(FIRST, 1)), 0)], 2, 1),
    "a halo that a number changes": Network([following(cg.maximum(FIRST, np.uint8(30)), 0)], 2, 1),
    "a halo that a number makes": Network([following(cg.maximum(FIRST, np.uint8(30)), 30)], 2),
    "a halo of another reader": Network([following(cg.maximum(FIRST, np.uint8(3)), 3), following(FIRST, 7)], 3, 1),
    "a halo that an image in no blocks changes": Network([following(FIRST ^ WIDE, 9), following(FIRST, 9)], 4, 1),
    "a halo that it keeps": Network([following(FIRST & WIDE, 9), following(FIRST, 9)], 4),
    "a computed number": Network([following(cg.maximum(FIRST, SCALAR), 0)], 2, 1),
    "a number for each channel": Network([following(cg.maximum(FIRST, RNG.integers(0, 99, (17, 1, 1), "uint8")))], 4),
    "a mean": Network([following(apply(AROUND, FIRST), 9)], 2),
    "a mean of plain images": Network([apply(AROUND, IMAGE)], 2),
    "joined": Network([following(cg.concat([WHOLE, FIRST], 1), 6)], 2),
}  # fmt: skip


def physical(outputs, target):
    return lower_images(tuple(outputs), target, LoweringOptions())


@pytest.mark.parametrize("name", NETWORKS)
def test_lowered_networks_of_bytes_have_the_bits_of_the_logical_ones(name):
    network = NETWORKS[name]
    values = {x: RNG.integers(0, 256, x.shape, "uint8") for x in (IMAGE, FEW, WIDE, SCALAR)}
    want = evaluate(network.outputs, values)
    for target in ("host", "portable"):
        lowered = physical(network.outputs, target_named(target))
        function = cg.compile(network.outputs, list(values), engine=CpuEngine(target, poison=True))
        for b, got in zip(want, function(*values.values()), strict=True):
            np.testing.assert_array_equal(got, b)
        for a, b in zip(evaluate(lowered, values), want, strict=True):
            np.testing.assert_array_equal(a, b)
        nodes = post_order(lowered)
        assert sum(isinstance(n.op, ToBlocked | ToPlain) for n in nodes) == network.moved
        assert sum(isinstance(n.op, ClearHalo) for n in nodes) == network.cleared
        assert not any(isinstance(n.op, IntegerConv | PixelSum) for n in nodes)


def test_a_plain_residual_gets_no_halo_and_a_blocked_one_that_of_the_result():
    host = target_named("host")
    for residual, halo in ((cg.Var(FIRST.shape, "uint8", "r"), NO_HALO), (FIRST, (1, 1, 1, 1))):
        layer = conv(IMAGE, filters(17, 8, 3, 3), 1, residual=residual)
        ops = [n.op for n in post_order(physical([following(layer)], host)) if isinstance(n.op, BlockedIntegerConv)]
        (op,) = (op for op in ops if op.residual is not None)
        assert op.residual.halo == halo and op.form.halo == (1, 1, 1, 1)


def test_a_sum_over_pixels_alone_reads_plain_images():
    (node,) = physical([apply(PixelSum(), IMAGE)], target_named("host"))
    assert isinstance(node.op, PixelSum)
    (node,) = physical([apply(PixelSum(), FIRST)], target_named("host"))
    assert any(isinstance(n.op, BlockedPixelSum) for n in post_order([node]))


def fixed_layer(f, dead, shift=-8):
    """A layer of filters, one channel of which is the same for all images."""
    k = f.shape[0]
    bias, scale = np.zeros(k, "int32"), np.stack([np.full(k, 3 << 29), np.full(k, shift)]).astype("int32")
    bias[dead] = 1 << 27
    result, conv2d = Result(zero=9, fixed="twice"), Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 1)
    return apply(IntegerConv(conv2d, 5, result), cg.Var((1, 6, 3, 4), "uint8", "x"), f, cg.Const(bias), cg.Const(scale))


@pytest.mark.parametrize("bias, shift, shared", [(3, -8, True), (7, -8, False), (3, -9, True)])
def test_layers_that_unpack_pixels_once_share_filters_only_if_the_same_channels_need_none(bias, shift, shared):
    """Channels that are the same for all images have other filters there."""
    f = cg.Const(RNG.integers(-127, 128, (9, 6, 1, 1), "int8"))
    layers = [fixed_layer(f, 3), fixed_layer(f, bias, shift)]
    lowered = physical(layers, replace(target_named("portable"), dot="halves"))
    first, second = (n for n in post_order(lowered) if isinstance(n.op, BlockedIntegerConv))
    assert first.op.shape.is_unpacked and second.op.shape.is_unpacked
    assert (first.operands[1] is second.operands[1]) is shared
    values = {layer.operands[0]: RNG.integers(0, 256, (1, 6, 3, 4), "uint8") for layer in layers}
    for got, want in zip(evaluate(lowered, values), evaluate(layers, values), strict=True):
        np.testing.assert_array_equal(got, want)


OTHER_TARGETS = (NEON, DOT, I8MM, CORTEX_M7_BYTES, CORTEX_M55, RISCV64_BYTES, WASM)


@pytest.mark.parametrize("target", OTHER_TARGETS, ids=lambda x: x.name)
def test_lowered_networks_keep_their_meaning_on_targets_that_the_host_cannot_run(target):
    """One of them subtracts 128 from all bytes first, another packs halves."""
    rng = np.random.default_rng(1)
    values = {x: rng.integers(0, 256, x.shape, "uint8") for x in (IMAGE, FEW, WIDE, SCALAR)}
    for name, network in NETWORKS.items():
        lowered = physical(network.outputs, target)
        for got, want in zip(evaluate(lowered, values), evaluate(network.outputs, values), strict=True):
            np.testing.assert_array_equal(got, want, name)


@pytest.mark.parametrize("target", OTHER_TARGETS, ids=lambda x: x.name)
@pytest.mark.parametrize("zero", [0, 7, 255])
def test_lowered_products_keep_their_meaning_on_targets_that_the_host_cannot_run(target, zero):
    rng = np.random.default_rng(1)
    x, (k, n) = cg.Var((3, 21), "uint8", "x"), (21, 11)
    numbers = rng.integers(-128, 128, (k, n), "int8"), rng.integers(-9000, 9000, n, "int32")
    factors = np.stack([rng.integers(1 << 30, (1 << 31) - 1, n), rng.integers(-14, -8, n)]).astype("int32")
    outputs = [
        apply(IntegerMatmul(zero, result), x, *map(cg.Const, (*numbers, scale)))
        for result, scale in (
            (Result("u1", 120, 20, 240, fixed="once"), factors),
            (Result("u1", 120, fixed="twice"), factors),
            (Result("i4"), np.ones(n, "float32")),
            (Result("u1", 100), rng.uniform(0.5, 1, n).astype("float32") / 2000),
        )
    ]
    lowered = lower_graph(tuple(outputs), target, LoweringOptions())
    assert not any(isinstance(node.op, IntegerMatmul) for node in post_order(lowered))
    values = {x: rng.integers(0, 256, x.shape, "uint8")}
    for got, want in zip(evaluate(list(lowered), values), evaluate(outputs, values), strict=True):
        np.testing.assert_array_equal(got, want)
