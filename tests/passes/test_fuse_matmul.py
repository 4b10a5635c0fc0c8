"""Products with sums, activations and constants: same values as the reference, joined and packed where said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.ops.physical.matmul import MatmulEpilogue, PackedMatmul
from cgraph.passes.fuse_matmul import fuse_matmul
from tests.support.graphs import draw_values, graphs
from tests.support.kernels import TARGETS
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
@given(found=products(), target=st.sampled_from(TARGETS))
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
    "a moved right side": lambda x, y: cg.sum(cg.swapaxes(x, -1, -2) @ y[:, ::-1], (0, 1)),
    "all axes turned": lambda x, y: cg.sum(cg.transpose(x, (1, 0, 3, 2)) @ cg.Var((3, 2, 5, 6), name="z"), (0, 1)),
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


def test_a_product_that_is_read_twice_stays_alone():
    x, y = cg.Var((8, 30), name="x"), cg.Var((30, 20), name="y")
    product = x @ y
    assert not any(isinstance(op, MatmulEpilogue) for op in steps((product + 1) * cg.sum(product)))
