"""Gradients flow through every layer to every weight, and agree with differences of the loss."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.layer import initialise
from tests.nn.support import draw

LAYERS = {
    "linear": (nn.Linear(4, 3), (2, 4)),
    "fully_connected": (nn.FullyConnected(8, 3), (2, 2, 4)),
    "conv1d": (nn.Conv1d(2, 3, 3, pad=1), (2, 2, 5)),
    "conv2d": (nn.Conv2d(4, 4, 3, 2, 1, 1, 2), (2, 4, 5, 5)),
    "depthwise": (nn.Conv2d(4, 4, 3, pad="same", groups=4), (1, 4, 4, 4)),
    "dilated": (nn.Conv2d(2, 3, 3, dilation=2), (1, 2, 6, 6)),
    "conv3d": (nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3)),
    "transpose_conv": (nn.TransposeConv2d(3, 2, 3, 2, 1), (1, 3, 3, 3)),
    "batch_norm": (nn.BatchNorm(3), (4, 3, 2)),
    "layer_norm": (nn.LayerNorm(6), (3, 6)),
    "group_norm": (nn.GroupNorm(2, 4), (2, 4, 3)),
    "avg_pool": (nn.AvgPool2d(2), (1, 2, 4, 4)),
    "max_pool": (nn.MaxPool2d(2), (1, 2, 4, 4)),
    "recurrent": (nn.Recurrent(3, 4), (2, 3, 3)),
    "lstm": (nn.LSTM(3, 4, True), (2, 3, 3)),
    "gru": (nn.GRU(3, 4), (2, 3, 3)),
    "attention": (nn.MultiHeadAttention(4, 2, causal=True), (2, 3, 4)),
    "decoding attention": (nn.MultiHeadAttention(8, 4, True, 2, 100.0, 2, True), (2, 3, 8)),
    "rms_norm": (nn.RMSNorm(6), (3, 6)),
    "swiglu": (nn.SwiGLU(3, 4), (2, 3)),
    "residual": (nn.Residual(nn.Linear(3, 3)), (2, 3)),
    "conv_norm": (nn.ConvNorm(2, 3, 3, pad=1, function="tanh"), (2, 2, 4, 4)),
}
STEP = 1e-2


@pytest.mark.parametrize("name", LAYERS)
def test_gradient_agrees_with_differences(name):
    layer, shape = LAYERS[name]
    initialise(layer, 0)
    x = cg.Var(shape).assign(draw(*shape))
    result = layer(x, mode=nn.Mode(training=True))
    loss = cg.sum(cg.sin(result) * cg.Const(draw(*result.shape, seed=3)))
    variables = [x, *layer.parameters().values()]
    found = cg.compile([loss, *cg.gradient(loss, variables)], engine="reference")
    before, *gradients = found()
    assert all(np.isfinite(g).all() for g in gradients)
    for variable, g in zip(variables, gradients):
        value, along = variable.value, draw(*variable.shape, seed=5)
        along /= np.linalg.norm(along)
        losses = []
        for sign in (1, -1):
            variable.assign(value + np.float32(sign * STEP) * along)
            losses.append(float(found()[0]))
        variable.assign(value)
        slope = (losses[0] - losses[1]) / (2 * STEP)
        assert abs(slope - np.vdot(g, along)) < 0.02 * (1 + abs(slope)), f"{name} at {before}"


@pytest.mark.parametrize("name", [name for name in LAYERS if not name.endswith("pool")])
def test_every_weight_has_a_gradient(name):
    layer, shape = LAYERS[name]
    initialise(layer, 0)
    x = cg.Var(shape).assign(draw(*shape))
    loss = cg.sum(cg.square(layer(x, mode=nn.Mode(training=True)) - 0.3))
    variables = layer.parameters()
    for path, g in zip(variables, cg.compile(cg.gradient(loss, list(variables.values())), engine="reference")()):
        if not (name.endswith("attention") and path == "key.bias"):  # softmax does not see what all keys share
            assert np.abs(g).max() > 1e-6, path
