"""Products on tile registers as ops: exact bytes, the bits of the formula, workspaces, operands of any strides."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.activation.calls import NONE, RELU
from cgraph.kernels.conv8.calls import Result
from cgraph.kernels.target import target_named
from cgraph.kernels.tile_products.calls import pack_columns, pack_tiles
from cgraph.ops.physical.integer import IntegerMatmul
from cgraph.ops.physical.tiled import TiledIntegerMatmul, TiledMatmul, suits_numbers
from tests.support.emulated import TilesEngine, emulate_tiles
from tests.support.kernels import TARGETS
from tests.support.ops import filled, kernel_result
from tests.support.tiles import bfloat16_bits, products
from tests.support.tolerance import assert_near

every_target = pytest.mark.parametrize("target", [emulate_tiles(target_named(name)) for name in TARGETS], ids=TARGETS)
RNG = np.random.default_rng(7)


@every_target
@pytest.mark.parametrize("dtype", ["u1", "i4", "f4"])
@pytest.mark.parametrize("k", [10, 64, 130])
def test_products_of_bytes_are_those_of_integers(k, dtype, target):
    x, y = RNG.integers(0, 256, (2, 9, k), "uint8"), RNG.integers(-128, 128, (k, 37), "int8")
    bias, scale = RNG.integers(-99, 99, 37, "int32"), np.full(37, 1 / 256, "f4")
    op = TiledIntegerMatmul(k, 37, 9, Result(dtype, zero=100))
    start = bias - 9 * y.sum(0, dtype="i4")
    xs = [x, pack_tiles(op.size, y), pack_columns(op.size, start), pack_columns(op.size, scale)]
    want = IntegerMatmul(9, op.result).meaning(x, y, bias, scale)
    node = apply(op, *(cg.Var(v.shape, v.dtype) for v in xs))
    np.testing.assert_array_equal(op.meaning(*xs), want)
    np.testing.assert_array_equal(kernel_result(node, xs, "reverse", target=target)[0], want)
    assert node.shape == (2, 9, 37) and op.multiply_adds(x.view()) == 18 * k * 37 and op.name == "matmul8"
    assert op.work(target, node.operands[0].spec).nbytes == (0 if k == 64 else 18 * op.size.padded)


def operands(shape, n, adds):
    x, y = RNG.standard_normal(shape).astype("f4"), RNG.standard_normal((shape[-1], n)).astype("f4")
    added = [RNG.standard_normal((*shape[:-1], n)).astype("f4")] if adds else []
    return x, y, added


def formula(op, x, y, added):
    """The bits of tile registers."""
    rows = np.zeros((int(np.prod(x.shape[:-1])), op.size.padded), "f4")
    rows[:, : op.k] = x.reshape(-1, op.k)
    columns = np.zeros((op.size.padded, op.n), "f4")
    columns[: op.k] = y
    total = products(bfloat16_bits(rows), bfloat16_bits(columns)).reshape(*x.shape[:-1], op.n)
    total = total + (added[0] if added else np.float32(0))
    return np.maximum(total, np.float32(op.activation.low))


def check(op, x, y, added, target, out=None):
    xs = [x, pack_tiles(op.size, bfloat16_bits(y)), *added]
    node = apply(op, *(cg.Var(v.shape, v.dtype) for v in xs))
    (got,) = kernel_result(node, xs, "reverse", out, target)
    np.testing.assert_array_equal(got, formula(op, x, y, added))
    assert_near(op.meaning(*xs), got, "float32 products")
    assert node.spec == Spec(got.shape, np.dtype("float32")) and op.name == "matmul"
    return node


@every_target
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("shape", [(4, 1), (21, 70), (2, 3, 5, 33)])
def test_products_of_numbers_have_the_formulas_bits(shape, adds, target):
    op = TiledMatmul(shape[-1], 37, adds, RELU if adds else NONE)
    node = check(op, *operands(shape, 37, adds), target)
    assert op.multiply_adds(node.operands[0].spec, None) == np.prod(shape) * 37


@pytest.mark.parametrize("threads", [1, 3])
def test_functions_of_bytes_have_the_bits_of_functions_without_tiles(threads):
    x, y = cg.Var((2, 19, 70), "uint8", "x"), RNG.integers(-128, 128, (70, 50), "int8")
    bias, scale = RNG.integers(-900, 900, 50, "int32"), RNG.random(50, "float32") / 256
    node = apply(IntegerMatmul(3, Result(zero=9)), x, *map(cg.Const, (y, bias, scale)))
    value = RNG.integers(0, 256, x.shape, "uint8")
    engine = TilesEngine(threads=threads, poison=True)
    tiled, plain = cg.compile(node, [x], engine=engine), cg.compile(node, [x], engine=CpuEngine(tiles=False))
    kinds = [{type(n.op) for n in f.compiled.layout.views} for f in (tiled, plain)]
    assert [TiledIntegerMatmul in kind for kind in kinds] == [True, False]
    assert tiled(value).tolist() == plain(value).tolist()


@every_target
def test_operands_and_results_have_any_strides(target):
    op = TiledMatmul(40, 33, True)
    x, y, (added,) = operands((2, 6, 40), 33, True)
    turned = np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
    check(op, turned, y, [np.broadcast_to(added[:1, :1], added.shape)], target)
    check(op, x[::-1], y, [np.ascontiguousarray(added.swapaxes(1, 2)).swapaxes(1, 2)], target)  # copied first
    check(op, x, y, [np.broadcast_to(added[..., :1], added.shape)], target)
    wide = filled(Spec((2, 8, 50), np.dtype("f4")))
    before = wide.copy()
    check(op, x, y, [added], target, wide[:, 1:7, 5:38])
    before[:, 1:7, 5:38] = wide[:, 1:7, 5:38]
    np.testing.assert_array_equal(before.view("u4"), wide.view("u4"))


@pytest.mark.parametrize(("rows", "k", "suits"), [(4, 16, True), (3, 16, False), (4, 15, False), (900, 15, False)])
def test_products_of_few_or_short_rows_of_floats_use_no_tiles(rows, k, suits):
    assert suits_numbers(rows, k) is suits
