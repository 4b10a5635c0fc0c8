"""Norms against NumPy: axes, eps, running statistics, frozen layers and PyTorch's names."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.torch_names import TorchNames
from tests.nn.support import assert_close, draw, run, value
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("groups", [1, 3, 6])
def test_group_and_instance_norm(groups):
    x = draw(2, 6, 4, 3)
    layer = nn.GroupNorm(groups, 6) if groups < 6 else nn.InstanceNorm(6)
    grouped = x.astype(np.float64).reshape(2, groups, -1)
    want = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    layer.scale.assign(draw(6, seed=1))
    layer.shift.assign(draw(6, seed=2))
    scale, shift = value(layer.scale)[:, None, None], value(layer.shift)[:, None, None]
    assert_close(run(layer, x), want.reshape(x.shape) * scale + shift, name="float32 layers")


def test_layer_norm():
    x = draw(2, 3, 8)
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    assert_close(run(nn.LayerNorm(8), x), want, name="float32 layers")


def test_batch_norm_uses_running_statistics_in_inference():
    norm = nn.initialise(nn.BatchNorm(2, eps=0.0), 0)
    norm.mean.assign([1.0, 2.0])
    norm.variance.assign([4.0, 0.25])
    x = draw(5, 2, 3)
    want = (x - np.array([1, 2]).reshape(2, 1)) / np.array([2, 0.5]).reshape(2, 1)
    assert_close(run(norm, x), want)
    assert_close(nn.compile(norm, 3, [nn.Sample((2, 3))])(x), want)


def test_batch_norm_uses_the_batch_in_training_and_moves_the_running_statistics():
    norm = nn.initialise(nn.BatchNorm(2, eps=0.0, decay=0.75), 0)
    x = draw(5, 2, 3) * 3 + 1
    mode = nn.Mode(training=True)
    mean, variance = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
    assert_close(run(norm, x, mode=mode), (x - mean) / np.sqrt(variance), name="float32 layers")
    assert_close(norm.mean.value, 0.25 * mean.ravel())
    assert_close(norm.variance.value, 0.75 + 0.25 * x.var((0, 2), ddof=1))


def test_running_statistics_converge_to_those_of_the_data():
    norm = nn.initialise(nn.BatchNorm(1), 0)
    mode = nn.Mode(training=True)
    x = cg.Var((200, 1))
    step = cg.compile(norm(x, mode=mode), [x], updates=mode.updates, engine="reference")
    for seed in range(100):
        step(draw(200, 1, seed=seed) * 2 + 100)
    assert abs(norm.mean.value[0] - 100) < 0.5
    assert abs(norm.variance.value[0] - 4) < 0.5


def test_a_frozen_norm_stays_as_it_is_in_training():
    norm = nn.initialise(nn.BatchNorm(3, frozen=True), 0)
    assert norm.parameters() == {}
    x = draw(10, 3)
    mode = nn.Mode(training=True)
    given = cg.Var(x.shape)
    assert_near(
        cg.compile(norm(given, mode=mode), [given])(x),
        nn.compile(norm, 10, [nn.Sample((3,))])(x),
        "float64 through float32",
    )
    assert set(mode.updates) <= {mode.key}


def test_a_norm_used_twice_updates_its_statistics_twice():
    norm = nn.initialise(nn.BatchNorm(1, decay=0.5), 0)
    run(nn.Branches((norm, norm)), np.full((4, 1), 8, np.float32), mode=nn.Mode(training=True))
    assert_close(norm.mean.value, np.array([6.0]))  # 0 -> 4 -> 6


def test_the_gradient_flows_through_the_statistics_of_the_batch():
    norm = nn.initialise(nn.BatchNorm(1, eps=0.0), 0)
    x = cg.Var((4, 1)).assign([[1.0], [2], [4], [9]])
    y = norm(x, mode=nn.Mode(training=True))
    weights = cg.Const(np.array([[1.0], [3], [-2], [1]], np.float32))
    (g,) = [cg.compile(cg.gradient(cg.sum(y * weights), x), engine="reference")()]
    assert abs(g.sum()) < 1e-6  # adding a number to all of x changes nothing
    assert abs((g * x.value).sum()) < 1e-5  # nor does scaling them
    assert np.abs(g).max() > 0.01


def test_layer_and_rms_norm_scale_the_last_axis():
    x, scale, shift = draw(2, 3, 5), draw(5, seed=1), draw(5, seed=2)
    layer, root = nn.initialise(nn.LayerNorm(5, eps=0.5)), nn.initialise(nn.RMSNorm(5, eps=0.5))
    for parameter, array in ((layer.scale, scale), (layer.shift, shift), (root.scale, scale)):
        parameter.assign(array)
    centred = x - x.mean(-1, keepdims=True)
    assert_close(run(layer, x), centred / np.sqrt(x.var(-1, keepdims=True) + 0.5) * scale + shift, "float32 layers")
    assert_close(run(root, x), x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.5) * scale, "float32 layers")


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm(1), nn.GroupNorm(1, 1), nn.InstanceNorm(1), nn.LayerNorm(2), nn.RMSNorm(2)]
)
def test_eps_is_a_hundred_thousandth(norm):
    """Of numbers whose variance, or mean square, is as large, the root of 2 is left."""
    size = 1e-5**0.5
    x = np.array([[[-size, size]]], np.float32)
    got = run(norm, x, mode=nn.Mode(training=True))
    assert_close(got, np.array([[[-1, 1]]]) / 2**0.5, "float32 layers")


def test_instance_norm_takes_each_channel_by_itself_and_its_eps():
    norm = nn.InstanceNorm(6, 0.25)
    assert (norm.groups, norm.channels, norm.eps) == (6, 6, 0.25)


def test_the_running_variance_is_the_unbiased_one_and_of_one_number_zero():
    norm = nn.initialise(nn.BatchNorm(1, decay=0.75), 0)
    run(norm, np.full((1, 1), 8, np.float32), mode=nn.Mode(training=True))
    np.testing.assert_array_equal([norm.mean.value, norm.variance.value], [[2.0], [0.75]])
    two = nn.initialise(nn.BatchNorm(1), 0)
    run(two, np.array([[1], [3]], np.float32), mode=nn.Mode(training=True))
    assert_close(np.array([two.mean.value, two.variance.value]), np.array([[0.2], [0.9 + 0.1 * 2]]))


def test_a_norm_without_scale_still_shifts():
    norm = nn.initialise(nn.BatchNorm(2, eps=0.0, scaled=False), 0)
    assert list(norm.parameters()) == ["shift"]
    norm.shift.assign([1.0, -1.0])
    x = np.array([[1, 2], [3, 6]], np.float32)
    assert_close(run(norm, x, mode=nn.Mode(training=True)), np.array([[0, -2], [2, 0]]), "float32 layers")
    norm.mean.assign([1.0, 2.0])
    norm.variance.assign([4.0, 0.25])
    assert_close(run(norm, x), np.array([[1, -1], [2, 7]]), "float32 layers")


@pytest.mark.parametrize(
    ("norm", "names"),
    [
        (nn.BatchNorm(1), {"scale": "weight", "shift": "bias", "mean": "running_mean", "variance": "running_var"}),
        (nn.BatchNorm(1, scaled=False), {"shift": "bias", "mean": "running_mean", "variance": "running_var"}),
        (nn.GroupNorm(1, 1), {"scale": "weight", "shift": "bias"}),
        (nn.LayerNorm(1), {"scale": "weight", "shift": "bias"}),
        (nn.RMSNorm(1), {"scale": "weight"}),
    ],
)
def test_each_statistic_has_its_name_in_torch(norm, names):
    arrays = {name: np.array([float(i)]) for i, name in enumerate(("weight", "bias", "running_mean", "running_var"))}
    values = norm.from_torch(TorchNames(arrays))
    assert {name: float(x[0]) for name, x in values.items()} == {n: float(arrays[t][0]) for n, t in names.items()}
