"""Constants of products of bytes: the sum from which a tile starts takes the zero point's part away."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.kernels.conv8.calls import ByteShape, Result
from cgraph.kernels.target import target_named
from cgraph.lowering.pack_int8 import pack_product, starts
from cgraph.ops.physical.integer import IntegerMatmul, PackedIntegerMatmul, requantise, unpack_bytes
from cgraph.ops.physical.tiled import TiledIntegerMatmul
from cgraph.record import replace
from tests.support.emulated import emulate_tiles

RNG = np.random.default_rng(0)
TARGET = target_named("portable")
DEPTH, COLUMNS = 5, 7


def test_a_start_is_the_bias_without_the_zero_points_part_and_0_behind_the_last_channel():
    filters = RNG.integers(-128, 128, (COLUMNS, DEPTH, 1, 1), "int8")
    bias, scale = RNG.integers(-900, 900, COLUMNS, "int32"), RNG.random(COLUMNS, "float32")
    shape = ByteShape(DEPTH, 1, 3, COLUMNS, TARGET)
    result, start, scales = starts(shape, filters, bias, 131, scale, Result())
    assert result == Result()
    assert start.dtype == np.int32 and start.shape == (shape.panels * shape.panel_channels,) == scales.shape
    assert start[:COLUMNS].tolist() == [
        int(bias[j]) - 131 * sum(int(n) for n in filters[j].reshape(-1)) for j in range(COLUMNS)
    ]
    assert not start[COLUMNS:].any() and not scales[COLUMNS:].any()
    assert scales[:COLUMNS].tolist() == scale.tolist()


@pytest.mark.parametrize("rows", [(1,), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("zero", [0, 7])
def test_a_packed_product_is_the_product(rows, zero):
    y = RNG.integers(-128, 128, (DEPTH, COLUMNS), "int8")
    constants = [y, RNG.integers(-900, 900, COLUMNS, "int32"), RNG.random(COLUMNS, "float32") / 64]
    x = cg.Var((*rows, DEPTH), "uint8", "x")
    node = apply(IntegerMatmul(zero, Result(zero=3)), x, *map(cg.Const, constants))
    packed = pack_product(node, node.operands, TARGET)
    assert isinstance(packed.op, PackedIntegerMatmul) and packed.spec == node.spec and packed.operands[0] is x
    images = RNG.integers(0, 256, x.shape, "uint8")
    panels, start, scale = (c.op.array for c in packed.operands[1:])
    assert packed.op.meaning(images, panels, start, scale).tolist() == node.op.meaning(images, *constants).tolist()
    assert unpack_bytes(packed.op.shape, panels).reshape(COLUMNS, DEPTH).T.tolist() == y.tolist()


HALVES = replace(TARGET, dot="halves")


def fixed_layer(bias, factor, shift):
    """A layer of two inputs with a fixed result: what a target without vectors gets as result, starts and scales."""
    filters = np.zeros((len(bias), 2, 1, 1), "int8")
    filters[:, 0], filters[0, :, 0, 0] = 1, (127, -128)
    shape = ByteShape(2, 1, 3, len(bias), HALVES)
    scale = np.array([factor, shift], "int32")
    return filters, scale, starts(shape, filters, np.array(bias, "int32"), 5, scale, Result(zero=9, fixed="twice"))


@pytest.mark.parametrize(
    "bias, shift, bounded",
    [(100, -2, True), (100, -20, True), (100, -1, False), (100, -21, True), (2**30, -20, True), (2**27, -2, True)],
)
def test_a_fixed_result_is_bounded_where_sums_and_shifts_are_small_or_its_channels_do_not_depend_on_the_image(
    bias, shift, bounded
):
    """Shifts of -21 leave the zero point alone, and large sums the largest byte."""
    filters, scale, (result, start, scales) = fixed_layer([100, bias], [3 << 29, 2**30], [-7, shift])
    assert result.bounded == bounded
    images = np.concatenate([np.indices((256, 2)).reshape(2, -1).T * (1, 255), RNG.integers(0, 256, (99, 2))])
    flat = filters[:, :, 0, 0].astype("i8")
    sums = (images - 5) @ flat.T + [100, bias]
    expected = requantise(sums, scale, result)
    assert requantise(images @ flat.T + start[:2], scales[:, :2], result).tolist() == expected.tolist()


def test_other_targets_and_floats_have_no_bounded_results():
    filters, bias, scale = np.ones((1, 1, 1, 1), "int8"), np.zeros(1, "int32"), np.array([[2**30], [-7]], "int32")
    for target, result, factors in ((TARGET, Result(fixed="once"), scale), (HALVES, Result(), np.ones(1, "f4"))):
        assert starts(ByteShape(1, 1, 3, 1, target), filters, bias, 0, factors, result)[0] == result


@pytest.mark.parametrize(
    ("rows", "k", "is_tiled"),
    [((4,), 70, True), ((2, 9), 32, True), ((3,), 70, False), ((0,), 70, False), ((9,), 31, False)],
)
def test_a_target_with_tiles_packs_for_them_where_they_are_faster(rows, k, is_tiled):
    y = RNG.integers(-128, 128, (k, COLUMNS), "int8")
    constants = [y, RNG.integers(-900, 900, COLUMNS, "int32"), RNG.random(COLUMNS, "float32") / 64]
    x = cg.Var((*rows, k), "uint8", "x")
    node = apply(IntegerMatmul(5, Result(zero=3)), x, *map(cg.Const, constants))
    packed = pack_product(node, node.operands, emulate_tiles(TARGET))
    assert isinstance(packed.op, TiledIntegerMatmul if is_tiled else PackedIntegerMatmul)
    images = RNG.integers(0, 256, x.shape, "uint8")
    arrays = [c.op.array for c in packed.operands[1:]]
    assert packed.op.meaning(images, *arrays).tolist() == node.op.meaning(images, *constants).tolist()
