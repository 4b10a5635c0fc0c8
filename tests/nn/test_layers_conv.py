"""Convolution layers by hand: unequal sizes on each axis, groups, biases, the length of a transpose."""

import numpy as np
import pytest

import cgraph as cg
import nn
from tests.nn.support import assert_close, draw, run, value


def direct(x, weight, bias, stride, pad, dilation):
    """The cross-correlation as its definition says, by element."""
    (top, left, bottom, right), (k, _, r, s) = pad, weight.shape
    x = np.pad(x.astype("f8"), [(0, 0), (0, 0), (top, bottom), (left, right)])
    p, q = ((n - (w - 1) * d - 1) // m + 1 for n, w, m, d in zip(x.shape[2:], (r, s), stride, dilation))
    out = np.zeros((len(x), k, p, q)) + bias[:, None, None]
    for i, j, a, b in np.ndindex(p, q, r, s):
        out[:, :, i, j] += (
            x[:, :, i * stride[0] + a * dilation[0], j * stride[1] + b * dilation[1]] @ weight[:, :, a, b].T
        )
    return out


@pytest.mark.parametrize(("pad", "amount"), [((1, 2, 0, 3), (1, 2, 0, 3)), ((1, 2), (1, 2, 1, 2)), ("valid", (0,) * 4)])
def test_sizes_of_each_axis_are_its_own(pad, amount):
    layer, x = nn.Conv2d(2, 5, (3, 2), (2, 3), pad, (1, 2)), draw(2, 2, 8, 9)
    nn.initialise(layer, 0)
    bias = np.arange(5, dtype="f4")
    layer.bias.assign(bias)
    v = cg.Var(x.shape)
    (got,) = cg.compile([layer(v)], [v])(x)
    assert_close(got, direct(x, value(layer.weight), bias, (2, 3), amount, (1, 2)))


def test_filters_have_the_channels_of_a_group_and_the_bias_those_of_the_result():
    for kind, window in ((nn.Conv1d, (4,)), (nn.Conv2d, (4, 3)), (nn.Conv3d, (4, 3, 2))):
        layer = kind(6, 10, window, groups=2)
        assert layer.weight.shape == (10, 3, *window) and layer.bias.shape == (10,)
    for kind, window in ((nn.TransposeConv1d, (4,)), (nn.TransposeConv2d, (4, 3)), (nn.TransposeConv3d, (4, 3, 2))):
        layer = kind(6, 10, window, groups=2)
        assert layer.weight.shape == (6, 5, *window) and layer.bias.shape == (10,)
        assert kind(6, 10, window, use_bias=False).bias is None


def test_a_depthwise_layer_filters_each_channel_alone():
    layer, x = nn.Conv2d(3, 3, 2, groups=3, use_bias=False), draw(1, 3, 4, 4)
    whole, moved = run(layer, x), x.copy()
    moved[:, 1] += 1
    assert (run(layer, moved) != whole).any((0, 2, 3)).tolist() == [False, True, False]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_transpose_has_the_length_of_its_formula_and_adds_its_bias(axes):
    h, stride, dilation, window, cut = (4, 3, 2)[:axes], (2, 3, 1)[:axes], (1, 2, 3)[:axes], (3, 2, 2)[:axes], 1
    kind = (nn.TransposeConv1d, nn.TransposeConv2d, nn.TransposeConv3d)[axes - 1]
    layer, x = kind(2, 4, window, stride, cut, dilation), draw(1, 2, *h)
    plain = run(layer, x)
    want = [(n - 1) * s + d * (w - 1) + 1 - 2 * cut for n, s, d, w in zip(h, stride, dilation, window)]
    assert plain.shape == (1, 4, *want)
    layer.bias.assign(np.array([0, 1, 2, 3], "f4"))
    v = cg.Var(x.shape)
    (got,) = cg.compile([layer(v)], [v], engine="reference")(x)
    assert_close(got, plain + np.arange(4.0).reshape(1, 4, *[1] * axes))


@pytest.mark.parametrize("kind", [nn.Conv1d, nn.Conv2d, nn.Conv3d])
def test_same_padding_counts_the_stride_and_the_dilation_of_each_axis(kind):
    """As many results as elements, divided by the stride; an odd element goes to the end."""
    axes = kind.axes
    sides, stride, dilation = (7, 8, 9)[:axes], (2, 1, 3)[:axes], (3, 2, 1)[:axes]
    layer, x = kind(1, 1, 2, stride, "same", dilation, use_bias=False), draw(1, 1, *sides)
    got = run(layer, x)
    assert got.shape[2:] == tuple(-(-n // s) for n, s in zip(sides, stride))
    padding = [(-(-n // s) - 1) * s + d + 1 - n for n, s, d in zip(sides, stride, dilation)]
    wide = np.pad(x[0, 0], [(max(n, 0) // 2, max(n, 0) - max(n, 0) // 2) for n in padding]).astype("f8")
    first = tuple(slice(0, (m - 1) * s + 1, s) for m, s in zip(got.shape[2:], stride))
    want = sum(
        value(layer.weight)[0, 0][tap] * wide[tuple(slice(t * d, None) for t, d in zip(tap, dilation))][first]
        for tap in np.ndindex(*(2,) * axes)
    )
    assert_close(got[0, 0], want)
