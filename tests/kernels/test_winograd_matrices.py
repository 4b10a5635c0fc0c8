"""The matrices of Winograd convolution give the products of direct convolution, with the published signs."""

import numpy as np
import pytest

from cgraph.kernels.llvm.winograd_matrices import POINTS, winograd_matrices
from tests.support.tolerance import assert_near

every_size = pytest.mark.parametrize("m", POINTS)


@every_size
def test_in_one_dimension_they_are_the_valid_convolution(m):
    at, g, bt = winograd_matrices(m)
    assert (at.shape, g.shape, bt.shape) == ((m, m + 2), (m + 2, 3), (m + 2, m + 2))
    rng = np.random.default_rng(m)
    for _ in range(3):
        d, taps = rng.standard_normal(m + 2), rng.standard_normal(3)
        assert_near(at @ ((g @ taps) * (bt @ d)), np.correlate(d, taps, "valid"), "float64 formulas near zero")


@every_size
def test_in_two_dimensions_rows_and_columns_do_not_change_places(m):
    at, g, bt = winograd_matrices(m)
    rng = np.random.default_rng(m)
    d, taps = rng.standard_normal((m + 2, m + 2)), rng.standard_normal((3, 3))
    got = at @ ((g @ taps @ g.T) * (bt @ d @ bt.T)) @ at.T
    want = [[(d[i : i + 3, j : j + 3] * taps).sum() for j in range(m)] for i in range(m)]
    assert_near(got, np.array(want), "float64 formulas near zero")


def test_two_results_have_the_matrices_of_lavin_and_gray_but_for_signs_and_order():
    """Lavin and Gray 2016, section 4.1: halves in G, 0 and 1 in A and B."""
    at, g, bt = winograd_matrices(2)
    assert set(np.abs(at).ravel()) == {0, 1} == set(np.abs(bt).ravel())
    assert sorted(map(sorted, np.abs(g).tolist())) == [[0, 0, 1], [0, 0, 1], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]


@every_size
def test_opposite_points_differ_in_signs_alone_to_the_last_bit(m):
    """Kernels add and subtract the same products for both points."""
    at, g, bt = winograd_matrices(m)
    for j in range(1, m + 1, 2):
        signs = (-1.0) ** np.arange(m + 2)
        np.testing.assert_array_equal(at[:, j + 1], at[:, j] * signs[:m])
        np.testing.assert_array_equal(np.abs(bt[j + 1]), np.abs(bt[j]))
        assert_near(np.abs(g[j + 1]), np.abs(g[j]), "float64 products")
