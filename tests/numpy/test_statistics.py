"""Covariances and histograms are NumPy's, with every kind of weight, bin and range."""

import numpy as np
import pytest

from tests.numpy.evaluated import compare, drawn


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.2.0", reason="NumPy laid a single row along observations")
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (3, 2), (3,)])
@pytest.mark.parametrize("other", [None, (1, 3), (3,), (3, 1), (3, 2)])
@pytest.mark.parametrize("rowvar", [True, False])
def test_cov_lays_rows_or_columns_of_both_operands_along_variables(shape, other, rowvar):
    arrays = {"x": drawn(shape)} if other is None else {"x": drawn(shape), "y": drawn(other, seed=1)}
    compare(f"np.cov({', '.join(arrays)}, rowvar={rowvar})", **arrays)


@pytest.mark.parametrize("how", ["", ", bias=True", ", ddof=0", ", ddof=2", ", bias=True, ddof=1", ", ddof=9"])
@pytest.mark.parametrize("weights", ["", ", fweights=f", ", aweights=g", ", fweights=f, aweights=g"])
@pytest.mark.parametrize("rowvar", [True, False])
def test_cov_with_every_kind_of_weight(how, weights, rowvar):
    x = drawn((3, 5)) if rowvar else drawn((5, 3))
    given = {"f": np.array([1, 2, 0, 3, 1]), "g": np.array([0.5, 1.0, 2.0, 0.25, 1.5])}
    compare(f"np.cov(x, rowvar={rowvar}{how}{weights})", x=x, **given)
    compare(f"np.cov(x, y, rowvar={rowvar}{how}{weights})", x=x, y=x[::-1].copy() * 2, **given)


@pytest.mark.parametrize("weights", [
    "fweights=[1, 0, 3]", "aweights=np.array([0.0, 0.5, 2.0])", "aweights=(0, 0, 1)",
    "fweights=[2, 0, 1], aweights=[0.0, 0.5, 2.0]", "fweights=[1, -1, 3]",
])  # fmt: skip
def test_constant_weights_are_0_or_more(weights):
    compare(f"np.cov(x, {weights})", x=drawn((2, 3)))


@pytest.mark.parametrize("bins", ["5", "1", "[0, 1, 1, 3]", "np.array([-1.0, 0.5, 2.0])"])
@pytest.mark.parametrize("span", ["", ", range=(0.5, 2)", ", range=(-4, 9)"])
@pytest.mark.parametrize("more", ["", ", density=True", ", weights=w", ", weights=w, density=True"])
def test_histograms_of_every_kind(bins, span, more):
    for x in (drawn((2, 6)), np.array([0.5, 1.0, 1.0, 2.0, 3.0, -1.0]), np.full(4, 2.0)):
        compare(f"np.histogram(x, {bins}{span}{more})", x=x, w=drawn(x.shape, seed=4))


@pytest.mark.parametrize("bins", ["3", "(2, 4)", "[[0, 1, 3], [0, 0.5, 1, 4]]"])
@pytest.mark.parametrize("more", ["", ", density=True", ", weights=w", ", range=[(0, 2), (0.5, 3)]"])
def test_histograms_of_points_keep_their_axes_apart(bins, more):
    x, y = drawn((9,)), drawn((9,), seed=1)
    compare(f"np.histogram2d(x, y, {bins}{more})", x=x, y=y, w=drawn((9,), seed=2))


@pytest.mark.parametrize("call", [
    "np.histogram_bin_edges(a, 4, weights=w)", "np.histogram_bin_edges(a, [0.0, 1.0, 4.0], weights=w)",
    "np.histogram_bin_edges(a, 1)", "np.histogram_bin_edges(a, 3, (1, 1))", "np.histogram_bin_edges(a, 3, (2, 1))",
    "np.histogram_bin_edges(a, 0)", "np.histogram_bin_edges(a, [0.0, 1.0, 1.0])",
    "np.histogram_bin_edges(a, [1.0, 0.0])",
    "np.histogram_bin_edges(a, np.ones((2, 2)))", "np.histogram(a, 3, (0, 2), weights=w)", "np.histogram(a * 0 + 2, 3)",
    "np.histogram2d(a, w, 2)", "np.histogram2d(a, w, [2, 3])", "np.histogram2d(a, w, [2, 3], [[0, 2], [0, 1]])",
    "np.histogram2d(a, w, [[0.0, 1.0, 4.0], 2])", "np.histogram2d(a, w, [0.0, 1.0, 4.0])", "np.histogram2d(a, w, [5])",
    "np.histogram2d(a, w, (2, 3), weights=a)", "np.histogram2d(a, w, [3, 2], density=True)",
])  # fmt: skip
def test_bins_of_each_form(call):
    compare(call, a=drawn((9,)), w=drawn((9,), seed=2))
