"""Products with sums, activations and constants: same values as the reference, joined and packed where said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import host_target
from cgraph.lowering.pack_matmul import pack_matmul
from cgraph.ops.physical.matmul import MatmulEpilogue, PackedMatmul
from cgraph.passes.fold_constants import fold_constants
from cgraph.passes.fuse_matmul import fuse_matmul
from tests.support.graphs import draw_values, graphs
from tests.support.rewrites import assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close, assert_near

SIZES = st.integers(1, 40)
ADDENDS = ("none", "full", "row", "column", "number", "transposed", "batch")


@st.composite
def products(draw):
    """x @ y + z: batches, turned operands, every way to broadcast what is added, relu."""
    rng, dtype = np.random.default_rng(draw(st.integers(0, 9))), draw(st.sampled_from(("float32", "float64")))
    m, n, k, batch = draw(SIZES), draw(SIZES), draw(SIZES), draw(st.sampled_from(((), (1,), (3,), (2, 3))))
    x = cg.Var((*batch, m, k), dtype, "x") if draw(st.booleans()) else cg.Var((*batch, k, m), dtype, "x")
    left = x if x.shape[-2:] == (m, k) else cg.swapaxes(x, -1, -2)
    y = rng.standard_normal((k, n)).astype(dtype)
    right = cg.Const(y) if draw(st.booleans()) else cg.Var((k, n), dtype, "y").assign(y)
    found = left @ right
    shapes = {"full": found.shape, "row": (n,), "column": (m, 1), "number": (), "transposed": (n, m), "batch": (m, n)}
    kind = draw(st.sampled_from(ADDENDS))
    if kind != "none":
        z = cg.Var(shapes[kind], dtype, "z").assign(rng.standard_normal(shapes[kind]).astype(dtype))
        found = found + (z.T if kind == "transposed" else z)
    x.assign(rng.standard_normal(x.shape).astype(dtype))
    return cg.relu(found) if draw(st.booleans()) else found


@settings(max_examples=120)
@given(found=products(), target=st.sampled_from(("host", "avx2", "portable")))
def test_products_with_what_follows_equal_the_reference(found, target):
    function = cg.compile(found, engine=CpuEngine(target=target, poison=True))
    want = evaluate([found])[0]
    assert_near(function(), want, "normal products", 1)


@settings(max_examples=40)
@given(drawn=graphs())
def test_joined_products_keep_the_values(drawn):
    values = dict(zip(drawn.leaves, draw_values(drawn.leaves)))
    joined = fuse_matmul(tuple(drawn.outputs))
    for got, want in zip(evaluate(joined, values), evaluate(drawn.outputs, values)):
        assert_close(got, want)
    assert all(a is b for a, b in zip(fuse_matmul(joined), joined))


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_large_constant_that_is_transposed_for_a_product_is_not_copied_before_it_is_packed(rows, batch):
    rng = np.random.default_rng(0)
    x = cg.Var((*batch, rows, 150)).assign(rng.standard_normal((*batch, rows, 150), np.float32))
    found = x @ cg.Const(rng.standard_normal((200, 150), np.float32)).T
    assert fold_constants((found,)) == (found,)
    assert_near(cg.compile(found)(), evaluate([found])[0], "normal products", 1)
    assert isinstance(steps(found)[0], PackedMatmul) == (found.size > 200)


def steps(node):
    return [n.op for n in cg.compile(node).compiled.layout.steps]


def test_a_layer_is_one_step_with_a_packed_constant():
    x, w = cg.Var((8, 30), name="x"), cg.Const(np.ones((30, 20), "float32"))
    (op,) = steps(cg.relu(x @ w + np.ones(20, "float32")))
    assert isinstance(op, PackedMatmul) and op.has_addend and op.activation.low == 0


@pytest.mark.parametrize("lead", [(3,), (2, 3), ()])
def test_the_gradient_of_a_layers_weights_is_one_product_for_all_samples(lead):
    rng = np.random.default_rng(0)
    x, w = (cg.Var(s, "float64", n).assign(rng.standard_normal(s)) for s, n in (((*lead, 5, 4), "x"), ((4, 6), "w")))
    given = cg.Var((*lead, 5, 6), "float64", "g").assign(rng.standard_normal((*lead, 5, 6)))
    found = cg.gradient(cg.sum(cg.tanh(x @ w) * given), w)
    assert_same_values(fuse_matmul, found)
    joined = [n for n in post_order(fuse_matmul((found,))) if n.op.name == "matmul" and n.shape[-2:] == (4, 6)]
    assert [n.ndim for n in joined] == [2]


LEFT = {
    "not all leading axes": lambda x, y: cg.sum(cg.swapaxes(x, -1, -2) @ y, 0),
    "a product that does not lie turned": lambda x, y: cg.sum(x @ cg.swapaxes(y, -1, -2), (0, 1)),
    "a moved operand": lambda x, y: cg.sum(cg.swapaxes(x[:, ::-1], -1, -2) @ y, (0, 1)),
    "a product that somebody reads": lambda x, y: cg.sum(PRODUCTS, (0, 1)) + cg.max(PRODUCTS),
    "whole numbers": lambda x, y: cg.sum(cg.swapaxes(WHOLES, -1, -2) @ WHOLES, (0, 1)),
}
BOTH = cg.Var((2, 3, 5, 4), name="x"), cg.Var((2, 3, 5, 6), name="y")
PRODUCTS = cg.swapaxes(BOTH[0], -1, -2) @ BOTH[1]
WHOLES = cg.Var((2, 3, 5, 4), "int32", "n")


@pytest.mark.parametrize("name", LEFT)
def test_sums_of_products_that_stay(name):
    x, y = BOTH if "turned" not in name else (BOTH[0], BOTH[0])
    assert_left(fuse_matmul, LEFT[name](x, y))


def test_one_row_reads_panels_but_of_columns_that_lie_in_one_piece():
    x, w = cg.Var((1, 30), name="x"), np.ones((30, 20), "float32")
    (op,) = steps(x @ cg.Const(w) + np.ones(20, "float32"))
    assert isinstance(op, PackedMatmul)
    (op,) = steps(x @ cg.Const(np.ones((3000, 30), "float32")).T + np.ones(3000, "float32"))
    assert isinstance(op, MatmulEpilogue)


X, Y, Z = (cg.Var((4, 4), "float64", name) for name in "xyz")
WHOLE = cg.Var((4, 4), "int32", "n")
PRODUCT = X @ Y
APART = {
    "a product and itself": (PRODUCT + PRODUCT,),
    "a product that is an output": (PRODUCT, PRODUCT + Z),
    "a product that is read twice": (PRODUCT + Z, cg.sin(PRODUCT)),
    "a product of whole numbers": (WHOLE @ WHOLE + WHOLE,),
    "a product of nothing": (X[:, :0] @ Y[:0] + Z,),
    "relu of a product of whole numbers": (cg.relu(WHOLE @ WHOLE),),
    "another activation": (cg.tanh(PRODUCT),),
    "a product taken away": (Z - PRODUCT,),
    "a factor": (PRODUCT * Z,),
    "a view of a product": (PRODUCT.T + Z,),
    "no product": (cg.relu(X + Y),),
    "relu of a product that is an output": (PRODUCT, cg.relu(PRODUCT)),
    "relu of a product that is read twice": (cg.relu(PRODUCT), cg.sin(PRODUCT)),
}
JOINED = {
    "a sum": PRODUCT + Z,
    "a sum from the left": Z + PRODUCT,
    "a sum with another product's operand": PRODUCT + X,
    "relu": cg.relu(PRODUCT),
    "relu of a sum": cg.relu(PRODUCT + Z),
}


@pytest.mark.parametrize("name", APART)
def test_not_joined(name):
    assert_left(fuse_matmul, *APART[name])


@pytest.mark.parametrize("name", JOINED)
def test_joined(name):
    (found,) = fuse_matmul((JOINED[name],))
    assert isinstance(found.op, MatmulEpilogue) and ops_of((found,)) == {"matmul_epilogue": 1}
    assert_same_values(fuse_matmul, JOINED[name])


def test_relu_is_taken_by_a_sum_that_nobody_else_reads_and_once():
    total = PRODUCT + Z
    assert ops_of(fuse_matmul((cg.relu(total),))) == {"matmul_epilogue": 1}
    assert ops_of(fuse_matmul((total, cg.relu(total)))) == {"matmul_epilogue": 1, "relu": 1}
    assert ops_of(fuse_matmul((cg.relu(total), cg.tanh(total)))) == {"matmul_epilogue": 1, "relu": 1, "tanh": 1}
    assert ops_of(fuse_matmul((cg.relu(cg.relu(total)),))) == {"matmul_epilogue": 1, "relu": 1}
    assert ops_of(fuse_matmul((total + X,))) == {"matmul_epilogue": 1, "add": 1}
    for outputs in ((cg.relu(total),), (total, cg.relu(total)), (cg.relu(cg.relu(total)),), (Z + PRODUCT,)):
        assert_same_values(fuse_matmul, *outputs)


def test_of_two_products_that_are_added_one_is_taken():
    outputs = (PRODUCT + Y @ Z,)
    assert ops_of(fuse_matmul(outputs)) == {"matmul_epilogue": 1, "matmul": 1}
    assert_same_values(fuse_matmul, *outputs)


CONSTANT = cg.Const(np.random.default_rng(3).normal(size=(4, 4)))
BATCHES = cg.Const(np.random.default_rng(3).normal(size=(3, 4, 4)))
MANY = cg.Var((3, 4, 4), "float64", "many")
UNPACKED = {
    "a Var": X @ Y,
    "the left side": CONSTANT @ X,
    "one row and columns in one piece each": X[:1] @ CONSTANT.T,
    "one row and one column": X[:1] @ CONSTANT.op.array[:, :1],
    "constants that differ by batch": MANY @ BATCHES,
    "whole numbers": WHOLE @ np.ones((4, 4), "int32"),
    "no rows": X[:0] @ CONSTANT,
    "no columns": X @ CONSTANT.op.array[:, :0],
    "nothing to add up": X[:, :0] @ CONSTANT.op.array[:0],
}
PACKED = {
    "one row": X[:1] @ CONSTANT,
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


@pytest.mark.parametrize("name", PACKED)
def test_packed(name):
    def rewrite(outputs):
        return pack_matmul(outputs, host_target())

    assert isinstance(rewrite((PACKED[name],))[0].op, PackedMatmul)


def test_a_product_that_is_read_twice_stays_alone():
    x, y = cg.Var((8, 30), name="x"), cg.Var((30, 20), name="y")
    product = x @ y
    assert not any(isinstance(op, MatmulEpilogue) for op in steps((product + 1) * cg.sum(product)))


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
