"""Networks on tile registers: which images are bfloat16, one result however they are run, near that of float32."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings

import cgraph as cg
from cgraph.dtypes.convert import code_of
from cgraph.dtypes.storage import BFLOAT16
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.kernels.conv8.calls import Join, Result
from cgraph.kernels.pool8.rounding_margin import Mean
from cgraph.kernels.target import host_target, target_named
from cgraph.lowering import tile_lowerings
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.lowering.tile_lowerings import byte_tile_shape, in_bfloat16
from cgraph.ops.arithmetic import Cast, Multiply, Subtract
from cgraph.ops.conv import Conv2d
from cgraph.ops.elementary import Exp
from cgraph.ops.fused import FusedPointwise
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.conv_layer import PLAIN_CHANNELS
from cgraph.ops.physical.integer import IntegerConv, PixelSum
from cgraph.ops.physical.table import ByteTable
from cgraph.ops.physical.tile_conv import TileConv, TileImages, TileIntegerConv, WideDepthwise
from cgraph.ops.physical.tile_filters import PackTileFilters, TileConvFilters
from cgraph.ops.physical.tile_transposed import TileConvTranspose
from cgraph.passes import rewrite_graph
from cgraph.quantiser import quantise
from cgraph.record import replace
from tests.support.emulated import TilesEngine, emulate_tiles
from tests.support.kernels import TARGETS
from tests.support.networks import networks
from tests.support.tiles import bfloat16_bits, floats_of
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)


def conv(x, filters, size=3, stride=1, groups=1):
    shape = (filters, x.shape[1] // groups, size, size)
    f = (RNG.standard_normal(shape) / (shape[1] ** 0.5 * size)).astype("f4")
    return cg.conv2d(x, f, stride, size // 2, 1, groups)


def channels(x):
    return RNG.standard_normal((x.shape[1], 1, 1)).astype("f4")


def compiled(outputs, inputs, target="host", threads=1, **options):
    engine = TilesEngine(target, threads, poison=True)
    return cg.compile(outputs, inputs, engine=engine, precision="bf16", **options)


def dtypes_of(function, kinds):
    """The dtypes of the images of these ops, in running order."""
    return [code_of(n.dtype) for n in function.compiled.layout.steps if isinstance(n.op, kinds)]


def count(function, kind):
    return sum(isinstance(n.op, kind) for n in function.compiled.layout.steps)


BETWEEN = {
    "nothing": lambda x: x,
    "a residual": lambda x: cg.relu(conv(x, 64) + x),
    "max pooling": lambda x: cg.max_pool2d(x, 3, 2, 1),
    "mean pooling": lambda x: cg.avg_pool2d(x, 2),
    "a concat": lambda x: cg.concat([conv(x, 32), conv(x, 40)], 1),
    "numbers for each channel": lambda x: cg.relu(x * channels(x) + channels(x)),
    "a depthwise layer": lambda x: cg.relu(conv(x, 64, 5, 2, 64) + channels(x)),
    "a dilated layer": lambda x: cg.conv2d(x, RNG.standard_normal((64, 64, 3, 3)).astype("f4") / 24, 1, 2, 2),
}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_images_between_convolutions_stay_bfloat16(between):
    x = cg.Var((1, 3, 14, 12), name="x")
    y = conv(between(cg.relu(conv(x, 64))), 16, 1)
    function = compiled(y, [x])
    assert count(function, TileImages) == 1  # the input
    *inner, last = dtypes_of(function, TileConv)
    assert set(inner) == {BFLOAT16.code} and last == "f4"
    numbers = RNG.standard_normal(x.shape).astype("f4")
    want = cg.compile(y, [x])(numbers)
    error = np.abs(function(numbers) - want).max()
    assert 0 < error <= 0.02 * np.abs(want).max()


STAYS = {
    "an output": lambda x: (x, [x]),
    "an op without bfloat16 images": lambda x: (cg.resize(x, (20, 20), "linear"), []),
    "a product": lambda x: (conv(x * cg.max(x, (2, 3), keepdims=True), 64), []),
    "groups": lambda x: (conv(x, 64, 3, 1, 2), []),
    "a concat of other channels": lambda x: (cg.concat([conv(x, 40), x], 1), []),
}


@pytest.mark.parametrize("case", STAYS.values(), ids=STAYS)
def test_images_that_other_ops_read_stay_float32(case):
    x = cg.Var((1, 3, 14, 12), name="x")
    y, ends = case(cg.relu(conv(x, 64)))
    function = compiled([conv(y, 16, 1), *ends], [x])
    assert dtypes_of(function, TileConv)[0] == "f4" and count(function, TileImages) >= 2


def test_a_sum_over_pixels_reads_bfloat16_images():
    x = cg.Var((2, 3, 14, 12), name="x")
    y = cg.mean(cg.relu(conv(cg.relu(conv(x, 64)), 40)), (2, 3))
    function = compiled(y, [x])
    assert dtypes_of(function, TileConv) == [BFLOAT16.code] * 2
    numbers = RNG.standard_normal(x.shape).astype("f4")
    want = cg.compile(y, [x])(numbers)
    assert np.abs(function(numbers) - want).max() <= 0.02 * np.abs(want).max()


def network():
    """A network of everything that has bfloat16 images, and of what has not."""
    x = cg.Var((2, 3, 26, 22), name="x")
    first = cg.max_pool2d(cg.relu(conv(x, 40, 7, 2)), 3, 2, 1)
    deep = cg.relu(conv(first, 40, 3, 1, 40) + channels(first))
    added = cg.relu(conv(cg.relu(conv(deep, 24)), 40) + first)
    joined = cg.relu(cg.concat([conv(added, 32, 1), conv(added, 33)], 1) * np.float32(0.5))
    gate = cg.sigmoid(cg.mean(joined, (2, 3), keepdims=True))
    return x, conv(conv(joined * gate, 40), 17, 1)


@pytest.mark.parametrize("target", TARGETS)
def test_a_network_has_one_result_however_it_is_run(target):
    x, y = network()
    numbers = RNG.standard_normal(x.shape).astype("f4")
    function = compiled(y, [x], target)
    assert count(function, WideDepthwise) == 1 and BFLOAT16.code in dtypes_of(function, TileConv)
    want, floats = function(numbers), cg.compile(y, [x])(numbers)
    assert (want != floats).any() and np.abs(want - floats).max() <= 0.03 * np.abs(floats).max()
    for options in ({"threads": 2}, {"bands": 30}, {"bands": 1, "threads": 2}, {"memory": "one_each"}):
        np.testing.assert_array_equal(compiled(y, [x], target, **options)(numbers), want)
    physical = to_physical(rewrite_graph((y,)), emulate_tiles(target_named(target)), LoweringOptions(pairs=True))
    meant = evaluate(physical, {x: numbers})[0]  # which adds in another order, so that few numbers round differently
    assert np.abs(want - meant).mean() <= 0.1 * np.abs(want - floats).mean()


@settings(max_examples=15)
@given(network=networks())
def test_strategies_and_threads_give_the_same_bits_of_any_network(network):
    image, outputs = network
    numbers = np.random.default_rng(1).normal(size=image.shape).astype(image.dtype)
    want = compiled(outputs, [image], memory="one_each")(numbers)
    for options in ({"threads": 3}, {"memory": "strip_packing"}, {"bands": 4}):
        for a, b in zip(compiled(outputs, [image], **options)(numbers), want):
            np.testing.assert_array_equal(a, b)


def test_without_tiles_or_without_bf16_no_image_is_rounded():
    x, y = network()
    without_tiles = cg.compile(y, [x], precision="bf16", engine=CpuEngine(tiles=False))
    for function in (cg.compile(y, [x], engine=TilesEngine()), without_tiles):
        assert not count(function, TileConv | TileImages | WideDepthwise)


def test_computed_filters_are_packed_in_each_run_and_images_between_them_stay_float32():
    x, f = cg.Var((1, 32, 8, 8), name="x"), cg.Var((32, 32, 3, 3), name="f")
    y = cg.relu(cg.conv2d(x, f, 1, 1))
    function = compiled(cg.conv2d(y, f, 1, 1), [x, f])
    assert dtypes_of(function, TileConv) == ["f4", "f4"] and count(function, PackTileFilters) == 1
    assert count(function, TileImages) == 2


TRAINED = {  # channels, filters, size of the filter, stride, pad
    "a stride": (32, 64, 3, 2, 1),
    "points with a stride": (64, 64, 1, 2, 0),
    "no stride": (32, 32, 3, 1, 1),
    "padded beyond the filter": (32, 32, 2, 2, 2),
    "few channels": (3, 64, 5, 2, 2),
}


@pytest.mark.parametrize("layer", TRAINED.values(), ids=TRAINED)
def test_the_three_products_of_a_trained_layer_are_on_tiles(layer):
    c, k, size, stride, pad = layer
    x, f = cg.Var((3, c, 14, 13), name="x"), cg.Var((k, c, size, size), name="f")
    y = cg.conv2d(x, f, stride, pad)
    g = cg.Var(y.shape, name="g")
    of = (f,) if c <= PLAIN_CHANNELS else (x, f)  # the gradient for a picture is plain
    gradients = [cg.gradient(cg.sum(y * g), v) for v in of]
    values = [RNG.standard_normal(v.shape).astype("f4") for v in (x, f, g)]
    function = compiled([y, *gradients], [x, f, g])
    kinds = {type(n.op) for n in function.compiled.layout.steps}
    assert {TileConv, TileConvFilters} <= kinds and (TileConvTranspose in kinds) == (len(of) == 2)
    rounded = [floats_of(bfloat16_bits(value)) for value in values]
    near = cg.compile([y, *gradients], [x, f, g])(*rounded)
    got = function(*values)
    for some, want in zip(got, near, strict=True):
        assert_near(some, want, "normal products")
    for options in ({"threads": 3}, {"memory": "one_each"}, {"bands": 30}):
        for some, other in zip(got, compiled([y, *gradients], [x, f, g], **options)(*values), strict=True):
            np.testing.assert_array_equal(some, other)


@pytest.mark.parametrize("groups", [1, 64])
def test_filters_of_several_layers_have_the_scale_of_each(groups):
    """Packed filters hold the scale of a batch norm: layers that differ in it, or in nothing else, share none."""
    x = cg.Var((1, 64, 12, 12), name="x")
    f = cg.Const((RNG.standard_normal((64, 64 // groups, 3, 3)) / 24).astype("f4"))
    scales = [RNG.uniform(0.5, 2, (64, 1, 1)).astype("f4") for _ in range(2)]
    layers = [cg.conv2d(cg.relu(conv(x, 64)), f, 1, 1, 1, groups) * scale for scale in scales]
    outputs = [conv(y, 64) for y in layers]
    function = compiled(outputs, [x])
    assert (count(function, TileConv), count(function, WideDepthwise)) == ((6, 0) if groups == 1 else (4, 2))
    numbers = RNG.standard_normal(x.shape).astype("f4")
    floats = cg.compile(outputs, [x])(numbers)
    for got, want in zip(function(numbers), floats):
        assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()


def test_pointwise_ops_compute_in_float32_and_round_once():
    x = RNG.standard_normal(100).astype("f4")
    images = cg.astype(cg.Var(x.shape, name="x"), "bfloat16")
    (rounded,) = evaluate([images], {images.operands[0]: x})
    op = in_bfloat16(Exp(), (True,))
    want = evaluate([cg.astype(cg.exp(cg.astype(images, "float32")), "bfloat16")], {images.operands[0]: x})[0]
    np.testing.assert_array_equal(op.meaning(rounded), want)
    twice = in_bfloat16(op, (True,))
    assert twice.dtype(BFLOAT16.dtype) == BFLOAT16.dtype and len(twice.body) == len(op.body) + 2


@pytest.mark.parametrize("images", list(itertools.product([True, False], repeat=3)))
def test_steps_of_a_fused_op_read_what_they_read_before(images):
    """Steps that read operands, and results of any step before, whichever of the operands are images."""
    body = (Multiply(), (0, 1)), (Subtract(), (3, 2)), (Exp(), (2,)), (Subtract(), (5, 4)), (Multiply(), (6, 0))
    op = FusedPointwise(3, (*body, (Subtract(), (7, 3))))
    narrow, wide = Cast(BFLOAT16.dtype).meaning, Cast(np.dtype("f4")).meaning
    values = [RNG.standard_normal(40).astype("f4") for _ in images]
    values = [narrow(x) if is_image else x for x, is_image in zip(values, images)]
    want = narrow(op.meaning(*[wide(x) if is_image else x for x, is_image in zip(values, images)]))
    np.testing.assert_array_equal(in_bfloat16(op, images).meaning(*values), want)


def byte_conv(x, filters, size=3, stride=1, groups=1, residual=None, zero=7):
    """A convolution of bytes, with its result as bytes whose zero point the next layer reads."""
    shape = (filters, x.shape[1] // groups, size, size)
    f, bias = RNG.integers(-128, 128, shape, "int8"), RNG.integers(-900, 900, filters, "int32")
    scale = (RNG.random(filters) + 0.5).astype("f4") / (40 * shape[1] ** 0.5 * size)
    pad = (size // 2,) * 4
    conv = Conv2d((stride, stride), pad, (1, 1), groups)
    join = None if residual is None else Join(0.03, -120, 135, 0.05, 0.04, 7)
    operands = [x, *map(cg.Const, (f, bias, scale)), *([] if residual is None else [residual])]
    return apply(IntegerConv(conv, zero, Result("u1", 7, join=join)), *operands)


def byte_network():
    """A network of everything that has bytes in blocks of 64 channels."""
    x = cg.Var((2, 3, 26, 22), "uint8", "x")
    first = cg.max_pool2d(byte_conv(x, 70, 7, 2), 3, 2, 1)
    added = byte_conv(byte_conv(first, 40), 70, 1, residual=first)
    table = cg.Const(RNG.integers(0, 256, 256, "uint8"))
    shuffled = apply(ByteTable(), byte_conv(added, 64, 3), table)
    both = cg.concat([shuffled, byte_conv(added, 80, 1)], 1)
    mean = BytePool((3, 2), (1, 2), (1, 0, 1, 1), (1, 1), False, False, Mean(0.5, 7, 0.3, 7))
    return x, byte_conv(apply(mean, both), 48)


def bytes_of(shape):
    return np.random.default_rng(8).integers(0, 256, shape, "uint8")


@pytest.mark.parametrize(
    ("channels", "uses_tiles"), [((16, 16), False), ((16, 64), True), ((40, 40), True), ((20, 31), False)]
)
def test_bytes_use_tiles_if_their_images_at_most_double(channels, uses_tiles):
    x = cg.Var((1, 32, 9, 8), "uint8", "x")
    y = x
    for k in channels:
        y = byte_conv(y, k)
    function = cg.compile(y, [x], engine=TilesEngine())
    assert count(function, TileIntegerConv) == (len(channels) if uses_tiles else 0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ends_in_sums", [False, True])
def test_bytes_on_tiles_have_the_bits_of_bytes_in_vectors(ends_in_sums, target):
    x, y = byte_network()
    y = apply(PixelSum(), y) if ends_in_sums else y
    numbers = bytes_of(x.shape)
    want = cg.compile(y, [x], engine=CpuEngine(target))(numbers)
    for options in ({}, {"threads": 3}, {"bands": 30}, {"bands": 1}, {"memory": "one_each"}):
        function = cg.compile(y, [x], engine=TilesEngine(target, options.pop("threads", 1), poison=True), **options)
        np.testing.assert_array_equal(function(numbers), want)
        if not options:
            assert count(function, TileIntegerConv) == 6 and not count(function, TileImages)


BYTES_STAY = {
    "an output": lambda x: (x, [x]),
    "a depthwise layer": lambda x: (byte_conv(x, 64, 3, 1, 64), []),
    "a concat of other channels": lambda x: (cg.concat([byte_conv(x, 40), x], 1), []),
    "a float": lambda x: (byte_conv(x, 64), [cg.astype(x, "float32") * 0.5]),
}


@pytest.mark.parametrize("case", BYTES_STAY.values(), ids=BYTES_STAY)
def test_bytes_that_other_ops_read_stay_in_narrow_blocks(case):
    x = cg.Var((1, 32, 14, 12), "uint8", "x")
    y, ends = case(byte_conv(x, 64))
    outputs, numbers = [byte_conv(y, 16, 1), *ends], bytes_of(x.shape)
    function = cg.compile(outputs, [x], engine=TilesEngine(poison=True))
    assert count(function, TileImages) >= 1
    for got, want in zip(function(numbers), cg.compile(outputs, [x])(numbers), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_network_of_short_sums_stays_in_vectors():
    x = cg.Var((1, 32, 14, 12), "uint8", "x")
    y = byte_conv(byte_conv(byte_conv(x, 32, 1), 32, 3, 1, 32), 64, 1)
    function = cg.compile(y, [x], engine=TilesEngine())
    assert not count(function, TileIntegerConv | TileImages)
    numbers = bytes_of(x.shape)
    np.testing.assert_array_equal(function(numbers), cg.compile(y, [x])(numbers))


def float_conv(x, filters=40):
    """A convolution of bytes whose result is float32."""
    node = byte_conv(x, filters, 1)
    return apply(replace(node.op, result=Result("f4")), *node.operands)


FLOAT_ENDS = {
    "means": lambda y: cg.mean(cg.relu(y), (2, 3)),
    "sums of pooled images": lambda y: cg.sum(cg.max_pool2d(y, 3, 2), (2, 3)),
    "a concat": lambda y: cg.mean(cg.concat([y, y * np.float32(2)], 1), (2, 3)),
    "a float layer": lambda y: cg.mean(conv(cg.relu(y), 33), (2, 3)),
    "a depthwise layer": lambda y: cg.mean(conv(y, y.shape[1], 3, 1, y.shape[1]), (2, 3)),
}


@pytest.mark.parametrize("end", FLOAT_ENDS.values(), ids=FLOAT_ENDS)
@pytest.mark.parametrize("channels", [40, 64])
def test_float_results_of_bytes_on_tiles_are_not_rounded(channels, end):
    x = cg.Var((2, 64, 9, 8), "uint8", "x")
    y = end(float_conv(byte_conv(x, 70), channels))
    function, numbers = cg.compile(y, [x], engine=TilesEngine(poison=True)), bytes_of(x.shape)
    assert count(function, TileIntegerConv) and BFLOAT16.dtype not in {n.dtype for n in function.compiled.layout.steps}
    np.testing.assert_array_equal(function(numbers), cg.compile(y, [x], engine=CpuEngine(tiles=False))(numbers))


@pytest.mark.parametrize("end", FLOAT_ENDS.values(), ids=FLOAT_ENDS)
def test_float_results_of_bytes_are_near_with_bf16(end):
    x = cg.Var((2, 64, 9, 8), "uint8", "x")
    y, numbers = end(float_conv(byte_conv(x, 70), 64)), bytes_of(x.shape)
    function = cg.compile(y, [x], engine=TilesEngine(poison=True), precision="bf16")
    want = cg.compile(y, [x], engine=CpuEngine(tiles=False))(numbers)
    assert count(function, TileIntegerConv) and np.abs(function(numbers) - want).max() <= 0.02 * np.abs(want).max()


@pytest.mark.slow
@settings(max_examples=25)
@given(network=networks())
def test_random_networks_of_bytes_have_the_bits_of_vectors(network):
    image, outputs = network
    runs = [np.random.default_rng(i).normal(size=image.shape).astype(image.dtype) for i in range(2)]
    assume(image.dtype == np.float32 and len(set(outputs)) == 2)
    try:
        quantised = quantise(outputs, image, runs, correct=False)
    except cg.GraphError:  # no layer
        reject()
    want = quantised.compile(engine=CpuEngine(tiles=False))(runs[0])
    for a, b in zip(quantised.compile(engine=TilesEngine(poison=True))(runs[0]), want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("channels", "groups", "plain", "few"),
    [
        (PLAIN_CHANNELS, 1, True, True), (PLAIN_CHANNELS + 1, 1, True, False), (PLAIN_CHANNELS, 1, False, False),
        (PLAIN_CHANNELS, 2, True, False), (1, 1, True, True),
    ],
)  # fmt: skip
def test_few_channels_of_plain_images_are_read_as_they_are(channels, groups, plain, few, monkeypatch):
    calls = []
    monkeypatch.setattr(tile_lowerings, "byte_layer_of", lambda *args: calls.append(args))
    monkeypatch.setattr(tile_lowerings, "suits_tile_conv", lambda shape: True)
    node, target = byte_conv(cg.Var((1, channels, 9, 9), "uint8", "x"), 8, groups=groups), host_target()
    assert byte_tile_shape(node, target, plain) is None and calls == [(node, target, few)]
    assert byte_tile_shape(cg.Var((1, 4, 9, 9)), target, plain) is None and len(calls) == 1


def test_each_depthwise_layer_has_its_own_filters():
    """Two layers without factors, and two of the same filters with others."""
    x = cg.Var((1, 64, 9, 8), name="x")
    shared = cg.Const((RNG.standard_normal((64, 1, 3, 3)) / 3).astype("f4"))
    y = conv(x, 64)
    y = conv(conv(cg.relu(y), 64, 3, 1, 64), 64, 3, 1, 64)
    for _ in range(2):
        y = cg.relu(cg.conv2d(y, shared, 1, 1, 1, 64) * channels(y))
    y = conv(y, 16, 1)
    function = compiled(y, [x])
    assert count(function, WideDepthwise) == 4
    numbers = RNG.standard_normal(x.shape).astype("f4")
    want = cg.compile(y, [x])(numbers)
    assert np.abs(function(numbers) - want).max() <= 0.03 * np.abs(want).max()
