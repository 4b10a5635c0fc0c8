"""Constants of products of bytes: the sum from which a tile starts takes the zero point's part away."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.kernels.conv8.calls import ByteShape, Result
from cgraph.kernels.conv8.packed_weights import pack_scale, pack_start, split_numbers, split_scale, split_start
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from cgraph.lowering.pack_int8 import byte_constants, pack_integers, pack_product, sums_reached
from cgraph.ops.loop import Loop
from cgraph.ops.physical.integer import IntegerMatmul, PackedIntegerMatmul, requantise, unpack_bytes
from cgraph.ops.physical.tiled import TiledIntegerMatmul
from cgraph.record import replace
from tests.support.emulated import emulate_tiles
from tests.support.ops import kernel_result

RNG = np.random.default_rng(0)
TARGET = target_named("portable")
DEPTH, COLUMNS = 5, 7


def packed_node(node, target):
    """Return the product with packed constants."""
    op, constants = pack_product(node, node.operands, target)
    return apply(op, node.operands[0], *constants)


def test_a_start_is_the_bias_without_the_zero_points_part_and_0_behind_the_last_channel():
    filters = RNG.integers(-128, 128, (COLUMNS, DEPTH, 1, 1), "int8")
    bias, scale = RNG.integers(-900, 900, COLUMNS, "int32"), RNG.random(COLUMNS, "float32")
    shape = ByteShape(DEPTH, 1, 3, COLUMNS, TARGET)
    constants = byte_constants(shape, filters, bias, scale, 131, Result())
    start, scales = constants.numbers
    assert constants.result == Result() and constants.shape is shape and constants.filters is filters
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
    packed = packed_node(node, TARGET)
    assert isinstance(packed.op, PackedIntegerMatmul) and packed.spec == node.spec and packed.operands[0] is x
    images = RNG.integers(0, 256, x.shape, "uint8")
    panels, start, scale = (c.op.array for c in packed.operands[1:])
    assert packed.op.meaning(images, panels, start, scale).tolist() == node.op.meaning(images, *constants).tolist()
    assert unpack_bytes(packed.op.shape, panels).reshape(COLUMNS, DEPTH).T.tolist() == y.tolist()


def test_products_share_constants_if_all_that_they_depend_on_is_equal():
    """Each has the values of its own zero point and result."""
    y = RNG.integers(-128, 128, (DEPTH, COLUMNS), "int8")
    constants = [y, RNG.integers(-900, 900, COLUMNS, "int32"), RNG.random(COLUMNS, "float32") / 64]
    operands, xs = tuple(map(cg.Const, constants)), [cg.Var((3, DEPTH), "uint8", name) for name in "ab"]
    ops = [IntegerMatmul(zero, Result(zero=to)) for zero, to in ((0, 3), (7, 3), (0, 200))]
    nodes = [apply(op, x, *operands) for op in ops for x in xs]
    packed = pack_integers((*nodes, apply(ops[0], cg.Var((4, DEPTH), "uint8"), *operands)), TARGET)
    images = RNG.integers(0, 256, (3, DEPTH), "uint8")
    for node, other in zip(nodes, packed):
        panels, start, scale = (c.op.array for c in other.operands[1:])
        assert other.op.meaning(images, panels, start, scale).tolist() == node.op.meaning(images, *constants).tolist()
    for first, second in zip(packed[:6:2], packed[1:6:2]):
        assert all(a is b for a, b in zip(first.operands[1:], second.operands[1:]))


def test_constants_are_packed_in_bodies_but_not_for_blocks_of_threads():
    y = RNG.integers(-128, 128, (DEPTH, DEPTH), "int8")
    op, constants = IntegerMatmul(0, Result()), [y, np.zeros(DEPTH, "int32"), np.ones(DEPTH, "float32")]
    x, rows = cg.Var((1, DEPTH), "uint8"), cg.Var((200, 1, DEPTH), "uint8")
    _, ys = cg.scan(lambda s, row: (apply(op, s, *map(cg.Const, constants)), s), x, rows)
    (loop,) = {n for n in post_order(pack_integers((ys,), TARGET)) if isinstance(n.op, Loop)}
    kinds = {type(n.op) for n in post_order(loop.op.bodies[0].results)}
    assert PackedIntegerMatmul in kinds and IntegerMatmul not in kinds
    assert pack_integers((ys,), replace(TARGET, has_blocks=True)) == (ys,)


HALVES = replace(TARGET, dot="halves")


def fixed_layer(bias, factor, shift):
    """A layer of two inputs with a fixed result: what a target without vectors gets as result, starts and scales."""
    filters = np.zeros((len(bias), 2, 1, 1), "int8")
    filters[:, 0], filters[0, :, 0, 0] = 1, (127, -128)
    shape = ByteShape(2, 1, 3, len(bias), HALVES)
    scale = np.array([factor, shift], "int32")
    return (
        filters,
        scale,
        byte_constants(shape, filters, np.array(bias, "int32"), scale, 5, Result(zero=9, fixed="twice")),
    )


@pytest.mark.parametrize(
    "bias, shift, bounded",
    [
        (100, -2, True),
        (100, -20, True),
        (100, -1, False),
        (100, -21, True),
        (2**30, -20, True),
        (2**30, -22, True),
        (2**27, -2, True),
    ],
)
def test_a_fixed_result_is_bounded_where_sums_and_shifts_are_small_or_its_channels_do_not_depend_on_the_image(
    bias, shift, bounded
):
    """Shifts of -21 leave the zero point alone, and large sums the largest byte."""
    filters, scale, constants = fixed_layer([100, bias], [3 << 29, 2**30], [-7, shift])
    result, (start, packed) = constants.result, constants.numbers
    scales = split_scale(constants.shape, start, packed, result)
    start = split_start(constants.shape, start, result)
    assert result.bounded == bounded and not result.has_one_scale
    images = np.concatenate([np.indices((256, 2)).reshape(2, -1).T * (1, 255), RNG.integers(0, 256, (99, 2))])
    flat = filters[:, :, 0, 0].astype("i8")
    sums = (images - 5) @ flat.T + [100, bias]
    expected = requantise(sums, scale, result)
    assert requantise(images @ flat.T + start[:2], scales, result).tolist() == expected.tolist()


def test_other_targets_and_floats_have_no_bounded_results():
    filters, bias, scale = np.ones((1, 1, 1, 1), "int8"), np.zeros(1, "int32"), np.array([[2**30], [-7]], "int32")
    for target, result, factors in ((TARGET, Result(fixed="once"), scale), (HALVES, Result(), np.ones(1, "f4"))):
        constants = byte_constants(ByteShape(1, 1, 3, 1, target), filters, bias, factors, 0, result)
        assert constants.result == result and not constants.shape.is_unpacked


@pytest.mark.parametrize("k", [4, 5, 11])
@pytest.mark.parametrize(
    "result",
    [
        Result(fixed="once"),
        Result(fixed="once", bounded=True),
        Result(fixed="once", bounded=True, joins_places=True),
        Result(fixed="twice", bounded=True, joins_places=True),
        Result(),
    ],
)
def test_scales_are_packed_and_split(result, k):
    """Of bounded results, a factor takes four bytes and a shift one, or none where sums have places; other targets keep
    two numbers.
    """
    for target in (HALVES,) if result.joins_places else (HALVES, TARGET):
        shape = ByteShape(3, 1, 2, k, target)
        scale = RNG.random(k, "f4")
        if result.fixed:
            scale = np.stack([RNG.integers(1 << 30, 1 << 31, k), RNG.integers(-20, -1, k)]).astype("i4")
        start = RNG.integers(-(1 << 26), 1 << 26, k, "i4")
        packed_start, packed = pack_start(shape, start, scale, result), pack_scale(shape, scale, result)
        assert split_start(shape, packed_start, result).tolist() == start.tolist()
        assert split_scale(shape, packed_start, packed, result).tolist() == scale.tolist()
        channels = shape.panels * shape.panel_channels
        is_short = result.bounded and target is HALVES
        assert packed.nbytes == channels * ((4 if result.joins_places else 5) if is_short else 4 * scale.ndim)


def test_one_scale_of_all_filters_is_stored_once():
    filters, scale, constants = fixed_layer([100, 7], [3 << 29, 3 << 29], [-7, -7])
    assert constants.result.has_one_scale and constants.numbers[1].tolist() == scale[:, 0].tolist()
    assert split_scale(constants.shape, *constants.numbers, constants.result).tolist() == scale.tolist()
    for factors, shifts in (([3 << 29, 3 << 29], [-7, -8]), ([3 << 29, 2**30], [-7, -7])):
        filters, scale, constants = fixed_layer([100, 7], factors, shifts)
        assert constants.result.bounded and not constants.result.has_one_scale
        assert split_scale(constants.shape, *constants.numbers, constants.result).tolist() == scale.tolist()
    depthwise = ByteShape(8, 5, 5, 8, HALVES, Window((3, 3)), 8)
    filters = np.ones((8, 1, 3, 3), "int8")
    same = np.array([[1 << 30] * 8, [-7] * 8], "int32")
    constants = byte_constants(depthwise, filters, np.zeros(8, "int32"), same, 0, Result(fixed="twice"))
    assert constants.result.bounded and not constants.result.has_one_scale and constants.result.joins_places
    large = byte_constants(depthwise, filters, np.full(8, 1 << 26, "int32"), same, 0, Result(fixed="twice", high=254))
    assert not large.result.joins_places


MANY = 9  # channels of a result, enough to unpack pixels once for all


def unpacked_layer(change=lambda filters, bias, scale: None, w=3, c=6):
    """Random constants of a layer with many results, changed, and what a target without vectors gets for them."""
    rng = np.random.default_rng(2)
    filters = rng.integers(-127, 128, (MANY, c, 1, 1), "int8")
    bias = rng.integers(-9000, 9000, MANY, "int32")
    scale = np.stack([rng.integers(1 << 30, 1 << 31, MANY), np.full(MANY, -8)]).astype("int32")
    change(filters, bias, scale)
    shape, result = ByteShape(c, 1, w, MANY, HALVES), Result(zero=9, fixed="twice")
    return (filters, bias, scale), byte_constants(shape, filters, bias, scale, 5, result)


def test_pixels_are_unpacked_once_where_sums_and_weights_are_small_and_both_are_many():
    def most_negative_weight(filters, bias, scale):
        filters[3, 2] = -128

    def large_sum(filters, bias, scale):
        bias[4], scale[1, 4] = 1 << 23, -16

    assert unpacked_layer()[1].shape.is_unpacked and unpacked_layer()[1].result.bounded
    for change in (most_negative_weight, large_sum):
        constants = unpacked_layer(change)[1]
        assert not constants.shape.is_unpacked and constants.result.bounded
    assert not unpacked_layer(w=1)[1].shape.is_unpacked
    assert not unpacked_layer(c=4 * 144 + 1)[1].shape.is_unpacked


@pytest.mark.parametrize("bias", [1 << 27, -(1 << 27)])
def test_unpacked_channels_that_are_the_same_for_all_images_read_nothing(bias):
    def constant_channel(filters, biases, scale):
        biases[7] = bias

    (filters, biases, scale), constants = unpacked_layer(constant_channel)
    assert constants.shape.is_unpacked and not constants.filters[7].any()
    assert (constants.filters[:7] == filters[:7]).all()
    start, scales = split_numbers(constants.shape, constants.filters, *constants.numbers, once=False)
    images = RNG.integers(0, 256, (99, 6))
    expected = requantise((images - 5) @ filters[:, :, 0, 0].T.astype("i8") + biases, scale, constants.result)
    sums = images @ constants.filters[:, :, 0, 0].T.astype("i8") + start
    assert requantise(sums, scales, constants.result).tolist() == expected.tolist()


@pytest.mark.parametrize("fixed", ["once", "twice"])
def test_an_unpacked_product_is_the_product(fixed):
    (filters, bias, scale), _ = unpacked_layer()
    constants = np.ascontiguousarray(filters[:, :, 0, 0].T), bias, scale
    x = cg.Var((4, 6), "uint8", "x")
    node = apply(IntegerMatmul(5, Result(zero=3, fixed=fixed)), x, *map(cg.Const, constants))
    packed = packed_node(node, HALVES)
    assert packed.op.shape.is_unpacked and len(packed.operands) == 3
    images, arrays = RNG.integers(0, 256, x.shape, "uint8"), [c.op.array for c in packed.operands[1:]]
    expected = node.op.meaning(images, *constants)
    assert packed.op.meaning(images, *arrays).tolist() == expected.tolist()
    assert unpack_bytes(packed.op.shape, arrays[0])[:, :, 0, 0].T.tolist() == constants[0].tolist()
    (got,) = kernel_result(packed, [images, *arrays], "all", target=HALVES)
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("rows", "k", "is_tiled"),
    [((4,), 70, True), ((2, 9), 32, True), ((3,), 70, False), ((0,), 70, False), ((9,), 31, False)],
)
def test_a_target_with_tiles_packs_for_them_where_they_are_faster(rows, k, is_tiled):
    y = RNG.integers(-128, 128, (k, COLUMNS), "int8")
    constants = [y, RNG.integers(-900, 900, COLUMNS, "int32"), RNG.random(COLUMNS, "float32") / 64]
    x = cg.Var((*rows, k), "uint8", "x")
    node = apply(IntegerMatmul(5, Result(zero=3)), x, *map(cg.Const, constants))
    packed = packed_node(node, emulate_tiles(TARGET))
    assert isinstance(packed.op, TiledIntegerMatmul if is_tiled else PackedIntegerMatmul)
    images = RNG.integers(0, 256, x.shape, "uint8")
    arrays = [c.op.array for c in packed.operands[1:]]
    assert packed.op.meaning(images, *arrays).tolist() == node.op.meaning(images, *constants).tolist()


@pytest.mark.parametrize("middle", [0, 1, 128, 255])
def test_the_least_and_the_largest_sum_of_any_bytes(middle):
    filters = RNG.integers(-128, 128, (5, 2, 1, 2), "int8")
    filters[1], filters[2] = 0, np.abs(filters[2].astype(int)).clip(0, 127)
    least, most = sums_reached(filters, middle)
    for k, f in enumerate(filters.reshape(5, -1).astype(int).tolist()):
        ends = [(n * -middle, n * (255 - middle)) for n in f]
        assert (least[k], most[k]) == (sum(map(min, ends)), sum(map(max, ends)))
