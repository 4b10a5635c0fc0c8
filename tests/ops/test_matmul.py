"""Lowered matrix products: addends, leaky bounded activations, packed panels, addends that the kernels cannot read."""

import numpy as np
import pytest

from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.activation.calls import NONE, RELU, BoundedActivation
from cgraph.kernels.gemm.portions import to_panels
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.views.gemm_tile import GemmTile, gemm_tile
from cgraph.ops.leaf import Var
from cgraph.ops.physical.matmul import MatmulEpilogue, PackedMatmul, activate, addend_nbytes
from tests.support.kernels import TARGETS, run_calls, view_of
from tests.support.ops import filled, kernel_result
from tests.support.tolerance import assert_near

LEAKY = BoundedActivation(-2.0, 5.0, 0.5)


def random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("f4")


def formula(x, y, addend, activation):
    z = x.astype("f8") @ y.astype("f8") + addend
    return np.clip(np.where(z > 0, z, activation.slope * z), activation.low, activation.high)


def assert_product(op, xs, want, target, out=None):
    """Meaning and kernels both are the expected product."""
    assert_near(op.meaning(*xs), want, "float32 products")
    node = apply(op, *(Var(x.shape, x.dtype) for x in xs))
    assert node.spec == Spec(want.shape, xs[0].dtype)
    (got,) = kernel_result(node, xs, "reverse", out, target)
    assert_near(got, want, "float32 products")


def test_an_activation_has_a_slope_below_zero_and_two_bounds():
    x = np.array([-9, -4, -2, 0, 3, 5, 8], "f4")
    got = activate(x, LEAKY)
    assert got.tolist() == [-2, -2, -1, 0, 3, 5, 5] and got.dtype == "f4"
    assert activate(x, NONE).tolist() == x.tolist() and activate(x, RELU).min() == 0
    assert np.isnan(activate(np.array([np.nan], "f4"), LEAKY)).all()


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("m", [1, 3, 17])
@pytest.mark.parametrize("adds", [False, True], ids=["alone", "addend"])
def test_two_variables_with_an_epilogue(name, m, adds):
    x, y, addend = random(2, m, 20), random(2, 20, 37), 10 * random(2, m, 37)
    op = MatmulEpilogue(adds, LEAKY)
    want = formula(x, y, addend if adds else 0, LEAKY)
    assert_product(op, [x, y, addend][: 2 + adds], want, target_named(name))
    assert op.multiply_adds(*(Spec(v.shape, v.dtype) for v in (x, y))) == 2 * m * 20 * 37


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("shape", [(1, 20), (3, 20), (2, 5, 20)], ids=str)
def test_panels_of_a_constant_with_an_addend(name, shape):
    target = target_named(name)
    x, y, addend = random(*shape), random(20, 37), 10 * random(*shape[:-1], 37)
    tile = gemm_tile(shape[-2], 37, 20, "f4", target)
    op = PackedMatmul(20, 37, tile, True, LEAKY)
    assert_product(op, [x, to_panels(y, tile), addend], formula(x, y, addend, LEAKY), target)
    assert op.name == "matmul" and op.multiply_adds(Spec(shape, x.dtype), None) == x.size * 37
    packed = op.panels(Pointer(None), "f4")
    assert (packed.k, packed.n, packed.tile, packed.dtype) == (20, 37, tile, "f4")
    assert packed.nbytes == to_panels(y, tile).nbytes


def test_panels_in_half_precision_mean_the_rounded_constant():
    x, y, tile = random(3, 8), random(8, 12), GemmTile(3, 1, 8)
    op = PackedMatmul(8, 12, tile)
    panels = to_panels(y, tile).astype("f2")
    want = x.astype("f8") @ y.astype("f2").astype("f8")
    assert op.takes_storage and op.meaning(x, panels).dtype == "f4"
    assert_near(op.meaning(x, panels), want, "float32 products")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("packed", [False, True], ids=["variable", "packed"])
def test_an_addend_whose_rows_are_not_contiguous_is_copied_first(name, packed):
    target = target_named(name)
    x, y, addend = random(6, 20), random(20, 40), np.asfortranarray(10 * random(6, 40))
    tile = gemm_tile(6, 40, 20, "f4", target)
    op = PackedMatmul(20, 40, tile, True, LEAKY) if packed else MatmulEpilogue(True, LEAKY)
    xs = [x, to_panels(y, tile) if packed else y, addend]
    work = op.work(target, *(Spec(v.shape, v.dtype) for v in xs))
    out, views = filled(Spec((6, 40), np.dtype("f4"))), tuple(map(view_of, xs))
    nbytes = work.needs(view_of(out), views)
    right = op.panels(views[1].at, "f4") if packed else views[1]
    assert nbytes == addend_nbytes(target, view_of(out), views[0], right, views[2]) <= work.nbytes
    run_calls(work.placed(view_of(out), views, view_of(np.zeros(nbytes, "u1"))), target)
    assert_near(out, formula(x, y, addend, LEAKY), "float32 products")


def test_operands_that_do_not_fit_are_refused():
    f4 = np.dtype("f4")
    with pytest.raises(ShapeError):
        MatmulEpilogue(True).infer(Spec((2, 3), f4), Spec((4, 5), f4), Spec((2, 5), f4))
