"""Layers that draw: the moments of what they make at every rate, and nothing drawn in inference."""

import numpy as np
import pytest

import nn
from nn.layers.noise import SELU_FLOOR
from tests.nn.support import run

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


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.Recurrent])
@pytest.mark.parametrize("sequence", [False, True])
def test_the_layer_against_the_sequence_reads_it_backwards(kind, sequence):
    """And its states lie beside those of the same steps; each half has weights of its own."""
    both = nn.Bidirectional(kind(3, 4, sequence), kind(3, 2, sequence))
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    found = run(both, x)
    forward, backward = run(both.forward, x), run(both.backward, x[:, ::-1].copy())
    backward = backward[:, ::-1] if sequence else backward
    np.testing.assert_array_equal(found, np.concatenate([forward, backward], -1))
