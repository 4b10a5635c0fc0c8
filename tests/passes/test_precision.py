"""Convolutions and products of bfloat16 numbers: within the stated error of the floats, on every target."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.errors import GraphError
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.leaf import ConstOp
from cgraph.ops.physical.conv import BlockedConv
from cgraph.ops.physical.matmul import PackedMatmul
from cgraph.ops.physical.pairs import PairedMatmul, pack_pairs, round_to_bfloat16, unpack_pairs
from cgraph.ops.physical.rounded import RoundedMatmul
from cgraph.ops.physical.tiled import TiledMatmul
from cgraph.passes import rewrite_graph
from cgraph.precision.choose import ELSEWHERE
from cgraph.record import replace
from tests.support.emulated import PairsEngine, TilesEngine, with_pairs
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_near

# what rounding both factors and adding up in float32 may cost, of the sum of the products' magnitudes (docs/half.md)
FACTORS = 2.0**-7 + 2.0**-16
ADDING = 2.0**-23  # for each number of a sum, which is rounded once for each or for two of them
SMALLEST = 2.0**-126  # numbers below it may be taken for 0


def compiled(node, inputs, target="host", threads=1, **options):
    engine = PairsEngine(target, threads, poison=True)
    return cg.compile(node, inputs, engine=engine, precision="bf16", **options)


def ops_of(function):
    inner = [x for node in function.compiled.layout.steps for x in getattr(node.op, "inner", ())]
    return [node.op for node in function.compiled.layout.steps] + [x.op for x in inner]


def check_sums(got, x, y, product, depth):
    """`got` is product(x, y) of the rounded factors to float32's error, and of the factors to the stated one."""
    for left, right, of_factors in ((round_to_bfloat16(x), round_to_bfloat16(y), 0.0), (x, y, FACTORS)):
        want = product(left.astype("f8"), right.astype("f8"))
        most = product(np.abs(left).astype("f8"), np.abs(right).astype("f8"))
        lost = SMALLEST * (
            depth + product(np.abs(left), np.ones_like(right)) + product(np.ones_like(left), np.abs(right))
        )
        assert (np.abs(got - want) <= most * (of_factors + ADDING * depth) + lost).all()


def numbers(rng, shape, spread=1.0):
    """Numbers of many magnitudes."""
    return (rng.standard_normal(shape) * np.exp2(rng.uniform(-spread, spread, shape))).astype("f4")


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 64, 33), (3, 7, 70), (5, 129, 16), (200, 65, 96), (64, 300, 130)])
@pytest.mark.parametrize("target", TARGETS)
def test_products_are_those_of_rounded_factors(target, shape):
    m, k, n = shape
    rng = np.random.default_rng(m)
    for spread in (1.0, 60.0):
        x, y, value = cg.Var((m, k), name="x"), numbers(rng, (k, n), spread), numbers(rng, (m, k), spread)
        function = compiled(x @ y, [x], target)
        assert any(isinstance(op, PairedMatmul) for op in ops_of(function))
        check_sums(function(value), value, y, np.matmul, k)


CONVS = {  # channels, filters, window, stride, dilation, groups
    "points": (40, 33, 1, 1, 1, 1),
    "3x3": (24, 40, 3, 1, 1, 1),
    "3x3 with stride": (16, 16, 3, 2, 1, 1),
    "5x5, dilated": (17, 20, 5, 1, 2, 1),
    "groups": (48, 32, 3, 1, 1, 2),
}


@pytest.mark.parametrize("case", CONVS)
@pytest.mark.parametrize("target", TARGETS)
def test_convolutions_are_those_of_rounded_factors(target, case):
    c, count, window, stride, dilation, groups = CONVS[case]
    rng = np.random.default_rng(1)
    x, f = cg.Var((2, c, 13, 11), name="x"), numbers(rng, (count, c // groups, window, window))
    value, given = numbers(rng, x.shape), cg.Var(f.shape, name="f")
    how = stride, window // 2, dilation, groups
    exact = cg.conv2d(x.astype("float64"), given.astype("float64"), *how)
    function = compiled(cg.conv2d(x, f, *how), [x], target)
    assert any(isinstance(op, BlockedConv) and op.pairs for op in ops_of(function))
    wide = lambda a, b: evaluate([exact], {x: np.asarray(a), given: np.asarray(b)})[0]  # noqa: E731
    check_sums(function(value), value, f, wide, c // groups * window**2)


def network():
    """A network of what is rounded and of what is not: few channels, depthwise filters, products of computed values."""
    rng = np.random.default_rng(2)
    x = cg.Var((2, 3, 24, 20), name="x")

    def layer(x, count, window=3, groups=1):
        f = rng.standard_normal((count, x.shape[1] // groups, window, window)).astype("f4") / (
            window * x.shape[1] ** 0.5
        )
        return cg.conv2d(x, f, 1, window // 2, 1, groups) + rng.standard_normal((count, 1, 1)).astype("f4")

    first = cg.relu(layer(x, 24))
    deep = cg.relu(layer(first, 24, 3, 24))
    added = cg.relu(layer(deep, 24) + first)
    tokens = cg.reshape(cg.max_pool2d(added, 2, 2), (2, 24, -1))
    scores = cg.swapaxes(tokens, 1, 2) @ tokens
    return x, scores @ rng.standard_normal((scores.shape[-1], 10)).astype("f4") / 100


@pytest.mark.parametrize("target", TARGETS)
def test_a_network_has_one_result_however_it_is_run(target):
    x, y = network()
    value = np.random.default_rng(3).standard_normal(x.shape).astype("f4")
    whole = compiled(y, [x], target)
    want, floats = whole(value), cg.compile(y, [x])(value)
    assert (want != floats).any() and np.abs(want - floats).max() <= 0.02 * np.abs(floats).max()
    for options in ({"threads": 2}, {"bands": 30}, {"bands": 1, "threads": 2}):
        np.testing.assert_array_equal(compiled(y, [x], target, **options)(value), want)
    physical = to_physical(rewrite_graph((y,)), with_pairs(target_named(target)), LoweringOptions(pairs=True))
    meant = evaluate(physical, {x: value})[0]
    assert_near(want, meant, "half precision by its largest")


@pytest.mark.parametrize("target", TARGETS)
def test_products_on_tiles_have_one_result_however_they_are_run(target):
    rng = np.random.default_rng(5)
    x, value = cg.Var((33, 70), name="x"), numbers(rng, (33, 70))
    first, second, bias = numbers(rng, (70, 48)), numbers(rng, (48, 40)), numbers(rng, (40,))
    y = cg.relu(x @ first) @ second + bias
    function = cg.compile(y, [x], engine=TilesEngine(target, 1, poison=True), precision="bf16")
    assert [type(op) for op in ops_of(function)] == [TiledMatmul] * 2
    want = function(value)
    inner = np.maximum(value.astype("f8") @ first, 0)
    most = (np.abs(value).astype("f8") @ np.abs(first)) @ np.abs(second)
    assert (np.abs(want - (inner @ second + bias)) <= 3 * FACTORS * most).all()
    for threads in (2, 3):
        engine = TilesEngine(target, threads, poison=True)
        np.testing.assert_array_equal(cg.compile(y, [x], engine=engine, precision="bf16")(value), want)


ENGINES = {"pairs": PairsEngine, "tiles": TilesEngine}
every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


@every_engine
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("target", TARGETS)
def test_products_of_computed_values_and_their_gradients_are_those_of_rounded_factors(target, batch, engine):
    """The three products of a layer whose weights change."""
    m, k, n = 70, 131, 80
    rng = np.random.default_rng(m)
    x, w, t = (
        cg.Var(shape, name=name) for name, shape in (("x", (*batch, m, k)), ("w", (k, n)), ("t", (*batch, m, n)))
    )
    y = x @ w
    outputs = [y, *cg.gradient((y * t).sum(), [x, w])]
    function = cg.compile(outputs, [x, w, t], engine=engine(target, 2, poison=True), precision="bf16")
    assert [type(op) for op in ops_of(function)].count(RoundedMatmul) == 3
    assert all(layer.computed == "bf16" for layer in function.precision.layers)
    for spread in (1.0, 40.0):
        a, b, g = (numbers(rng, v.shape, spread) for v in (x, w, t))
        forward, for_x, for_w = function(a, b, g)
        tall = [v.reshape(-1, v.shape[-1]) for v in (a, g)]
        check_sums(forward, a, b, np.matmul, k)
        check_sums(for_x, g, b.T, np.matmul, n)
        check_sums(for_w, tall[0].T, tall[1], np.matmul, len(tall[0]))


GRADIENTS = {  # channels, filters, window, stride, pad, dilation
    "3x3": (16, 24, 3, 1, 1, 1),
    "3x3 without pad": (24, 16, 3, 1, 0, 1),
    "3x3 with stride": (16, 16, 3, 2, 1, 1),
    "3x3, dilated": (17, 20, 3, 1, 2, 2),
    "points": (49, 60, 1, 1, 0, 1),
    "5x5 with stride": (16, 9, 5, 2, 2, 1),
}


@every_engine
@pytest.mark.parametrize("case", GRADIENTS)
@pytest.mark.parametrize("target", TARGETS)
def test_convolutions_and_both_gradients_are_those_of_rounded_factors(target, case, engine):
    c, count, window, *how = GRADIENTS[case]
    rng = np.random.default_rng(2)
    x, f = cg.Var((3, c, 11, 9), name="x"), cg.Var((count, c, window, window), name="f")
    y = cg.conv2d(x, f, *how)
    t = cg.Var(y.shape, name="t")
    outputs = [y, *cg.gradient((y * t).sum(), [x, f])]
    function = cg.compile(outputs, [x, f, t], engine=engine(target, 2, poison=True), precision="bf16")
    a, b, g = (numbers(rng, v.shape) for v in (x, f, t))
    values = dict(zip(("x", "f", "t"), (a, b, g)))
    wide = {name: cg.Var(v.shape, "float64", name) for name, v in values.items()}
    exact = cg.conv2d(wide["x"], wide["f"], *how)
    exact = [exact, *cg.gradient((exact * wide["t"]).sum(), [wide["x"], wide["f"]])]

    def meaning(i, left, right):
        def product(p, q):
            given = {wide[name]: np.zeros(v.shape) for name, v in values.items()}
            return evaluate([exact[i]], given | {wide[left]: np.asarray(p, "f8"), wide[right]: np.asarray(q, "f8")})[0]

        return product

    rounded = [layer.computed == "bf16" for layer in function.precision.layers]
    assert rounded == [True] * 3
    sides, depths = (("x", "f"), ("t", "f"), ("x", "t")), (c * window**2, count * window**2, t.size // count)
    for i, (got, (left, right), depth, is_rounded) in enumerate(zip(function(a, b, g), sides, depths, rounded)):
        if is_rounded:
            check_sums(got, values[left], values[right], meaning(i, left, right), depth)


@every_engine
def test_computed_filters_have_the_bits_of_constant_ones(engine):
    """And gradients for images on tiles those of convolutions by reversed filters."""
    rng = np.random.default_rng(3)
    x, f = cg.Var((2, 24, 10, 9), name="x"), cg.Var((40, 24, 3, 3), name="f")
    value, filters = numbers(rng, x.shape), numbers(rng, f.shape)
    options = {"engine": engine("host", 2, poison=True), "precision": "bf16"}
    want = cg.compile(cg.conv2d(x, filters, 1, 1), [x], **options)(value)
    np.testing.assert_array_equal(cg.compile(cg.conv2d(x, f, 1, 1), [x, f], **options)(value, filters), want)
    g = cg.Var(want.shape, name="g")
    (for_x,) = cg.gradient((cg.conv2d(x, f, 1, 1) * g).sum(), [x])
    got = cg.compile(for_x, [f, g], **options)(filters, want)
    turned = np.ascontiguousarray(filters.swapaxes(0, 1)[:, :, ::-1, ::-1])
    by_constants = cg.compile(cg.conv2d(g, turned, 1, 1), [g], **options)(want)
    if engine is TilesEngine:
        np.testing.assert_array_equal(got, by_constants)
    assert_near(got, by_constants, "half precision by its largest")


@every_engine
def test_small_products_of_computed_values_stay_float32(engine):
    x, w = cg.Var((30, 64), name="x"), cg.Var((64, 64), name="w")
    rng = np.random.default_rng(4)
    values = numbers(rng, x.shape), numbers(rng, w.shape)
    function = cg.compile(x @ w, [x, w], engine=engine(), precision="bf16")
    np.testing.assert_array_equal(function(*values), cg.compile(x @ w, [x, w])(*values))
    (layer,) = function.precision.layers
    assert (layer.name, layer.computed, layer.reason) == ("w", "float32", ELSEWHERE)


@every_engine
def test_a_choice_of_layers_repeats_itself_and_leaves_the_others_in_float32(engine):
    x, v, w = (cg.Var((80, 80), name=name) for name in "xvw")
    y = cg.tanh(x @ v) @ w
    rng = np.random.default_rng(5)
    values = [numbers(rng, x.shape) for _ in range(3)]

    def run(**options):
        return cg.compile(y, [x, v, w], engine=engine(), **options)

    whole = run(precision="bf16")
    assert [layer.name for layer in whole.precision.layers] == ["v", "w"]
    np.testing.assert_array_equal(run(precision=whole.precision)(*values), whole(*values))
    layers = tuple(replace(x, computed="float32" if x.name == "v" else "bf16") for x in whole.precision.layers)
    part, want = run(precision=cg.MixedPrecision(layers)), cg.tanh(x @ v)
    assert part.precision.bf16_layers == {"w"}
    inner = cg.compile(want, [x, v])(*values[:2])
    check_sums(part(*values), inner, values[2], np.matmul, 80)


def test_few_rows_read_rounded_panels_and_compute_in_float32():
    rng = np.random.default_rng(6)
    x, y, value = cg.Var((2, 64), name="x"), numbers(rng, (64, 48)), numbers(rng, (2, 64))
    function = cg.compile(x @ y, [x], engine=TilesEngine(), precision="bf16")
    (op,) = ops_of(function)
    assert isinstance(op, PackedMatmul)
    sizes = [node.nbytes for node in function.compiled.layout.views if isinstance(node.op, ConstOp)]
    assert sizes and sizes[0] <= 2 * 64 * 64  # panels may be wider than the matrix
    assert_near(function(value), value @ round_to_bfloat16(y), "float32 products")


def test_weights_take_half_the_bytes():
    x, y = cg.Var((4, 512), name="x"), np.random.default_rng(0).standard_normal((512, 512)).astype("f4")

    def nbytes(**options):
        layout = cg.compile(x @ y, [x], engine=PairsEngine(), **options).compiled.layout
        return sum(node.nbytes for node in layout.views if isinstance(node.op, ConstOp))

    assert nbytes(precision="bf16") == nbytes() / 2
    assert nbytes(precision="bf16", weights_dtype="bfloat16") == nbytes() / 2


def test_numbers_that_are_none_stay_so():
    x, y = cg.Var((6, 32), name="x"), np.ones((32, 16), "f4")
    value = np.ones((6, 32), "f4")
    value[1, 3], value[2, 4], value[3, 5:7] = np.nan, np.inf, (np.inf, -np.inf)
    got = compiled(x @ y, [x])(value)
    np.testing.assert_array_equal(got[[0, 4, 5]], np.float32(32))
    assert np.isnan(got[[1, 3]]).all() and (got[2] == np.inf).all()


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (2, 6, 4), (2, 3, 7, 5)])
def test_pairs_are_taken_apart_again(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    there = unpack_pairs(pack_pairs(x))
    np.testing.assert_array_equal(there[..., : shape[-2], :], round_to_bfloat16(x))
    assert not there[..., shape[-2] :, :].any()


@pytest.mark.parametrize("target", TARGETS)
def test_without_a_faster_product_bf16_is_float32_with_its_bits(target, monkeypatch):
    """Winograd's convolutions included."""
    plain = replace(target_named(target), bf16="", tiles="")
    monkeypatch.setattr(CpuEngine, "kernel_target", property(lambda _: plain))
    x, y = network()
    value = np.random.default_rng(4).standard_normal(x.shape).astype("f4")
    floats, rounded = (cg.compile(y, [x], engine=CpuEngine(target), precision=p) for p in (None, "bf16"))
    np.testing.assert_array_equal(rounded(value), floats(value))
    assert ops_of(rounded) == ops_of(floats) and rounded.nbytes == floats.nbytes


def test_unknown_precisions_and_devices_are_refused():
    x = cg.Var((2, 2), name="x")
    for wrong in ("bf8", "float32", 16, ""):
        with pytest.raises(GraphError, match="precision takes bf16"):
            cg.compile(x + 1, [x], precision=wrong)
    with pytest.raises(GraphError, match="does not support precision="):
        cg.compile(x + 1, [x], engine="cuda-sim", precision="bf16")
