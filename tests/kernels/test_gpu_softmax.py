"""Softmax, its logarithm and that of the sum by teams of threads: any axis, layout and length, infinities, in place."""

import numpy as np
import pytest

from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.team.gpu_signature import COLUMNS, FEW, MANY
from tests.kernels.test_softmax import every_kind, formula
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of
from tests.support.tolerance import assert_near

every_float = pytest.mark.parametrize("dtype", ["f4", "f8"])


def draw(*shape, dtype="f4"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@every_kind
@every_float
@pytest.mark.parametrize("shape, axis", [((5, 7), 1), ((3, 40), 1), ((2, MANY + 1), 1), ((33, 40), 0), ((2, 5, 3), 1)])
def test_softmax_along_any_axis(kind, dtype, shape, axis):
    x = draw(*shape, dtype=dtype) * 20
    want = formula(kind, x, axis)
    out = np.full(want.shape, np.nan, dtype)
    (call,) = softmax_calls(BLOCKS, kind, view_of(out), view_of(x), axis)
    run_on_gpu([call])
    assert call.kernel.is_block
    assert_near(out, want, "softmax", np.abs(x).max())


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_in_place_and_of_strided_views(axis):
    x = draw(40, 45)
    want = formula("softmax", x[:, ::2], axis)
    run_on_gpu(softmax_calls(BLOCKS, "softmax", view_of(x[:, ::2]), view_of(x[:, ::2]), axis))
    assert_near(x[:, ::2], want, "float32 sums near zero")
    np.testing.assert_array_equal(x[:, 1::2], draw(40, 45)[:, 1::2])


def computed(kind, x, axis, out=None):
    """The result, and the params of the kernel after the kind and the dtype."""
    out = (
        np.full([n for i, n in enumerate(x.shape) if kind != "logsumexp" or i != axis], np.nan, x.dtype)
        if out is None
        else out
    )
    (call,) = softmax_calls(BLOCKS, kind, view_of(out), view_of(x), axis)
    run_on_gpu([call])
    return out, call.kernel.params[2:]


@pytest.mark.parametrize("length", [3, FEW + 4, MANY + 9])
def test_infinities_and_nans(length):
    """One minus infinity, all of them, one infinity, one NaN: rows of their own."""
    x = draw(5, length)
    x[0, 1], x[1], x[2, 2], x[3, 0] = -np.inf, -np.inf, np.inf, np.nan
    soft, _ = computed("softmax", x, 1)
    assert soft[0, 1] == 0 and np.isfinite(soft[0]).all() and np.isnan(soft[1:4]).all() and np.isfinite(soft[4]).all()
    total, _ = computed("logsumexp", x, 1)
    assert np.isfinite(total[[0, 4]]).all()
    np.testing.assert_array_equal(total[1:4], np.array([-np.inf, np.inf, np.nan], "f4"))


@every_kind
def test_large_numbers_do_not_overflow(kind):
    x = draw(3, 20) + np.array([[1e4], [-1e4], [0]], "f4")
    got, _ = computed(kind, x, 1)
    assert_near(got, formula(kind, x.astype("f8"), 1), "softmax", np.abs(x).max())


def test_the_team_is_that_of_the_layout():
    """Across memory only where results lie side by side and the elements of one do not."""
    for shape, axis, want in (
        ((COLUMNS, FEW - 1), 1, (1, False)),
        ((3, FEW), 1, (32, False)),
        ((3, MANY), 1, (256, False)),
        ((FEW, COLUMNS), 0, (8, True)),
        ((FEW - 1, COLUMNS), 0, (1, True)),
        ((FEW, COLUMNS - 1), 0, (32, False)),
    ):
        x = draw(*shape)
        got, (_, *team) = computed("softmax", x, axis)
        assert tuple(team) == want
        assert_near(got, formula("softmax", x, axis), "softmax", 1)


def test_rows_in_the_middle_of_others_and_results_elsewhere():
    x, room = draw(4, 30, 7), np.full((7, 8, 30), 77, "f4")
    out = room[:, ::2].transpose(1, 2, 0)
    computed("log_softmax", x[:, ::-1], 1, out)
    assert_near(out, formula("log_softmax", x[:, ::-1], 1), "softmax", np.abs(x).max())
    assert (room[:, 1::2] == 77).all()
