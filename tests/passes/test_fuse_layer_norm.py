"""Layer normalisation that is written out becomes one op: in the forms of exporters, and nowhere else."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.passes import rewrite_graph
from cgraph.passes.fuse_layer_norm import fuse_layer_norm
from tests.support.rewrites import assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)
X = cg.Var((2, 3, 4, 6), name="x")
SCALE, SHIFT = (RNG.normal(size=6).astype("float32") for _ in range(2))
EPS = np.float32(1e-3)


def unit(x=X, axes=-1, eps=EPS):
    difference = x - cg.mean(x, axes, keepdims=True)
    return difference / cg.sqrt(cg.mean(cg.square(difference), axes, keepdims=True) + eps)


def by_product(x=X):
    difference = x - cg.mean(x, -1, keepdims=True)
    return difference * cg.reciprocal(cg.sqrt(EPS + cg.mean(difference * difference, -1, keepdims=True)))


FORMS = {
    "torch, TorchScript": unit() * SCALE + SHIFT,
    "the variance of NumPy": (X - cg.mean(X, -1, keepdims=True)) / cg.sqrt(cg.var(X, -1, keepdims=True) + EPS) * SCALE,
    "a reciprocal root": SHIFT + SCALE * by_product(),
    "two axes": unit(axes=(-2, -1)) * RNG.normal(size=(4, 6)).astype("float32") + SHIFT,
    "all axes of a vector": unit(cg.Var((6,))) * SCALE + SHIFT,
    "without parameters": unit(),
    "a factor alone": SCALE * unit(),
    "a term alone": unit() + SHIFT,
    "numbers": unit() * np.float32(2) + np.float32(3),
    "parameters with ones in front": unit() * SCALE.reshape(1, 1, 1, 6) + SHIFT.reshape(1, 6),
    "parameters of the graph": unit() * cg.Var((6,), name="scale") + cg.Var((6,), name="shift"),
    "double precision": unit(cg.Var((5, 6), "float64"), eps=1e-5) * SCALE.astype("float64") + SHIFT.astype("float64"),
    "one after the other": unit(unit() * SCALE + SHIFT) * SHIFT + SCALE,
}


@pytest.mark.parametrize("name", FORMS)
def test_a_written_out_norm_is_one_op(name):
    node = FORMS[name]
    ops = ops_of(fuse_layer_norm((node,)))
    assert ops["layer_norm"] == (2 if name == "one after the other" else 1)
    assert set(ops) <= {"layer_norm", "reshape"}
    assert_same_values(fuse_layer_norm, node)
    assert_same_values(rewrite_graph, node)


MEAN = cg.mean(X, -1, keepdims=True)
DIFFERENCE = X - MEAN
VARIANCE = cg.mean(cg.square(DIFFERENCE), -1, keepdims=True)
LEFT = {
    "channels": unit(axes=1),
    "axes apart": unit(axes=(1, 3)),
    "one less than the count": DIFFERENCE / cg.sqrt(cg.var(X, -1, ddof=1, keepdims=True) + EPS),
    "a sum": DIFFERENCE / cg.sqrt(cg.sum(cg.square(DIFFERENCE), -1, keepdims=True) + EPS),
    "nearly a mean": (X - cg.sum(X, -1, keepdims=True) / np.float32(6.00001)) / cg.sqrt(VARIANCE + EPS),
    "eps behind the root": DIFFERENCE / (cg.sqrt(VARIANCE) + EPS),
    "a negative eps": DIFFERENCE / cg.sqrt(VARIANCE + np.float32(-1e-3)),
    "an eps for each row": DIFFERENCE / cg.sqrt(VARIANCE + cg.Var((4, 1))),
    "without a mean": X / cg.sqrt(cg.mean(cg.square(X), -1, keepdims=True) + EPS),
    "another's difference": (cg.Var(X.shape) - MEAN) / cg.sqrt(VARIANCE + EPS),
    "another's mean": (X - cg.mean(cg.Var(X.shape), -1, keepdims=True)) / cg.sqrt(VARIANCE + EPS),
    "the cube": DIFFERENCE / cg.sqrt(cg.mean(cg.square(DIFFERENCE) * DIFFERENCE, -1, keepdims=True) + EPS),
    "other axes": (X - cg.mean(X, (-2, -1), keepdims=True)) / cg.sqrt(VARIANCE + EPS),
    "complex numbers": unit(cg.Var((4, 6), "complex64"), eps=1e-3),
    "complex numbers and a real eps": unit(cg.Var((4, 6), "complex64")),
    "the mean less x": (MEAN - X) / cg.sqrt(VARIANCE + EPS),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_layer_norm_is_left(name):
    assert_left(fuse_layer_norm, LEFT[name])
    assert_same_values(rewrite_graph, LEFT[name])


ROWS = np.array(
    [[1, 2, 3, np.nan], [1, 2, 3, np.inf], [1, -np.inf, np.inf, 0], [0, 0, 0, -0.0], [5, 5, 5, 5], [1e-6, 0, 0, 0]],
    "float32",
)


@pytest.mark.parametrize("eps", [0.0, 1e-5])
def test_nan_infinities_and_equal_numbers_stay_as_written_out(eps):
    x = cg.Var(ROWS.shape)
    node = unit(x, eps=np.float32(eps))
    assert ops_of(fuse_layer_norm((node,))) == {"layer_norm": 1}
    (want,) = evaluate((node,), {x: ROWS})
    (meaning,) = evaluate(fuse_layer_norm((node,)), {x: ROWS})
    for got in (meaning, np.asarray(cg.compile(node, x)(ROWS))):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        assert_close(got[~np.isnan(want)], want[~np.isnan(want)])
    large = np.abs(want) > 1e-3  # a difference of equal numbers is 0 or a last bit of their mean
    np.testing.assert_array_equal(np.signbit(meaning[large]), np.signbit(want[large]))


@pytest.mark.parametrize("shape", [(4, 1), (3, 1, 6), (2, 1, 1, 1)])
def test_a_factor_or_a_term_that_differs_between_rows_stays(shape):
    node = unit() * RNG.normal(size=shape).astype("float32")
    assert ops_of(fuse_layer_norm((node,))) == {"layer_norm": 1, "multiply": 1}
    assert_same_values(fuse_layer_norm, node)
    node = unit() * SCALE + RNG.normal(size=shape).astype("float32")
    ops = ops_of(fuse_layer_norm((node,)))
    assert ops["layer_norm"] == ops["add"] == 1
    assert_same_values(fuse_layer_norm, node)


def test_parts_that_others_read_are_left():
    root = cg.sqrt(VARIANCE + EPS)
    for other in (DIFFERENCE, root, MEAN, VARIANCE):
        assert_left(fuse_layer_norm, DIFFERENCE / root, other)
    assert_left(fuse_layer_norm, DIFFERENCE / root * SCALE + DIFFERENCE)


def test_a_difference_that_the_backward_part_reads_is_left():
    slope = cg.gradient(cg.sum(cg.square(unit() * SCALE + SHIFT)), X)
    assert_left(fuse_layer_norm, slope)


def test_ops_of_several_results_beside_roots_and_sums_are_left():
    total, _ = cg.scan(lambda carry, x: (carry + x, carry), X[0, 0, 0, 0], X[0, 0, 0])
    loop = total + cg.sqrt(cg.sum(X))
    assert fuse_layer_norm((loop,)) == (loop,)


def test_a_norm_without_a_term_keeps_the_signs_of_zeros():
    """Rows of equal numbers are 0, or -0 with a factor below 0."""
    x = cg.Var((3, 6))
    node = unit(x) * np.array([1, -1, 2, -2, 3, -3], "f4")
    value = np.repeat(np.array([[1.0], [-2.0], [0.0]], "f4"), 6, 1)
    (fused,) = fuse_layer_norm((node,))
    assert ops_of((fused,)) == {"layer_norm": 1}
    (got,), (want,) = evaluate((fused,), {x: value}), evaluate((node,), {x: value})
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    assert np.signbit(got).any() and not np.signbit(got).all()
