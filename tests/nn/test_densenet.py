"""DenseNet: norm and relu before each convolution, growing channels, transitions that halve both."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.mode import Mode
from nn.models import densenet121, densenet201
from nn.models.densenet import Dense, NormConv
from tests.nn.support import assert_close, draw, run, value


@pytest.mark.parametrize("window", [1, 3])
def test_relu_comes_before_the_convolution(window):
    """So that a filter of minus ones leaves negative sums of the positive pixels; sizes stay."""
    layer, x = nn.initialise(NormConv(1, 1, window)), draw(1, 1, 4, 5)
    layer.conv.weight.assign(np.full((1, 1, window, window), -1, np.float32))
    padded = np.pad(np.maximum(x[0, 0], 0) / np.sqrt(1 + 1e-5), window // 2)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window))
    assert_close(run(layer, x)[0, 0], -windows.sum((2, 3)), "float32 layers")
    assert list(layer.variables()) == ["norm.scale", "norm.shift", "norm.mean", "norm.variance", "conv.weight"]


def test_new_channels_stand_behind_those_there_were():
    layer, x = Dense(5), draw(2, 5, 3, 3)
    got = run(layer, x)
    assert got.shape == (2, 5 + 32, 3, 3)
    np.testing.assert_array_equal(got[:, :5], x)
    assert value(layer.narrow.conv.weight).shape == (128, 5, 1, 1)
    assert value(layer.grow.conv.weight).shape == (32, 128, 3, 3)


@pytest.mark.parametrize(
    ("build", "depths", "last"), [(densenet121, (6, 12, 24, 16), 1024), (densenet201, (6, 12, 48, 32), 1920)]
)
def test_blocks_grow_and_transitions_halve_as_in_the_papers_table(build, depths, last):
    """Sides 56, 28, 14 and 7; transitions halve channels and sides."""
    model = build(None, 7)
    x = cg.Var((1, 64, 56, 56))
    counts, ends = [0], []
    for part in model.parts:
        if isinstance(part, NormConv):
            ends.append(x.shape[1:])
            counts.append(0)
        counts[-1] += isinstance(part, Dense)
        x = part(x)
    ends.append(x.shape[1:])
    assert tuple(counts) == depths
    widths = [64 + 32 * depths[0]]
    for depth in depths[1:]:
        widths.append(widths[-1] // 2 + 32 * depth)
    assert ends == [(width, side, side) for width, side in zip(widths, (56, 28, 14, 7))]
    assert widths[-1] == last == model.classifier.inputs and model.classifier.outputs == 7


def test_the_whole_network_ends_in_norm_relu_and_the_mean():
    model = densenet121(None, 7)
    assert model(cg.Var((2, 3, 32, 32))).shape == (2, 7)
    assert model.samples[0].shape == (3, 224, 224)
    mode = Mode(training=True)
    model(cg.Var((2, 3, 32, 32)), mode=mode)
    norms = [x for x in model.layers().values() if isinstance(x, nn.BatchNorm)]
    assert len(norms) == 1 + 2 * 58 + 3 + 1
    assert mode.updates.keys() >= {x.mean for x in norms}
