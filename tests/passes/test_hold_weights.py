"""Weights in storage dtypes: fewer bytes, and the bits of what is computed with the rounded ones in float32."""

from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.dtypes.convert import convert, is_storage
from cgraph.dtypes.storage import BY_NAME
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError, GraphError
from cgraph.ir.spec import dtype_of
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.leaf import ConstOp
from cgraph.passes import rewrite_graph
from cgraph.passes.hold_weights import hold_weights
from cgraph.passes.widen_late import widen_late
from tests.support.kernels import TARGETS
from tests.support.rewrites import assert_left, ops_of
from tests.support.tolerance import assert_close

DTYPES = tuple(BY_NAME)
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    return convert(convert(x, dtype_of(dtype)), np.dtype("float32"))


def held_nbytes(function: cg.Function) -> tuple[int, int]:
    """Bytes of constants in storage dtypes, and of large ones that are not."""
    order = post_order(function.outputs)
    constants = [x for x in order if isinstance(x.op, ConstOp) and x.nbytes > 1 << 13]
    half = sum(x.nbytes for x in constants if is_storage(x.dtype))
    return half, sum(x.nbytes for x in constants) - half


PRODUCTS = {  # rows, depth, columns, and whether the matrix is turned
    "one row": (1, 300, 517, False),
    "one row of a turned matrix": (1, 300, 517, True),
    "several portions": (3, 2100, 250, False),
    "sixteen rows": (16, 900, 130, True),
    "many rows": (50, 513, 257, False),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_have_the_bits_of_rounded_floats(name, dtype, target):
    m, k, n, turned = PRODUCTS[name]
    w, b, given = normal(n, k) if turned else normal(k, n), normal(n), normal(m, k)

    def function(weights: np.ndarray, rows: int, threads: int, **options) -> cg.Function:
        x = cg.Var((rows, k))
        y = cg.relu(x @ (cg.Const(weights).T if turned else cg.Const(weights)) + cg.Const(b))
        return cg.compile(y, [x], engine=CpuEngine(target, threads, poison=True), **options)

    held = function(w, m, 2, weights_dtype=dtype)
    half, others = held_nbytes(held)
    stored = w.size * dtype_of(dtype).itemsize
    assert others == 0 and stored <= half <= stored * 1.3
    # floats of one row are read as they lie, and summed in another order than panels: so two rows, of which one counts
    rows = max(m, 2)
    want = function(rounded(w, dtype), rows, 1)(np.resize(given, (rows, k)))[:m]
    assert held(given).tobytes() == want.tobytes()


LAYERS = {  # channels, filters, size of a filter, pixels, groups
    "1x1": (130, 140, 1, 9, 1),
    "3x3 that Winograd would take": (64, 64, 3, 40, 1),
    "of plain images": (3, 128, 7, 30, 1),
    "groups": (128, 128, 3, 9, 2),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LAYERS)
def test_convolutions_have_the_bits_of_rounded_floats(name, dtype, target):
    c, k, s, h, groups = LAYERS[name]
    filters, factors, given = normal(k, c // groups, s, s), normal(k, 1, 1), normal(1, c, h, h)
    x = cg.Var((1, c, h, h))

    def layer(f: np.ndarray) -> cg.Node:
        return cg.conv2d(x, cg.Const(f), pad=s // 2, groups=groups)

    def compiled(y: cg.Node, threads: int, **options) -> cg.Function:
        return cg.compile(y, [x], engine=CpuEngine(target, threads, poison=True), **options)

    plain, scaled = compiled(layer(filters), 2, weights_dtype=dtype), layer(filters) * cg.Const(factors)
    assert held_nbytes(plain)[1] == 0 < held_nbytes(plain)[0]
    for function, values in (
        (plain, filters),
        (compiled(scaled, 2, weights_dtype=dtype), filters * factors[..., None]),
    ):
        want = compiled(layer(rounded(values, dtype)), 1, winograd=False)
        assert function(given).tobytes() == want(given).tobytes()


VIEWS = {  # of a matrix [160, 120]
    "none": lambda w: w,
    "turned": cg.transpose,
    "broadcast": lambda w: cg.broadcast_to(w, (2, 160, 120)),
    "turned and broadcast": lambda w: cg.broadcast_to(cg.transpose(w), (2, 120, 160)),
    "broadcast and turned": lambda w: cg.transpose(cg.broadcast_to(w, (2, 160, 120)), (0, 2, 1)),
    "of three views": lambda w: cg.broadcast_to(
        cg.transpose(cg.broadcast_to(w, (2, 160, 120)), (2, 0, 1)), (3, 120, 2, 160)
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_a_matrix_is_that_of_the_rounded_one(name):
    weights = normal(160, 120)
    (right, same) = (VIEWS[name](cg.Const(w)) for w in (weights, rounded(weights, "bfloat16")))
    x = cg.Var((5, right.shape[-2]), name="x")
    (held,) = hold_weights((x @ right,), dtype_of("bfloat16"))
    assert sum(n.nbytes for n in post_order([held]) if isinstance(n.op, ConstOp)) == 2 * weights.size
    values = {x: normal(*x.shape)}
    np.testing.assert_array_equal(*evaluate([held, x @ same], values))


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_of_a_storage_dtype_keep_it(dtype):
    w, f = convert(normal(300, 200), dtype_of(dtype)), convert(normal(128, 64, 3, 3), dtype_of(dtype))
    x, images = cg.Var((4, 300)), cg.Var((1, 64, 20, 20))
    function = cg.compile([x @ cg.Const(w), cg.conv2d(images, cg.Const(f).astype("float32"), pad=1)], [x, images])
    assert held_nbytes(function)[1] == 0 < held_nbytes(function)[0]
    wide = [cg.Const(convert(a, np.dtype("float32"))) for a in (w, f)]
    want = cg.compile([x @ wide[0], cg.conv2d(images, wide[1], pad=1)], [x, images], winograd=False)
    given = normal(4, 300), normal(1, 64, 20, 20)
    for got, expected in zip(function(*given), want(*given)):
        assert got.tobytes() == expected.tobytes()


def test_a_norm_behind_filters_that_come_in_half_precision_is_not_rounded_again():
    f, factors, x = convert(normal(128, 64, 3, 3), dtype_of("float16")), normal(128, 1, 1), cg.Var((1, 64, 8, 8))
    y = cg.conv2d(x, cg.Const(f).astype("float32")) * cg.Const(factors)
    want = cg.conv2d(x, cg.Const(f.astype("float32"))) * cg.Const(factors)
    given = normal(1, 64, 8, 8)
    assert_close(cg.compile(y, [x])(given), cg.compile(want, [x], engine="reference")(given))


def test_the_lowered_graph_means_what_its_kernels_compute():
    x, images = cg.Var((4, 300)), cg.Var((1, 64, 12, 12))
    logical = (x @ cg.Const(normal(300, 200)), cg.conv2d(images, cg.Const(normal(128, 64, 3, 3)), pad=1, groups=1))
    for dtype in DTYPES:
        held = hold_weights(rewrite_graph(logical), dtype_of(dtype))
        physical = to_physical(held, target_named("host"), LoweringOptions())
        given = {x: normal(4, 300), images: normal(1, 64, 12, 12)}
        for got, want in zip(evaluate(physical, given), evaluate(held, given)):
            assert_close(got, want)


def test_rows_of_a_table_are_taken_in_half_precision():
    table, places = normal(500, 60), cg.Var((3,), "int64")
    node = cg.take(cg.Const(table), places, axis=0)
    (held,) = hold_weights((node,), dtype_of("bfloat16"))
    assert ops_of((held,)) == {"take": 1, "cast": 1} and is_storage(held.operands[0].dtype)
    got = cg.compile(node, [places], weights_dtype="bfloat16")(np.array([499, 0, 7]))
    assert got.tobytes() == rounded(table[[499, 0, 7]], "bfloat16").tobytes()


LEFT = {
    "small ones": lambda: cg.Var((3, 64)) @ cg.Const(normal(64, 64)),
    "what is added": lambda: cg.Var((200, 300)) + cg.Const(normal(200, 300)),
    "float64": lambda: cg.Var((3, 200), "float64") @ cg.Const(normal(200, 200).astype("float64")),
    "a left side": lambda: cg.Const(normal(200, 200)) @ cg.Var((200, 3)),
    "Vars": lambda: cg.Var((3, 200)) @ cg.Var((200, 200)),
    "depthwise filters": lambda: cg.conv2d(cg.Var((1, 2000, 9, 9)), cg.Const(normal(2000, 1, 3, 3)), groups=2000),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_as_they_are(name):
    assert_left(lambda roots: hold_weights(roots, dtype_of("float16")), *rewrite_graph((LEFT[name](),)))


def test_a_constant_with_several_readers_is_held_once():
    w, x = cg.Const(normal(300, 200)), cg.Var((5, 300))
    roots = hold_weights((x @ w, cg.tanh(x) @ w), dtype_of("bfloat16"))
    assert ops_of(roots) == {"matmul": 2, "cast": 1, "tanh": 1}


def test_moves_come_before_widening():
    x = cg.Var((6, 8), "float16", "x")
    wide = x.astype("float32")
    roots = (cg.take(wide, cg.Const(np.array([1, 2])), axis=0)[:, ::2] * 2, wide.T, cg.sum(wide.reshape(48)))
    found, given = widen_late(roots), {x: normal(6, 8).astype("float16")}
    for got, want in zip(evaluate(found, given), evaluate(roots, given)):
        np.testing.assert_array_equal(got, want)
    assert_left(widen_late, *found)
    assert [n.op.name for n in post_order(found) if n.dtype == np.float16] == ["var", "take", "slice", "reshape"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_from_disk_and_saved_functions_take_the_bytes_of_the_dtype(dtype, tmp_path):
    x, w, given = cg.Var((8, 600)), normal(600, 700), normal(8, 600)
    stored = w.size * dtype_of(dtype).itemsize
    y = cg.tanh(x @ cg.Const(w)) @ cg.Const(w.T.copy())
    whole = cg.compile(y, [x], weights_dtype=dtype)
    path = str(tmp_path / "weights")
    weights = cg.StreamedWeights(path, slice=1 << 17)
    streamed = cg.compile(y, [x], weights_dtype=dtype, weights=weights, budget=1 << 20)
    assert streamed(given).tobytes() == whole(given).tobytes()
    assert Path(path).stat().st_size < 2.2 * stored
    whole.save(tmp_path / "saved")
    loaded = cg.load(tmp_path / "saved", in_memory=True)
    assert loaded(given).tobytes() == whole(given).tobytes()
    assert sum(f.stat().st_size for f in (tmp_path / "saved").iterdir()) < 2.2 * stored


def test_a_decoder_generates_with_rounded_weights():
    model = nn.models.gpt(3, symbols=300, length=48, features=128, heads=4, layers=2)
    generator = nn.Generator(model, 2, weights_dtype="bfloat16")
    assert held_nbytes(generator.step)[0] >= 2 * 2 * 8 * 128 * 128
    tokens = generator([[7, 1, 30], [5] * 34], 8)
    for parameter in model.variables().values():
        if parameter.nbytes > 1 << 16:
            parameter.assign(rounded(parameter.value, "bfloat16"))
    assert tokens == nn.Generator(model, 2)([[7, 1, 30], [5] * 34], 8)


def test_a_simulated_gpu_computes_with_the_rounded_weights():
    x, w, f, images = cg.Var((3, 200)), normal(200, 100), normal(32, 64, 3, 3), cg.Var((1, 64, 4, 4))
    nodes = [x @ cg.Const(w), cg.conv2d(images, cg.Const(f))]
    given = normal(3, 200), normal(1, 64, 4, 4)
    found = cg.compile(nodes, [x, images], engine="cuda-sim", weights_dtype="bfloat16")(*given)
    want = [x @ cg.Const(rounded(w, "bfloat16")), cg.conv2d(images, cg.Const(rounded(f, "bfloat16")))]
    for got, expected in zip(found, cg.compile(want, [x, images], engine="reference")(*given)):
        assert_close(np.asarray(got), expected)


@pytest.mark.parametrize("wrong", ["float32", "int8"])
def test_other_dtypes_are_refused(wrong):
    with pytest.raises(GraphError, match="weights_dtype takes float16 or "):
        cg.compile(cg.Var((2,)) + 1, weights_dtype=wrong)
    with pytest.raises(DTypeError, match="is not a dtype"):
        cg.compile(cg.Var((2,)) + 1, weights_dtype="brain")
