"""Quantized graphs computed on bytes: exactly what their ops mean, on every target; beside floats and onnxruntime."""

import itertools

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.integer import (
    BlockedIntegerConv,
    BlockedPixelSum,
    IntegerConv,
    IntegerMatmul,
    PackedIntegerMatmul,
    PixelSum,
)
from cgraph.passes import rewrite_graph
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.passes.integers.patterns import vector_of
from tests.support.kernels import TARGETS

KINDS = ("uint8", "int8")


class Net:
    """A quantized network under construction, with drawn constants. Changes: its random numbers advance."""

    def __init__(self, kind: str = "uint8", seed: int = 0) -> None:
        self.rng, self.kind = np.random.default_rng(seed), kind

    def bytes(self, x, scale=0.02, zero=None):
        """``dequantize(quantize(x))``, and the scale that stands in it."""
        low = np.iinfo(self.kind).min
        zero = int(self.rng.integers(low + 90, low + 160)) if zero is None else zero
        x = cg.quantize(x, np.float32(scale), zero, self.kind)
        return cg.dequantize(x, np.float32(scale), zero)

    def filters(self, *shape, axis=0):
        """Dequantized filters, and their scales."""
        scale = self.rng.uniform(0.5, 2, shape[axis]).astype("f4") / np.float32(100 * np.sqrt(np.prod(shape[1:])))
        drawn = self.rng.integers(-128, 128, shape).astype("i1")
        wide = np.expand_dims(scale, [i for i in range(len(shape)) if i != axis])
        return cg.dequantize(drawn, wide), scale

    def bias(self, x, scale):
        drawn = self.rng.integers(-2000, 2000, scale.shape).astype("i4")
        return cg.dequantize(drawn, (scale_of(x) * scale).astype("f4"))

    def conv(self, x, k, window=3, stride=1, groups=1, pad=None):
        f, scale = self.filters(k, x.shape[1] // groups, window, window)
        pad = window // 2 if pad is None else pad
        return cg.conv2d(x, f, stride, pad, 1, groups) + cg.reshape(self.bias(x, scale), (-1, 1, 1))

    def matmul(self, x, n):
        f, scale = self.filters(x.shape[-1], n, axis=1)
        return x @ f + self.bias(x, scale)


def scale_of(x):
    """The scale of a dequantized node."""
    return np.float32(x.operands[1].operands[0].op.array)


def layers(kind):
    """A network of each group that bytes compute, and of some that they do not."""
    net = Net(kind)
    x = cg.Var((2, 3, 21, 19), name="x")
    first = net.bytes(cg.relu(net.conv(net.bytes(x), 24, 5, 2)))
    deep = net.bytes(net.conv(first, 24, 3, 1, 24))
    left = net.bytes(net.conv(deep, 40, 1))
    down = net.bytes(net.conv(first, 40, 1))
    added = net.bytes(cg.relu(left + down), 0.03)
    pooled = net.bytes(cg.max_pool2d(added, 3, 2, 1), 0.03, int(added.operands[2].operands[0].op.array))
    parts = [net.bytes(net.conv(pooled, 32, 1), 0.011), net.bytes(net.conv(pooled, 16, 3), 0.023)]
    joined = net.bytes(cg.concat(parts, 1), 0.023)
    grouped = net.bytes(cg.minimum(cg.maximum(net.conv(joined, 12, 3, 1, 2), -0.5), 0.7))
    between = net.bytes(cg.tanh(grouped))
    smooth = net.bytes(cg.relu(cg.avg_pool2d(joined, (3, 2), (1, 2), (1, 0, 1, 1), count_pad=True)), 0.03)
    mean = net.bytes(cg.mean(between, (2, 3), keepdims=True), 0.004)
    flat = net.bytes(cg.reshape(mean, (2, 12)), 0.004, int(mean.operands[2].operands[0].op.array))
    hidden = net.bytes(cg.relu(net.matmul(flat, 33)))
    return x, [net.matmul(hidden, 10), net.conv(joined, 7), net.bytes(parts[0] + 1.0), net.conv(smooth, 9)]


def drawn(x):
    return np.random.default_rng(3).standard_normal(x.shape).astype("f4")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_give_the_bits_of_the_meaning(target, kind):
    x, outputs = layers(kind)
    value = drawn(x)
    roots = compute_integers(tuple(outputs))
    physical = to_physical(rewrite_graph(roots), target_named(target), LoweringOptions())
    meant, low = evaluate(roots, {x: value}), evaluate(physical, {x: value})
    for threads in (1, 2):
        got = cg.compile(outputs, [x], engine=CpuEngine(target, threads, poison=True))(value)
        for a, b, c in zip(got, meant, low, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(c, b)


@pytest.mark.parametrize("kind", KINDS)
def test_every_group_is_taken(kind):
    _, outputs = layers(kind)
    roots = compute_integers(tuple(outputs))
    met = [type(node.op) for node in post_order(roots)]
    assert (met.count(IntegerConv), met.count(IntegerMatmul), met.count(PixelSum)) == (9, 2, 1)
    assert met.count(BytePool) == 1
    assert not any(node.op.name in ("conv2d", "matmul", "avg_pool") for node in post_order(roots))
    physical = {
        type(node.op) for node in post_order(to_physical(rewrite_graph(roots), target_named("host"), LoweringOptions()))
    }
    assert {BlockedIntegerConv, PackedIntegerMatmul, BlockedPixelSum} <= physical


@pytest.mark.parametrize("kind", KINDS)
def test_the_work_of_bytes_is_that_of_floats(kind):
    _, outputs = layers(kind)
    physical = to_physical(rewrite_graph(compute_integers(tuple(outputs))), target_named("host"), LoweringOptions())
    floats, numbers = (
        sum(node.op.multiply_adds(*(x.spec for x in node.operands)) for node in post_order(roots))
        for roots in (outputs, physical)
    )
    assert numbers == floats > 0


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_those_of_floats_but_for_single_quanta(kind):
    net = Net(kind, 1)
    x = cg.Var((1, 16, 30, 30), name="x")
    given = net.bytes(x)
    for made in (net.conv(given, 32), net.conv(given, 16, 3, 1, 16), net.conv(given, 32, 5, 2)):
        made = net.bytes(cg.relu(made))
        value = drawn(x)
        want, got = (np.rint(v / scale_of(made)) for v in (*evaluate([made], {x: value}), cg.compile(made, [x])(value)))
        assert np.abs(got - want).max() <= 1
        assert (got != want).mean() <= 1e-3  # float32 sums end on a half now and then


def test_a_sum_of_bytes_is_the_meaning_of_onnx_for_all_pairs():
    every = np.arange(256, dtype="u1")
    a, b = (cg.Var((1, 1, 256, 256), "uint8", name=name) for name in "ab")
    total = cg.dequantize(a, np.float32(0.013), 7) + cg.dequantize(b, np.float32(0.021), 250)
    found = cg.quantize(total, np.float32(0.017), 99)
    x, y = (v[None, None] for v in np.meshgrid(every, every))
    np.testing.assert_array_equal(cg.compile(found, [a, b])(x, y), evaluate([found], {a: x, b: y})[0])


def unlike(change):
    """A convolution of bytes with something in it that no rule takes."""
    net = Net()
    x = cg.Var((1, 8, 9, 9), name="x")
    given = net.bytes(x)
    f, scale = net.filters(8, 8, 3, 3)
    sums = scale_of(given) * scale
    bias = net.rng.integers(-9, 9, 8).astype("i4")
    if change == "a zero point of filters":
        f = cg.dequantize(f.operands[0], f.operands[1], 3)
    if change == "a scale for each channel of the images":
        given = cg.dequantize(given.operands[0], np.full((8, 1, 1), 0.02, "f4"), given.operands[2])
    if change == "a bias of another scale":
        sums = sums * np.float32(1.5)
    if change == "filters that are no constants":
        f = cg.dequantize(cg.Var((8, 8, 3, 3), "int8", name="f"), np.float32(0.01))
    made = cg.conv2d(given, f, 1, 1) + cg.reshape(cg.dequantize(bias, sums.astype("f4")), (-1, 1, 1))
    return x, net.bytes(made)


UNLIKE = (
    "a zero point of filters", "a scale for each channel of the images", "filters that are no constants",
)  # fmt: skip


@pytest.mark.parametrize("change", UNLIKE)
def test_what_no_rule_takes_stays(change):
    _, made = unlike(change)
    assert not any(isinstance(node.op, IntegerConv) for node in post_order(compute_integers((made,))))


def test_a_bias_of_another_scale_is_added_as_a_float():
    x, made = unlike("a bias of another scale")
    value = drawn(x)
    (conv,) = (node for node in post_order(compute_integers((made,))) if isinstance(node.op, IntegerConv))
    assert conv.op.result.dtype == "f4"
    got, (want,) = cg.compile(made, [x])(value), evaluate([made], {x: value})
    assert np.abs(np.rint(got / scale_of(made)) - np.rint(want / scale_of(made))).max() <= 1


def test_readers_with_other_zero_points_see_their_own_frames():
    x = cg.Var((1, 16, 8, 8), "uint8", name="x")
    net = Net()
    made = [net.conv(cg.dequantize(x, np.float32(0.02), zero), 16) for zero in (3, 250)]
    value = np.random.default_rng(0).integers(0, 256, x.shape).astype("u1")
    for got, want in zip(cg.compile(made, [x])(value), evaluate(compute_integers(tuple(made)), {x: value})):
        np.testing.assert_array_equal(got, want)


def test_a_value_that_is_seen_is_not_joined():
    net = Net()
    x = cg.Var((1, 8, 9, 9), name="x")
    given = net.bytes(x)
    left = net.bytes(net.conv(given, 8))
    outputs = [left, net.bytes(left + given)]
    value = drawn(x)
    roots = compute_integers(tuple(outputs))
    assert sum(isinstance(node.op, IntegerConv) for node in post_order(roots)) == 1
    for got, want in zip(cg.compile(outputs, [x])(value), evaluate(roots, {x: value})):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_sums_with_a_computed_zero_point_are_those_of_int64(target, kind):
    rng = np.random.default_rng(4)
    x, zero = cg.Var((2, 5, 19), kind, name="x"), cg.Var((), kind, name="zero")
    y = rng.integers(-128, 128, (19, 33)).astype("i1")
    made = cg.matmul(x.astype("int32") - zero.astype("int32"), cg.astype(cg.positive(y), "int32"))
    assert any(isinstance(node.op, IntegerMatmul) for node in post_order(compute_integers((made,))))
    low = np.iinfo(kind).min
    values = rng.integers(low, low + 256, x.shape).astype(kind), np.asarray(low + 200, kind)
    got = cg.compile(made, [x, zero], engine=CpuEngine(target, poison=True))(*values)
    np.testing.assert_array_equal(got, (values[0].astype("i8") - values[1].astype("i8")) @ y.astype("i8"))


def test_rows_of_several_matrices_meet_one_of_filters():
    net = Net()
    x = cg.Var((2, 7, 24), name="x")
    made = net.bytes(net.matmul(net.bytes(x), 20))
    (product,) = (node for node in post_order(compute_integers((made,))) if isinstance(node.op, IntegerMatmul))
    assert product.shape == (2, 7, 20)
    value = drawn(x)
    np.testing.assert_array_equal(cg.compile(made, [x])(value), evaluate(compute_integers((made,)), {x: value})[0])


POOLS = {
    "unequal axes": ((3, 2), (1, 2), (1, 0, 2, 1), False, False),
    "padding that counts": ((3, 2), (2, 1), (1, 0, 1, 1), False, True),
    "windows beyond the padding": ((3, 4), (2, 3), (1, 1, 1, 2), True, True),
    "side by side": (3, 1, 1, False, False),
    "a whole image": ((9, 33), 1, 0, False, False),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_average_pools_between_bytes_have_the_bits_of_floats(pool, kind):
    """Scales and zero points that differ, equal ones with their halves, and a bound after the pool."""
    low, rng = np.iinfo(kind).min, np.random.default_rng(6)
    x = cg.Var((2, 19, 9, 33), kind, name="x")
    for scale, zero, last, zero_after in ((0.021, 3, 0.013, 40), (0.1, 0, 0.1, 0), (0.1, 128, 0.1, 128)):
        floats = cg.dequantize(x, np.float32(scale), np.asarray(low + zero, kind))
        y = cg.minimum(cg.avg_pool2d(floats, *pool), 100 * last)
        y = cg.quantize(y, np.float32(last), np.asarray(low + zero_after, kind), kind)
        assert sum(isinstance(node.op, BytePool) for node in post_order(compute_integers((y,)))) == 1
        value = rng.integers(low, low + 256, x.shape).astype(kind)
        want = cg.compile(y, [x], passes=False)(value)
        for threads in (1, 2):
            got = cg.compile(y, [x], engine=CpuEngine("host", threads, poison=True))(value)
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(evaluate(compute_integers((y,)), {x: value})[0], want)


def test_average_pools_that_others_read_or_of_other_axes_stay_floats():
    def bytes_of(y):
        return cg.quantize(y, np.float32(0.1), 0, "uint8")

    x, row = cg.Var((1, 8, 9, 9), "uint8", name="x"), cg.Var((1, 8, 9), "uint8", name="row")
    both, along = (
        cg.avg_pool2d(cg.dequantize(x, np.float32(0.1), 0), 3),
        cg.avg_pool1d(cg.dequantize(row, np.float32(0.1), 0), 3),
    )
    far = cg.avg_pool2d(cg.dequantize(x, np.float32(1e30), 0), 3)
    for outputs in ((both, bytes_of(both)), (bytes_of(along),), (bytes_of(far),)):
        assert not any(isinstance(node.op, BytePool) for node in post_order(compute_integers(outputs)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_what_overflows_at_the_edge_of_a_frame_is_not_told():
    net = Net()
    x = cg.Var((1, 8, 9, 9), name="x")
    far = net.bytes(net.conv(net.bytes(x), 16, 1), 2.0, 200)
    made = net.conv(net.bytes(cg.sigmoid(far), 1 / 256, 0), 8)
    value = drawn(x)
    np.testing.assert_array_equal(cg.compile(made, [x])(value), evaluate(compute_integers((made,)), {x: value})[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_bands_of_rows_have_the_bits_of_whole_images(target, kind):
    x, outputs = layers(kind)
    value = drawn(x)
    whole = cg.compile(outputs, [x], engine=CpuEngine(target, 1))
    for pixels, threads in ((1, 1), (40, 2)):
        banded = cg.compile(outputs, [x], engine=CpuEngine(target, threads, poison=True), bands=pixels)
        inner = [op for node in banded.compiled.layout.steps for op in getattr(node.op, "inner", ())]
        assert {type(x.op) for x in inner} >= {BlockedIntegerConv} and banded.nbytes < whole.nbytes
        for got, want in zip(banded(value), whole(value), strict=True):
            np.testing.assert_array_equal(got, want)


def test_ops_of_several_results_beside_bytes_stay_what_they_are():
    x = cg.Var((4, 6), name="x")
    y = Net().bytes(x)
    values, places = cg.top_k(y, 3)
    found, count = cg.nonzero(y > 0, 24)
    given = np.random.default_rng(0).normal(size=x.shape).astype("f4")
    outputs = [values, places, found, count]
    for got, want in zip(cg.compile(outputs, [x])(given), evaluate(outputs, {x: given}), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (2, 3, 3), (3, 2, 2, 3), (2, 1, 3)])
def test_a_vector_along_an_axis_is_seen_along_that_axis_alone(shape):
    """Held in every shape that is broadcast to one: as few axes as it has, or with axes of length 1."""
    rng = np.random.default_rng(0)
    for rank in range(len(shape) + 1):
        for ones in itertools.product((False, True), repeat=rank):
            held = tuple(1 if one else n for one, n in zip(ones, shape[len(shape) - rank :]))
            value = rng.standard_normal(held).astype("float32")
            node = cg.broadcast_to(cg.Const(value), shape)
            for axis in range(len(shape)):
                vector = vector_of(node, axis)
                is_along = all(n == 1 or len(shape) - rank + i == axis for i, n in enumerate(held))
                assert (vector is not None) == is_along
                if vector is not None:
                    along = vector.reshape(-1, *[1] * (len(shape) - axis - 1))
                    np.testing.assert_array_equal(np.broadcast_to(along, shape), node.eval())


BOUNDED = {
    "reshape": lambda x: cg.relu(cg.reshape(x, (1, 32, 9, 4))),
    "transpose": lambda x: cg.clip(cg.transpose(x, (0, 2, 3, 1)), -0.5, 0.7),
    "largest pool": lambda x: cg.minimum(cg.max_pool2d(x, 3, 2, 1), 0.3),
    "pad": lambda x: cg.relu(cg.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)])),
    "mean pool": lambda x: cg.relu(cg.avg_pool2d(x, 2)),
    "mean": lambda x: cg.relu(cg.mean(x, (2, 3))),
    "joined": lambda x: cg.relu(cg.concat([x, x], 1)),
    "a broadcast term": lambda x: x + cg.mean(x, (2, 3), keepdims=True),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_behind_a_move_or_a_mean_are_kept(name, kind):
    """Bytes below and above the bounds are there."""
    net = Net(kind)
    x = cg.Var((1, 8, 12, 12), name="x")
    made = net.bytes(BOUNDED[name](net.bytes(x)))
    value = drawn(x)
    want = evaluate([made], {x: value})[0]
    plain = evaluate([net.bytes(BOUNDED[name](x))], {x: value})[0]
    assert want.shape == plain.shape and len(np.unique(want)) > 1
    np.testing.assert_array_equal(cg.compile(made, [x])(value), want)


@pytest.mark.parametrize("scale", [0.02, 1e-30, 1e30])
@pytest.mark.parametrize("kind", KINDS)
def test_a_residual_of_another_shape_or_of_any_scale_keeps_its_meaning(kind, scale):
    net = Net(kind)
    x, y, row = cg.Var((1, 8, 6, 6), name="x"), cg.Var((1, 16, 6, 6), name="y"), cg.Var((16, 1, 1), name="row")
    first = net.bytes(net.conv(net.bytes(x), 16), 0.05)
    whole = net.bytes(first + net.bytes(y, scale))
    spread = net.bytes(first + net.bytes(row, 0.03))
    values = {v: drawn(v) for v in (x, y, row)}
    for made in (whole, spread):
        with np.errstate(all="ignore"):
            want = evaluate([made], values)[0]
        np.testing.assert_array_equal(cg.compile(made, [x, y, row])(*values.values()), want)


def test_a_residual_of_a_product_of_matrices_keeps_its_meaning():
    net = Net()
    x, y = cg.Var((3, 16), name="x"), cg.Var((3, 7), name="y")
    f, scale = net.filters(16, 7, axis=1)
    given = net.bytes(x)
    product = net.bytes(given @ f + net.bias(given, scale), 0.05)
    made = net.bytes(product + net.bytes(y))
    values = {v: drawn(v) for v in (x, y)}
    np.testing.assert_array_equal(cg.compile(made, [x, y])(*values.values()), evaluate([made], values)[0])


def test_no_images_and_no_rows_give_results_without_elements():
    net = Net()
    x, y = cg.Var((0, 8, 6, 6), name="x"), cg.Var((0, 16), name="y")
    f, _ = net.filters(16, 7, axis=1)
    outputs = [net.bytes(net.conv(net.bytes(x), 16)), net.bytes(y) @ f, net.bytes(cg.mean(net.bytes(x), (2, 3)))]
    got = cg.compile(outputs, [x, y])(np.zeros(x.shape, "f4"), np.zeros(y.shape, "f4"))
    assert [g.shape for g in got] == [(0, 16, 6, 6), (0, 7), (0, 8)]
