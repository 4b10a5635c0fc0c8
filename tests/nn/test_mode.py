"""Training and inference: what the ancestor does wrongly in compiled networks must be right here."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import UnassignedError
from tests.nn.support import assert_close, draw, run
from tests.support.tolerance import assert_near


def test_compiled_inference_does_not_drop_out():
    model = nn.Sequential(nn.Input((1000,)), nn.Dropout(0.5), nn.GaussianNoise(1.0), nn.AlphaDropout(0.5))
    x = np.ones((3, 1000), np.float32)
    np.testing.assert_array_equal(nn.compile(model, batch=2)(x), x)


def test_training_drops_out_and_keeps_the_mean():
    x = np.ones((100, 100), np.float32)
    got = run(nn.Dropout(0.25), x, mode=nn.Mode(training=True, seed=1))
    assert abs((got == 0).mean() - 0.25) < 0.02
    assert set(np.unique(got)) == {np.float32(0), np.float32(1 / 0.75)}


@pytest.mark.parametrize("layer", [nn.AlphaDropout(0.3), nn.GaussianDropout(0.3), nn.GaussianNoise(0.5)])
def test_noise_keeps_the_mean(layer):
    x = draw(200, 200)
    got = run(layer, x, mode=nn.Mode(training=True))
    assert not np.array_equal(got, x)
    assert abs(got.mean() - x.mean()) < 0.02


def test_alpha_dropout_keeps_the_variance():
    got = run(nn.AlphaDropout(0.3), draw(300, 300), mode=nn.Mode(training=True))
    assert abs(got.std() - 1) < 0.02


def test_the_random_key_advances_by_its_update_edge():
    mode = nn.Mode(training=True, seed=3)
    x = cg.Var((50,)).assign(np.ones(50, np.float32))
    function = cg.compile(nn.Dropout(0.5)(x, mode=mode), updates=mode.updates, engine="reference")
    first, second = function(), function()
    assert not np.array_equal(first, second)
    again = nn.Mode(training=True, seed=3)
    same = cg.compile(nn.Dropout(0.5)(x, mode=again), updates=again.updates, engine="reference")
    np.testing.assert_array_equal(same(), first)
    np.testing.assert_array_equal(same(), second)


def test_two_dropouts_in_one_model_drop_different_elements():
    x = np.ones((1, 1000), np.float32)
    model = nn.Branches((nn.Dropout(0.5), nn.Dropout(0.5)))
    one, two = run(model, x, mode=nn.Mode(training=True))
    assert not np.array_equal(one, two)


def test_inference_draws_no_random_numbers():
    with pytest.raises(ValueError, match="has no random key"):
        nn.Mode().next_key()


def test_weights_never_resample():
    model = nn.models.mlp(5, (6, 4, 2))
    x = draw(3, 6)
    before = {path: v.value for path, v in model.variables().items()}
    live, frozen = nn.compile(model, frozen=False), nn.compile(model)
    np.testing.assert_array_equal(live(x), live(x))
    np.testing.assert_array_equal(frozen(x), frozen(x))
    nn.initialise(model, 99)
    for path, v in model.variables().items():
        np.testing.assert_array_equal(v.value, before[path])


def test_weights_depend_on_seed_and_path_alone():
    one, two, other = nn.models.mlp(1, (6, 4, 2)), nn.models.mlp(1, (6, 4, 2, 2)), nn.models.mlp(2, (6, 4, 2))
    assert one.parameters().keys() < two.parameters().keys()
    weight = "parts.1.weight"
    np.testing.assert_array_equal(one.parameters()[weight].value, two.parameters()[weight].value)
    assert not np.array_equal(one.parameters()[weight].value, other.parameters()[weight].value)


def test_a_model_without_weights_says_so():
    with pytest.raises(UnassignedError, match=r"such as parts\.1\.weight\. Call nn\.initialise"):
        nn.compile(nn.models.mlp(None, (6, 4, 2)))


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


@pytest.mark.parametrize("count", [0, 1, 3, 8, 9, 21])
def test_compiled_inference_takes_any_number_of_samples(count):
    model = nn.models.mlp(0, (6, 4, 2))
    x = draw(count, 6)
    got = nn.compile(model, batch=8)(x)
    assert got.shape == (count, 2)
    if count:
        assert_close(got, run(model, x))


def test_compiled_inference_of_several_inputs_and_outputs():
    model = nn.Branches((nn.Add(), nn.Mul()))
    predict = nn.compile(model, batch=4, samples=[nn.Sample((3,)), nn.Sample((3,))])
    x, y = draw(7, 3), draw(7, 3, seed=1)
    total, product = predict(x, y)
    assert_close(total, x + y)
    assert_close(product, x * y)
    with pytest.raises(cg.InputError, match="7, 6 samples"):
        predict(x, y[:6])
    with pytest.raises(cg.InputError, match="takes 2 inputs"):
        predict(x)
    with pytest.raises(cg.InputError, match=r"float32\[7, 2\], the model takes float32\[any,3\]"):
        predict(x, y[:, :2].copy())


def test_frozen_inference_keeps_its_weights_and_live_inference_follows():
    model = nn.models.mlp(0, (6, 2))
    x = draw(2, 6)
    frozen, live = nn.compile(model), nn.compile(model, frozen=False)
    before = frozen(x)
    model.parameters()["parts.1.bias"].assign([1.0, 1.0])
    np.testing.assert_array_equal(frozen(x), before)
    assert_close(live(x), before + 1)


def test_freezing_keeps_shared_layers_shared():
    shared = nn.initialise(nn.Linear(4, 4), 0)
    frozen = nn.freeze(nn.Sequential(shared, shared))
    assert frozen.parts[0] is frozen.parts[1]
    assert not frozen.variables()
