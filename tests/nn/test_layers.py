"""Every layer against NumPy written out by hand."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.layers.window import pads
from tests.nn.support import assert_close, draw, run, value


def windows(x: np.ndarray, window: tuple, stride: tuple, pad: tuple, dilation: tuple, fill: float = 0.0) -> np.ndarray:
    """What each window sees: ``[n, c, *places, *window]``."""
    axes = len(window)
    x = np.pad(x, [(0, 0), (0, 0), *zip(pad[:axes], pad[axes:])], constant_values=fill)
    extent = [(w - 1) * d + 1 for w, d in zip(window, dilation)]
    seen = np.lib.stride_tricks.sliding_window_view(x, extent, tuple(range(2, 2 + axes)))
    steps = tuple(slice(None, None, s) for s in stride)
    inner = tuple(slice(None, None, d) for d in dilation)
    return seen[(slice(None), slice(None), *steps, *inner)]


def conv(x, weight, bias, stride, pad, dilation, groups):
    axes = x.ndim - 2
    seen = windows(x.astype(np.float64), weight.shape[2:], stride, pad, dilation)
    n, c, *rest = seen.shape
    seen = seen.reshape(n, groups, c // groups, *rest[:axes], -1)
    filters = weight.reshape(groups, weight.shape[0] // groups, c // groups, -1)
    found = np.einsum("ngc...w,gkcw->ngk...", seen, filters)
    return found.reshape(n, weight.shape[0], *rest[:axes]) + bias.reshape(-1, *[1] * axes)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("pad", "dilation", "groups"), [(0, 1, 1), (1, 2, 1), ("same", 1, 2), ((2, 0, 1, 1), 1, 4)])
def test_conv2d(stride, pad, dilation, groups):
    x = draw(2, 4, 9, 8)
    layer = nn.Conv2d(4, 8, 3, stride, pad, dilation, groups)
    got = run(layer, x)
    amount = pads(pad, x.shape[2:], (3, 3), (stride,) * 2, (dilation,) * 2)
    want = conv(x, value(layer.weight), value(layer.bias), (stride,) * 2, amount, (dilation,) * 2, groups)
    assert_close(got, want)


def test_conv1d_and_conv3d():
    for layer, shape in ((nn.Conv1d(3, 5, 4, 2, 1), (2, 3, 11)), (nn.Conv3d(2, 3, 2, 1, 1), (1, 2, 4, 5, 3))):
        axes = len(shape) - 2
        x = draw(*shape)
        got = run(layer, x)
        steps = (layer.stride,) * axes
        want = conv(x, value(layer.weight), value(layer.bias), steps, (1,) * 2 * axes, (1,) * axes, 1)
        assert_close(got, want)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transpose_conv_is_the_adjoint_of_conv(axes):
    forward = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](3, 4, 3, 2, 1, use_bias=False)
    back = (nn.TransposeConv1d, nn.TransposeConv2d, nn.TransposeConv3d)[axes - 1](4, 3, 3, 2, 1, use_bias=False)
    x = draw(2, 3, *[5] * axes)
    y = run(forward, x)
    back.weight.assign(forward.weight.value)
    g = draw(*y.shape, seed=1)
    assert_close(np.vdot(run(back, g), x), np.vdot(g, y), name="float32 layers")


def test_same_padding_gives_a_result_for_every_stride():
    for n in range(1, 9):
        for stride in (1, 2, 3):
            before, behind = pads("same", (n,), (3,), (stride,), (1,))
            assert (n + before + behind - 3) // stride + 1 == -(-n // stride)
            assert 0 <= behind - before <= 1


@pytest.mark.parametrize(("pad", "stride"), [(0, None), (1, 2), ("same", 2)])
def test_pools(pad, stride):
    x = draw(2, 3, 7, 6)
    step = (stride or 3,) * 2
    amount = pads(pad, x.shape[2:], (3, 3), step, (1, 1))
    largest = windows(x, (3, 3), step, amount, (1, 1), -np.inf).max((-1, -2))
    assert_close(run(nn.MaxPool2d(3, stride, pad), x), largest)
    counts = windows(np.ones_like(x), (3, 3), step, amount, (1, 1)).sum((-1, -2))
    sums = windows(x, (3, 3), step, amount, (1, 1)).sum((-1, -2))
    assert_close(run(nn.AvgPool2d(3, stride, pad), x), sums / counts)
    assert_close(run(nn.AvgPool2d(3, stride, pad, count_pad=True), x), sums / 9)


def test_pools_over_one_and_three_axes():
    x, y = draw(2, 3, 8), draw(1, 2, 4, 4, 4)
    assert_close(run(nn.MaxPool1d(2), x), x.reshape(2, 3, 4, 2).max(-1))
    assert_close(run(nn.AvgPool1d(2), x), x.reshape(2, 3, 4, 2).mean(-1))
    cubes = y.reshape(1, 2, 2, 2, 2, 2, 2, 2)
    assert_close(run(nn.MaxPool3d(2), y), cubes.max((3, 5, 7)))
    assert_close(run(nn.AvgPool3d(2), y), cubes.mean((3, 5, 7)))


def test_global_pools_up_sampling_and_padding():
    x = draw(2, 3, 4, 5)
    assert_close(run(nn.GlobalMaxPool(), x), x.max((2, 3)))
    assert_close(run(nn.GlobalAvgPool(keep=True), x), x.mean((2, 3), keepdims=True))
    assert_close(run(nn.UpSampling((2, 3)), x), x.repeat(2, 2).repeat(3, 3))
    assert_close(run(nn.Padding(1, (0, 2), 7.0), x), np.pad(x, [(0, 0), (0, 0), (1, 0), (1, 2)], constant_values=7.0))


def test_embedding():
    layer = nn.Embedding(7, 3)
    symbols = np.array([[1, 6], [0, 1]], np.int32)
    assert_close(run(layer, symbols), value(layer.weight)[symbols])


def test_merging_layers():
    x, y, z = draw(2, 4), draw(2, 4, seed=1), draw(2, 4, seed=2)
    assert_close(run(nn.Add(), x, y, z), x + y + z)
    assert_close(run(nn.Mul(), x, y, z), x * y * z)
    assert_close(run(nn.Max(), x, y, z), np.maximum(np.maximum(x, y), z))
    assert_close(run(nn.Average(), x, y, z), (x + y + z) / 3)
    assert_close(run(nn.Concatenate(), x, y), np.concatenate([x, y], 1))
    assert_close(run(nn.Dot(), x, y.T.copy()), x @ y.T)


def test_lambda_layers_and_activations():
    x, y = draw(2, 4), draw(2, 4, seed=1)
    assert_close(run(nn.Lambda(lambda a: a * 2 + 1), x), x * 2 + 1)
    assert_close(run(nn.LambdaArray(lambda a, b: a - b), x, y), x - y)
    assert_close(run(nn.Activation("relu"), x), np.maximum(x, 0))
    soft = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    assert_close(run(nn.Activation("softmax"), x), soft)
    assert_close(run(nn.Activation(cg.tanh), x), np.tanh(x))
    with pytest.raises(ValueError, match="activation 'rleu' is unknown"):
        nn.Activation("rleu")


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_attention(causal):
    x = draw(2, 5, 8)
    layer = nn.MultiHeadAttention(8, 2, causal)
    got = run(layer, x)
    heads = []
    q, k, v = (x @ value(part.weight) + value(part.bias) for part in (layer.query, layer.key, layer.value))
    for i in range(2):
        columns = slice(4 * i, 4 * i + 4)
        scores = q[..., columns] @ k[..., columns].swapaxes(1, 2) / 2
        if causal:
            scores[:, ~np.tri(5, dtype=bool)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        heads.append(weights / weights.sum(-1, keepdims=True) @ v[..., columns])
    assert_close(
        got, np.concatenate(heads, -1) @ value(layer.output.weight) + value(layer.output.bias), name="float32 layers"
    )


def test_attention_to_other_positions_with_a_mask():
    x, y = draw(1, 2, 4), draw(1, 3, 4, seed=1)
    layer = nn.MultiHeadAttention(4, 1)
    mask = np.array([[True, False, False], [True, True, False]])
    got = run(layer, x, y, mask)
    v = y[0] @ value(layer.value.weight)
    assert_close(
        got[0, 0], v[0] @ value(layer.output.weight), name="float32 layers"
    )  # the first query sees the first key alone
    assert_close(run(layer, x, y[:, :2].copy(), mask[:, :2].copy()), got, name="float32 layers")
