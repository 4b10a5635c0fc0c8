"""Products of computed values that round: in bodies too, with one matrix for all, and where names of layers stay."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import host_target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.lowering.round_products import round_bodies, round_products
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.ops.linear import Matmul
from cgraph.ops.loop import Loop
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.physical.rounded import RoundedMatmul
from cgraph.passes.fuse_matmul import fuse_matmul
from tests.support.emulated import PairsEngine, TilesEngine, emulate_tiles, with_pairs

OPTIONS = LoweringOptions(pairs=True)
TARGETS = {"pairs": with_pairs(host_target()), "tiles": emulate_tiles(host_target())}
every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
X, W = cg.Var((4, 40, 64), name="x"), cg.Var((64, 64), name="w")


def kinds(outputs):
    return [type(n.op) for n in post_order(outputs) if isinstance(n.op, Matmul | MatmulEpilogue | RoundedMatmul)]


@every_target
def test_a_matrix_of_all_products_is_read_once_and_counts_all_their_rows(target):
    (node,) = round_products((X @ W,), target, OPTIONS)
    assert isinstance(node.op, RoundedMatmul) and node.operands[1] is W
    few = X @ cg.broadcast_to(cg.Var((4, 64, 64)), (4, 64, 64))  # 40 rows of each
    assert kinds(round_products((few,), target, OPTIONS)) == [Matmul]


@every_target
def test_epilogues_stay_and_constants_are_left_to_their_own_pass(target):
    addend = cg.Var((4, 40, 64), name="z")
    (node,) = round_products(fuse_matmul((cg.relu(X @ W + addend),)), target, OPTIONS)
    assert node.op == RoundedMatmul(True, node.op.activation) and node.op.activation.low == 0
    constant = X @ np.ones((64, 64), "float32")
    assert kinds(round_products((constant,), target, OPTIONS)) == [Matmul]


@every_target
def test_other_dtypes_small_products_and_requests_without_rounding_change_nothing(target):
    for y in (X.astype("float64") @ W.astype("float64"), X[:, :8] @ W, X[:, :0] @ W, X[..., :8] @ W[:8]):
        assert round_products((y,), target, OPTIONS)[0] is y
    y = X @ W
    assert round_products((y,), target, LoweringOptions())[0] is y
    nothing = LoweringOptions(pairs=True, layers=RoundedLayers(frozenset()))
    assert round_products((y,), target, nothing)[0] is y


@pytest.mark.parametrize("engine", [PairsEngine, TilesEngine])
def test_products_in_bodies_round_and_a_choice_of_layers_leaves_them(engine):
    start, w = cg.Var((80, 80), name="start"), cg.Var((80, 80), name="v")
    end, _ = cg.scan(lambda h, row: (cg.tanh(h @ w + row), row), start, cg.Const(np.zeros((9, 80), "float32")))
    rng = np.random.default_rng(0)
    values = [rng.standard_normal((80, 80)).astype("f4") / 9 for _ in range(2)]

    def run(**options):
        return cg.compile(end, [start, w], engine=engine("host", 2, poison=True), **options)(*values)

    plain, rounded = run(), run(precision="bf16")
    assert 0 < np.abs(plain - rounded).max() < 0.02
    np.testing.assert_array_equal(run(precision=cg.MixedPrecision(())), plain)
    bodies = round_bodies((end,), TARGETS["pairs"], OPTIONS)
    (loop,) = [n.op for n in post_order(bodies) if isinstance(n.op, Loop)]
    assert kinds(loop.bodies[0].results) == [RoundedMatmul]


@every_target
def test_layers_after_a_rounded_product_keep_their_names(target):
    v = cg.Var((64, 64), name="v")
    f = cg.Var((32, 16, 3, 3), name="f")
    y = cg.conv2d(cg.reshape(cg.tanh(X @ W), (4, 16, 16, 10)), f, 1, 1)
    z = cg.reshape(y, (-1, 64)) @ v
    layers = RoundedLayers()
    lower_graph((z,), target, LoweringOptions(pairs=True, layers=layers))
    assert list(layers.multiply_adds) == ["w", "f", "v"] and layers.able == {"w", "f", "v"}
