"""Products of one row whose matrix is cut into slices: each slice has its own part of what is added."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.kernels.activation.calls import NONE
from cgraph.kernels.mapped import in_place
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.passes.weights_on_disk import slice_constants
from tests.support.tolerance import assert_near

K = 5


@pytest.mark.parametrize("most", [64, 1000, 4 * K * 64, 4 * K * 150])
@pytest.mark.parametrize("columns", [16, 33, 150])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("added", ["nothing", "constant", "computed"])
def test_a_sliced_product_of_one_row_adds_to_each_slice_its_own_part(most, columns, turned, added):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((columns, K) if turned else (K, columns)).astype("f4")
    x, b = cg.Var((1, K), name="x"), cg.Var((1, columns), name="b")
    addend = rng.standard_normal((1, columns)).astype("f4")
    y = cg.transpose(cg.Const(matrix)) if turned else cg.Const(matrix)
    given = {"nothing": (), "constant": (cg.Const(addend),), "computed": (b * 2.0,)}[added]
    op = MatmulEpilogue(True, NONE) if given else Matmul()
    node = apply(op, x, y, *given)
    (cut,) = slice_constants((node,), most, in_place)
    assert (cut is node) is (matrix.nbytes <= most or columns == 16)  # a slice has a cache line at least
    value = rng.standard_normal((1, K)).astype("f4")
    want, got = (cg.compile(root, [x, b], engine="reference")(value, addend) for root in (node, cut))
    assert_near(got, want, "float32 formulas near zero")
