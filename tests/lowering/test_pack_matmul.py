"""Packed constants of products: the same values, panels shared, and left where panels would not help."""

from itertools import permutations

import numpy as np
import pytest

import cgraph as cg
from cgraph.dtypes.storage import BFLOAT16
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import host_target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pack_matmul import CACHED, pack_matmul
from cgraph.ops.linear import Matmul
from cgraph.ops.loop import Loop
from cgraph.ops.physical.matmul import MatmulEpilogue, PackedMatmul
from cgraph.ops.physical.pairs import PairedMatmul
from cgraph.ops.physical.tiled import TiledMatmul
from cgraph.passes.fold_constants import fold_constants
from cgraph.passes.fuse_matmul import fuse_matmul
from cgraph.record import replace
from tests.support.emulated import emulate_tiles, with_pairs
from tests.support.rewrites import assert_left
from tests.support.tolerance import assert_close, assert_near

X, Z = (cg.Var((4, 4), "float64", name) for name in "xz")
WHOLE = cg.Var((4, 4), "int32", "n")
CONSTANT = cg.Const(np.random.default_rng(3).normal(size=(4, 4)))
BATCHES = cg.Const(np.random.default_rng(3).normal(size=(3, 4, 4)))
MANY = cg.Var((3, 4, 4), "float64", "many")
UNPACKED = {
    "a Var": X @ Z,
    "the left side": CONSTANT @ X,
    "one row and one column": X[:1] @ CONSTANT.op.array[:, :1],
    "constants that differ by batch": MANY @ BATCHES,
    "whole numbers": WHOLE @ np.ones((4, 4), "int32"),
    "no rows": X[:0] @ CONSTANT,
    "no columns": X @ CONSTANT.op.array[:, :0],
    "nothing to add up": X[:, :0] @ CONSTANT.op.array[:0],
}
PACKED = {
    "one row": X[:1] @ CONSTANT,
    "one row and few columns in one piece each": X[:1] @ CONSTANT.T,
    "one row, joined": fuse_matmul((cg.relu(X[:1] @ CONSTANT),))[0],
    "two rows": X[:2] @ CONSTANT,
    "a turned constant": X @ CONSTANT.T,
    "one constant for all batches": MANY @ CONSTANT,
    "one row in each batch": MANY[:, :1] @ CONSTANT,
    "a sum and an activation": fuse_matmul((cg.relu(X @ CONSTANT + Z),))[0],
}


@pytest.mark.parametrize("name", UNPACKED)
def test_not_packed(name):
    assert_left(lambda outputs: pack_matmul(outputs, host_target()), UNPACKED[name])


def test_constants_in_the_bodies_of_loops_are_packed_once():
    rows = cg.Var((9, 4, 4), "float64", "rows")
    root, _ = cg.scan(lambda state, row: (cg.tanh(state @ CONSTANT + row), state), X, rows)
    (packed,) = pack_matmul((root,), host_target())
    (loop,) = (node for node in post_order([packed]) if isinstance(node.op, Loop))
    assert [type(x.op) for x in loop.op.body.order if x.op.name == "matmul"] == [PackedMatmul]
    values = {x: np.random.default_rng(5).normal(size=x.shape) for x in (X, rows)}
    for got, want in zip(evaluate([packed], values), evaluate([root], values)):
        assert_close(got, want)


@pytest.mark.parametrize("name", PACKED)
def test_packed(name):
    def rewrite(outputs):
        return pack_matmul(outputs, host_target())

    assert isinstance(rewrite((PACKED[name],))[0].op, PackedMatmul)


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_large_constant_that_is_transposed_for_a_product_is_not_copied_before_it_is_packed(rows, batch):
    rng = np.random.default_rng(0)
    x = cg.Var((*batch, rows, 150)).assign(rng.standard_normal((*batch, rows, 150), np.float32))
    found = x @ cg.Const(rng.standard_normal((200, 150), np.float32)).T
    assert fold_constants((found,)) == (found,)
    assert_near(cg.compile(found)(), evaluate([found])[0], "normal products", 1)
    assert isinstance(steps(found)[0], PackedMatmul)


@pytest.mark.parametrize("axes", list(permutations(range(3))))
def test_a_constant_stack_of_one_matrix_is_packed_in_the_order_of_its_axes(axes):
    """However the axes are turned: the last two are those of the matrix."""
    stored = np.random.default_rng(3).normal(size=tuple((1, 4, 3)[axes.index(a)] for a in range(3)))
    product = cg.Var((2, 5, 4), "float64").assign(np.ones((2, 5, 4))) @ cg.transpose(cg.Const(stored), axes)
    (packed,) = pack_matmul((product,), host_target())
    assert isinstance(packed.op, PackedMatmul)
    assert_close(evaluate([packed])[0], evaluate([product])[0])


def steps(node):
    return [n.op for n in cg.compile(node).compiled.layout.steps]


def test_one_row_reads_panels_but_of_columns_that_lie_in_one_piece_and_exceed_a_cache():
    x, w = cg.Var((1, 1024), name="x"), np.ones((1024, 20), "float32")
    (op,) = steps(x @ cg.Const(w) + np.ones(20, "float32"))
    assert isinstance(op, PackedMatmul)
    most = CACHED // (1024 * 4)
    for columns, kind in ((most, PackedMatmul), (most + 1, MatmulEpilogue)):
        (op,) = steps(x @ cg.Const(np.ones((columns, 1024), "float32")).T + np.ones(columns, "float32"))
        assert isinstance(op, kind)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_products_without_elements(shape):
    x, y = cg.Var((4, shape[0]), name="x"), cg.Const(np.ones(shape, "float32"))
    x.assign(np.ones(x.shape, "float32"))
    np.testing.assert_array_equal(cg.compile(x @ y + 1)(), np.ones((4, shape[1]), "float32"))


def test_products_with_one_constant_share_its_panels():
    w = cg.Const(np.random.default_rng(0).standard_normal((64, 64)).astype("f4"))
    x = cg.Var((4, 64))
    for _ in range(3):
        x = cg.tanh(x @ w)
    found = pack_matmul((x,), host_target())
    panels = {node.operands[1] for node in post_order(found) if isinstance(node.op, PackedMatmul)}
    assert len(panels) == 1


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize(
    "held", [(5, 1), (1, 7), (1, 1), (7,), (1,), (1, 5, 7), (3, 1, 7), (3, 5, 1), (1, 1, 7), (2, 1, 5, 7)]
)
def test_a_constant_that_is_broadcast_along_any_axes_is_multiplied_as_it_is_broadcast(held, packs):
    rng = np.random.default_rng(0)
    array = rng.standard_normal(held).astype("float32")
    shape = np.broadcast_shapes(held, (3, 5, 7))
    y = cg.broadcast_to(cg.Const(array), shape)
    x = cg.Var((*shape[:-2], 4, 5), "float32", "x").assign(rng.standard_normal((*shape[:-2], 4, 5)).astype("float32"))
    product = x @ y
    if packs:
        product = pack_matmul((product,), host_target())[0]
    assert_close(cg.compile(product)(), x.value @ np.broadcast_to(array, shape))


def test_a_constant_is_packed_for_each_number_of_rows_and_order_and_each_product_reads_its_own():
    rng = np.random.default_rng(0)
    w = cg.Const(rng.standard_normal((70, 70), np.float32))
    x, y = cg.Var((1, 70), name="x"), cg.Var((200, 70), name="y")
    outputs = [x @ w, y @ w, y @ w.T, cg.tanh(x) @ w]
    values = {v: rng.standard_normal(v.shape, np.float32) for v in (x, y)}
    packed = pack_matmul(tuple(outputs), host_target())
    panels = [node.operands[1] for node in packed]
    assert panels[0] is panels[3] and len(set(panels)) == 3
    for got, want in zip(cg.compile(outputs, [x, y])(*values.values()), evaluate(outputs, values)):
        assert_near(got, want, "normal products", 1)


def test_panels_are_stored_as_the_options_say_and_of_pairs_are_apart():
    stored = []

    def keep(array):
        stored.append(array)
        return array * 0 + 7

    x, w = cg.Var((8, 5), name="x"), cg.Const(np.ones((5, 3), "float32"))
    (plain,) = pack_matmul((x @ w,), host_target(), LoweringOptions(keep=keep))
    assert len(stored) == 1 and np.unique(plain.operands[1].op.array).tolist() == [7]
    (pairs,) = pack_matmul((x @ w,), with_pairs(host_target()), LoweringOptions(pairs=True))
    assert isinstance(pairs.op, PairedMatmul) and pairs.operands[1].op.array.dtype == "i4"
    assert (pairs.op.k, pairs.op.n) == (5, 3)
    double = cg.Var((8, 5), "float64", "double") @ np.ones((5, 3))
    (packed,) = pack_matmul((double,), with_pairs(host_target()), LoweringOptions(pairs=True))
    assert isinstance(packed.op, PackedMatmul)


def test_one_row_of_halves_reads_panels_even_where_columns_lie_in_one_piece():
    x, w = cg.Var((1, 30), name="x"), np.ones((20, 30), "float16")
    (node,) = pack_matmul((x @ cg.astype(cg.Const(w), "float32").T,), host_target())
    assert isinstance(node.op, PackedMatmul) and node.operands[1].dtype == np.float16


def test_a_gpu_reads_constants_in_any_order():
    x, w = cg.Var((8, 5), name="x"), cg.Const(np.ones((5, 3), "float32"))
    assert_left(lambda outputs: pack_matmul(outputs, replace(host_target(), has_blocks=True)), x @ w)


def test_operands_of_a_packed_product_are_the_packed_ones():
    (joined,) = fuse_matmul((cg.tanh(X @ CONSTANT) @ CONSTANT + Z @ CONSTANT,))
    (node,) = pack_matmul((joined,), host_target())
    assert not any(isinstance(n.op, Matmul | MatmulEpilogue) for n in post_order([node]))


def test_a_target_with_tiles_packs_for_them_where_they_are_faster_and_rounds_the_panels_of_other_products():
    options, target = LoweringOptions(pairs=True), emulate_tiles(host_target())
    w, thin = cg.Const(np.ones((16, 3), "float32")), cg.Const(np.ones((15, 3), "float32"))
    products = [cg.Var((rows, 16), name=f"x{rows}") @ w for rows in (8, 4, 3)]
    first, second, few = pack_matmul(tuple(products), target, options)
    assert isinstance(first.op, TiledMatmul) and first.operands[1] is second.operands[1]
    assert first.operands[1].shape == (1, 1, 2, 16, 16, 2) and (first.op.k, first.op.n) == (16, 3)
    for other in (few, *pack_matmul((cg.Var((8, 15)) @ thin,), target, options)):
        assert isinstance(other.op, PackedMatmul) and other.operands[1].spec.dtype == BFLOAT16.dtype
    assert isinstance(pack_matmul(tuple(products), target)[0].op, PackedMatmul)  # rounding was not allowed
    assert_left(lambda outputs: pack_matmul(outputs, target, options), cg.Var((8, 5)) @ np.ones((5, 0), "float32"))
