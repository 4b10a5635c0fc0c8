"""Pooling layers by hand: unequal windows and strides, rounding up, padding, factors and margins."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import ShapeError
from nn.layers.pool import geometry
from tests.nn.support import assert_close, draw, run

X = np.arange(30, dtype="f4").reshape(1, 1, 5, 6)


def test_windows_and_strides_of_each_axis_are_its_own():
    assert run(nn.MaxPool2d((2, 3)), X)[0, 0].tolist() == [[8, 11], [20, 23]]
    assert run(nn.MaxPool2d((2, 3), (3, 2)), X)[0, 0].tolist() == [[8, 10], [26, 28]]
    assert run(nn.AvgPool2d((1, 2), (4, 4)), X)[0, 0].tolist() == [[0.5, 4.5], [24.5, 28.5]]
    assert run(nn.MaxPool2d(), X).shape == (1, 1, 2, 3)


def test_a_last_window_may_extend_beyond_the_edge():
    assert run(nn.MaxPool2d((2, 4), ceil=True), X)[0, 0].tolist() == [[9, 11], [21, 23], [27, 29]]
    assert run(nn.AvgPool2d((2, 4), ceil=True), X)[0, 0].tolist() == [[4.5, 7.5], [16.5, 19.5], [25.5, 28.5]]


def test_padding_is_never_the_maximum_and_counts_in_a_mean_where_asked():
    x = -1 - X
    assert run(nn.MaxPool2d(2, pad=(1, 0, 0, 0)), x)[0, 0, 0].tolist() == [-1, -3, -5]
    assert run(nn.AvgPool2d(2, pad=(1, 0, 0, 0)), x)[0, 0, 0].tolist() == [-1.5, -3.5, -5.5]
    assert run(nn.AvgPool2d(2, pad=(1, 0, 0, 0), count_pad=True), x)[0, 0, 0].tolist() == [-0.75, -1.75, -2.75]


def test_geometry_gives_window_stride_and_padding():
    class Shape:
        shape = (1, 1, 5, 6)

    assert geometry(nn.MaxPool2d((2, 3)), Shape()) == ((2, 3), (2, 3), (0,) * 4)
    assert geometry(nn.AvgPool2d((2, 3), (1, 4), "same"), Shape()) == ((2, 3), (1, 4), (0, 0, 1, 1))


def test_one_and_three_axes_have_windows_of_their_own():
    x = np.arange(24, dtype="f4")
    assert run(nn.MaxPool1d(3, 4), x[:9].reshape(1, 1, 9))[0, 0].tolist() == [2, 6]
    assert run(nn.AvgPool1d(3, 2), x[:5].reshape(1, 1, 5))[0, 0].tolist() == [1, 3]
    volume = x.reshape(1, 1, 2, 3, 4)
    assert run(nn.MaxPool3d((1, 3, 2)), volume)[0, 0].tolist() == [[[9, 11]], [[21, 23]]]
    assert run(nn.AvgPool3d((2, 1, 4)), volume)[0, 0].tolist() == [[[7.5], [11.5], [15.5]]]


def test_whole_images_keep_their_axes_only_where_asked():
    x = draw(2, 3, 4, 5)
    for layer, want in ((nn.GlobalMaxPool, x.max((2, 3))), (nn.GlobalAvgPool, x.mean((2, 3)))):
        assert_close(run(layer(), x), want)
        assert run(layer(), x).shape == (2, 3) and run(layer(keep=True), x).shape == (2, 3, 1, 1)
        assert run(layer(keep=True), x).ravel().tolist() == run(layer(), x).ravel().tolist()


def test_factors_and_margins_are_by_axis():
    x = np.array([[[[1, 2]]]], "f4")
    assert run(nn.UpSampling((2, 3)), x)[0, 0].tolist() == [[1, 1, 1, 2, 2, 2]] * 2
    assert run(nn.UpSampling(), x).shape == (1, 1, 2, 4)
    assert run(nn.Padding((1, 0), (0, 2), 7.0), x)[0, 0].tolist() == [[7, 7, 7, 7], [1, 2, 7, 7]]
    assert run(nn.Padding(0, 1), x)[0, 0].tolist() == [[1, 2, 0], [0, 0, 0]]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5, 2)], ids=str)
def test_pools_of_whole_samples_take_any_number_of_axes(shape):
    x, axes = draw(*shape), tuple(range(2, len(shape)))
    for keep in (False, True):
        assert_close(run(nn.GlobalMaxPool(keep), x), x.max(axes, keepdims=keep))
        assert_close(run(nn.GlobalAvgPool(keep), x), x.mean(axes, keepdims=keep))
    assert run(nn.UpSampling(3), x).shape == (2, 3, *(3 * n for n in shape[2:]))


@pytest.mark.parametrize("kind", [nn.MaxPool2d, nn.AvgPool2d])
@pytest.mark.parametrize("stride", [0, (0, 1), (1, 0), -1], ids=str)
def test_a_stride_is_at_least_one_and_nothing_stands_for_the_window(kind, stride):
    with pytest.raises(ShapeError):
        kind(2, stride)(cg.Var((1, 1, 5, 6)))
    assert kind(2, None)(cg.Var((1, 1, 5, 6))).shape == (1, 1, 2, 3)
