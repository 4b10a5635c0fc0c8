"""Layers that draw: the moments of what they make at every rate, and nothing drawn in inference."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.layers.noise import SELU_FLOOR, check_rate
from tests.nn.support import draw, run
from tests.support.tolerance import assert_near, near

ONES = np.ones((300, 300), np.float32)
RATES = [0.0, 0.1, 0.5, 0.8]


def drawn(layer, x=ONES, seed=1):
    return run(layer, x, mode=nn.Mode(training=True, seed=seed)).astype("float64")


@pytest.mark.parametrize("rate", RATES)
def test_dropout_and_its_gaussian_twin_have_the_same_mean_and_variance(rate):
    """``rate / (1 - rate)``: of ones, within five standard deviations of 90,000 draws."""
    want = rate / (1 - rate)
    for layer in (nn.Dropout(rate), nn.GaussianDropout(rate)):
        found = drawn(layer)
        assert abs(found.mean() - 1) <= 5 * np.sqrt(want / found.size)
        assert abs(found.var() - want) <= 5 * want * np.sqrt(3 / found.size) + 1e-6 + want**2 * (rate > 0.5) / 20


@pytest.mark.parametrize("rate", RATES)
def test_alpha_dropout_puts_the_floor_of_selu_where_it_drops(rate):
    x = np.full((300, 300), 2.0, np.float32)
    found = drawn(nn.AlphaDropout(rate), x)
    keep = 1 - rate
    scale = (keep + SELU_FLOOR**2 * keep * rate) ** -0.5
    values = {2.0 * scale - scale * rate * SELU_FLOOR, SELU_FLOOR * scale - scale * rate * SELU_FLOOR}
    assert np.min([np.abs(found - v) for v in values], axis=0).max() < 1e-5
    low = min(values)
    assert abs((np.abs(found - low) < 1e-5).mean() - rate) < 0.01


@pytest.mark.parametrize("deviation", [0.0, 0.5, 3.0])
def test_noise_has_its_deviation(deviation):
    found = drawn(nn.GaussianNoise(deviation))
    assert abs(found.mean() - 1) <= 5 * deviation / 300
    assert abs(found.std() - deviation) <= 0.02 * deviation + 1e-6


@pytest.mark.parametrize(
    "layer", [nn.Dropout(0.5), nn.GaussianDropout(0.5), nn.AlphaDropout(0.5), nn.GaussianNoise(1.0)]
)
def test_inference_passes_its_operand_on(layer):
    np.testing.assert_array_equal(run(layer, ONES), ONES)
    np.testing.assert_array_equal(run(layer, ONES, mode=nn.Mode(training=False)), ONES)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, np.nan])
@pytest.mark.parametrize("kind", [nn.Dropout, nn.GaussianDropout, nn.AlphaDropout])
def test_a_rate_that_is_no_share_is_refused(kind, rate):
    with pytest.raises(ValueError, match="rate"):
        kind(rate)


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


def test_two_dropouts_in_one_model_drop_different_elements():
    x = np.ones((1, 1000), np.float32)
    model = nn.Branches((nn.Dropout(0.5), nn.Dropout(0.5)))
    one, two = run(model, x, mode=nn.Mode(training=True))
    assert not np.array_equal(one, two)


def test_the_floor_is_minus_the_product_of_selus_two_constants():
    assert near(-1.0507009873554805 * 1.6732632423543772, "float64 products") == SELU_FLOOR


@pytest.mark.parametrize("kind", [nn.Dropout, nn.AlphaDropout])
def test_a_rate_of_zero_draws_nothing(kind):
    mode = nn.Mode(training=True)
    x = cg.Var((3,))
    assert kind(0.0)(x, mode=mode) is x and not mode.updates
    assert kind().rate == 0.5
    assert kind()(x, mode=mode) is not x and list(mode.updates) == [mode.key]


@pytest.mark.parametrize("layer", [nn.GaussianNoise(1.0), nn.GaussianDropout(0.5)])
def test_each_call_draws_anew(layer):
    one, two = run(nn.Branches((layer, layer)), ONES, mode=nn.Mode(training=True))
    assert (one != two).mean() > 0.99


def test_one_noise_is_added_and_the_other_multiplied():
    x = draw(40, 50)
    added = drawn(nn.GaussianNoise(0.5), x) - x
    assert_near(added, drawn(nn.GaussianNoise(0.5), x * 0), "float32 formulas near zero")
    assert not drawn(nn.GaussianDropout(0.5), x * 0).any()


@pytest.mark.parametrize("rate", [-0.25, 1.0])
def test_the_refusal_names_the_rate_and_its_ends(rate):
    with pytest.raises(ValueError) as error:
        check_rate(rate)
    assert str(error.value) == f"rate is {rate}. Pass the probability of dropping an element, from 0 to below 1."
