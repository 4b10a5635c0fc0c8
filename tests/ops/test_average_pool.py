"""Average pooling: what counts in a window, unequal axes, both divisors, and its gradient as a spread of shares."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.average_pool import AvgPool, SpreadToWindows
from tests.autodiff.differences import check_first, check_second
from tests.support.computed import computed, gradients

ROW = np.array([[[1.0, 2.0, 4.0, 8.0, 16.0]]])


def test_a_last_window_and_padding_count_as_asked():
    x = cg.Var(ROW)
    assert computed(cg.avg_pool1d(x, 2)).ravel().tolist() == [1.5, 6]  # without a stride, that of the window
    assert computed(cg.avg_pool1d(x, 2, 1)).ravel().tolist() == [1.5, 3, 6, 12]
    assert computed(cg.avg_pool1d(x, 2, 2, ceil=True)).ravel().tolist() == [1.5, 6, 16]
    assert computed(cg.avg_pool1d(x, 2, 2, 1)).ravel().tolist() == [1, 3, 12]
    assert computed(cg.avg_pool1d(x, 2, 2, 1, count_pad=True)).ravel().tolist() == [0.5, 3, 12]
    wide = computed(cg.avg_pool1d(x, 3, 3, (0, 1), ceil=True, count_pad=True))
    assert wide.ravel().tolist() == [7 / 3, 8]  # of 8, 16 and one element of padding


def test_axes_have_their_own_windows_strides_and_padding():
    x = np.arange(2 * 5 * 7.0).reshape(1, 2, 5, 7)
    got = computed(cg.avg_pool2d(cg.Var(x), (2, 3), (3, 2), (1, 0, 0, 2)))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 2)), constant_values=np.nan)
    want = [[np.nanmean(padded[:, :, i : i + 2, j : j + 3], (2, 3)) for j in range(0, 7, 2)] for i in (0, 3)]
    np.testing.assert_array_equal(got, np.moveaxis(want, (0, 1), (2, 3)))


def test_volumes_and_whole_channels():
    x = cg.Var(np.arange(2 * 3 * 4 * 2 * 2.0).reshape(2, 3, 4, 2, 2))
    got = computed(cg.avg_pool3d(x, (4, 2, 1)))
    np.testing.assert_array_equal(got, x.value.mean((2, 3), keepdims=True))
    np.testing.assert_array_equal(computed(cg.global_avg_pool(x)), x.value.mean((2, 3, 4), keepdims=True))
    assert cg.avg_pool2d(cg.Var((0, 3, 4, 4)), 2, 2).shape == (0, 3, 2, 2)


def test_integers_and_windows_that_do_not_fit_are_refused():
    with pytest.raises(DTypeError, match="average pooling needs floats, not int32; convert with astype"):
        cg.avg_pool1d(cg.Var((1, 1, 4), "int32"), 2)
    with pytest.raises(ShapeError, match="a window of 5 does not fit an axis of 4"):
        cg.avg_pool1d(cg.Var((1, 1, 4)), 5)
    spread = SpreadToWindows((2,), (1,), (0, 0), (1,), False, (4,))
    with pytest.raises(ShapeError, match=r"windows over \[4\] give \[3\] results, not \[2\]"):
        apply(spread, cg.Var((1, 1, 2)))


def test_a_gradient_is_shared_by_the_elements_that_count():
    x = cg.Var(ROW)
    assert gradients(cg.avg_pool1d(x, 2, 2, 1), x, seed=[[[1, 10, 100]]]).ravel().tolist() == [1, 5, 5, 50, 50]
    counted = cg.avg_pool1d(x, 2, 2, 1, count_pad=True)
    assert gradients(counted, x, seed=[[[1, 10, 100]]]).ravel().tolist() == [0.5, 5, 5, 50, 50]
    overlapping = cg.avg_pool1d(x, 3, 1)
    assert gradients(overlapping, x, seed=[[[3, 30, 300]]]).ravel().tolist() == [1, 11, 111, 110, 100]


@pytest.mark.parametrize("count_pad", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
def test_gradients_of_first_and_second_order_agree_with_differences(ceil, count_pad):
    def pooled(x):
        return cg.square(cg.avg_pool2d(x, (2, 3), (2, 1), (1, 0, 0, 1), ceil, count_pad))

    x = np.random.default_rng(0).normal(size=(1, 2, 4, 4))
    check_first(pooled, [x])
    check_second(pooled, [x])


def test_pools_that_differ_in_one_field_are_two_nodes():
    x = cg.Var((1, 1, 8))
    fields = ((2,), (2,), (1, 1), (1,), False, False)
    others = [((3,),), ((2,), (1,)), ((2,), (2,), (0, 1)), ((2,), (2,), (1, 1), (2,)), fields[:4] + (True,),
              fields[:5] + (True,)]  # fmt: skip
    nodes = {apply(AvgPool(*(other + fields[len(other) :])), x) for other in ((), *others)}
    assert len(nodes) == 7
