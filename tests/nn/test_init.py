import numpy as np
import pytest

from nn import init
from tests.support.tolerance import assert_near


@pytest.mark.parametrize(("shape", "fans"), [((3,), (3, 3)), ((4, 7), (4, 7)), ((8, 3, 5, 5), (75, 200)), ((), (1, 1))])
def test_fans_are_axes_of_matrices_and_windows_of_filters(shape, fans):
    assert init.fans(shape) == fans


@pytest.mark.parametrize("fan", ["in", "out", "mean"])
@pytest.mark.parametrize("normal", [True, False])
def test_the_variance_is_gain_over_fan(fan, normal):
    values = init.Scaled(2.0, fan, normal)((300, 500), np.random.default_rng(0))
    want = 2.0 / {"in": 300, "out": 500, "mean": 400}[fan]
    assert values.dtype == np.float32 and abs(values.var() / want - 1) < 0.02


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal_rows_or_columns_are_orthonormal(shape):
    matrix = init.Orthogonal()(shape, np.random.default_rng(0)).reshape(shape[0], -1)
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    assert_near(small, np.eye(len(small)), "float32 formulas near zero")


def test_a_truncated_normal_has_no_value_beyond_two_deviations():
    assert np.abs(init.TruncatedNormal(0.5)((1000,), np.random.default_rng(0))).max() <= 1.0
