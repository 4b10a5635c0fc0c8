"""A batch norm becomes what it is made of, whatever its statistics are."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ops.norm import BatchNorm
from cgraph.passes.fold_norm import fold_norm
from tests.support.rewrites import assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)
X = cg.Var((2, 3, 4, 4), "float64", "x")


def parameters(frozen: tuple[bool, ...]) -> list[cg.Node]:
    """Scale, shift, mean and variance: constants where frozen, values that depend on a Var elsewhere."""
    values = [RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=3), RNG.uniform(0.5, 2, 3)]
    return [cg.Const(v) if f else cg.abs(cg.Var(3, "float64", f"p{i}")) for i, (v, f) in enumerate(zip(values, frozen))]


@pytest.mark.parametrize("frozen", [(True,) * 4, (False,) * 4, *(tuple(i != k for i in range(4)) for k in range(4))])
@pytest.mark.parametrize("rank", [2, 4])
def test_a_norm_is_one_factor_and_one_term(frozen, rank):
    x = X if rank == 4 else X[:, :, 0, 0]
    node = cg.batch_norm(x, *parameters(frozen), 0.3)
    (found,) = fold_norm((node,))
    assert ops_of((node,))["batch_norm"] == 1 and not any(isinstance(n.op, BatchNorm) for n in [found])
    assert ("sqrt" in ops_of((found,))) == (not all(frozen))
    assert_same_values(fold_norm, node)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("mean", "variance", "eps"), [(2, 0, 0), (2, np.nan, 0.1), (2, -1, 0.1), (np.inf, 1, 0.1), (2, 1e-320, 0)]
)
def test_parameters_without_a_finite_factor_and_term_are_computed_in_the_run(mean, variance, eps):
    """Else the norm of a number that is not the mean would be NaN, not infinite."""
    means, variances = np.array([0.5, mean, 1]), np.array([1, variance, 2])
    node = cg.batch_norm(X, np.array([1.0, 2, 3]), np.array([-1.0, 0, 1]), means, variances, eps)
    x = RNG.normal(size=X.shape)
    got = cg.compile(node, X)(x)
    with np.errstate(all="ignore"):
        want = cg.compile(node, X, engine="reference")(x)
    assert_close(got, want)


def test_other_norms_are_left():
    assert_left(fold_norm, cg.layer_norm(X, np.ones(4), np.zeros(4)), cg.group_norm(X, np.ones(3), np.zeros(3), 3))


def test_a_norm_in_training_and_its_gradient_share_the_difference_from_the_mean():
    x, scale, shift = cg.Var((4, 16, 6, 6)), cg.Var((16,)), cg.Var((16,))
    y, _, _ = cg.batch_norm_training(x, scale, shift)
    slopes = cg.gradient(cg.sum(cg.square(y) * np.arange(6, dtype="float32")), [x, scale, shift])
    steps = cg.compile(slopes, [x, scale, shift]).compiled.layout.steps
    assert [n.name for n in steps if n.shape == x.shape].count("subtract") == 1
