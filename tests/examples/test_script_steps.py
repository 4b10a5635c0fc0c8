"""Steps of the scripts of NumPy users, run by NumPy on few numbers: what each is known to compute."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.tolerance import assert_near

SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "scripts"
RNG = np.random.default_rng(0)


def script(name):
    return SimpleNamespace(**runpy.run_path(str(SCRIPTS / f"{name}.py")))


def test_a_picture_is_sharpened_by_what_a_gauss_takes_away():
    ndimage = pytest.importorskip("scipy.ndimage", reason="scipy is not installed")
    blur, x = script("blur"), RNG.random((9, 11, 3))
    smooth = np.stack([ndimage.gaussian_filter(x[..., i], 1, mode="mirror", radius=3) for i in range(3)], 2)
    assert_near(blur.blur(x, blur.gauss(1)), smooth, "float64 formulas")
    sharp = np.clip(x + 1.5 * (x - smooth), 0, 1) * 255
    assert np.abs(blur.sharpen(x, 1) - np.floor(sharp)).max() <= 1


def test_tones_below_the_threshold_are_left_out():
    t = np.arange(64) / 64
    loud, quiet = np.sin(2 * np.pi * 5 * t), 0.2 * np.cos(2 * np.pi * 9 * t)
    assert_near(script("fft_filter").denoise(loud + quiet), loud, "float64 formulas near zero")
    both = script("fft_filter").denoise(loud + quiet, threshold=0.03)
    assert_near(both, loud + quiet, "float64 formulas near zero")


def test_heat_flows_to_the_four_neighbours():
    heat, x = script("heat"), RNG.random((5, 7))
    want = x.copy()
    for r in range(1, 4):
        for c in range(1, 6):
            want[r, c] += 0.3 * (x[r - 1, c] + x[r + 1, c] + x[r, c - 1] + x[r, c + 1] - 4 * x[r, c])
    assert_near(heat.step(x.copy(), 0.3), want, "float64 formulas")
    assert_near(heat.run(heat.step, x.copy(), 2, 0.3), heat.step(want, 0.3), "float64 formulas")


def test_a_filter_follows_a_constant_speed_and_predicts_by_it():
    kalman = script("kalman")
    found = kalman.with_numpy(3 + 2 * kalman.DT * np.arange(2000.0))
    assert found.shape == (2000, 2)
    assert_near(found[-1], [3 + 2 * kalman.DT * 1999, 2], "float64 conditioned")


def test_centers_move_to_the_means_of_their_points_and_stay_without_any():
    kmeans = script("kmeans")
    points, centers = np.array([[0.0, 0], [2, 0], [10, 4]]), np.array([[1.0, 1], [9, 9], [-50, 0]])
    new, moved = kmeans.step(points, centers)
    assert new.tolist() == [[1, 0], [10, 4], [-50, 0]] and moved == 5
    assert kmeans.run(kmeans.step, points, centers)[1] == 2
    assert kmeans.run(kmeans.step, points, centers, most=1)[1] == 1


def test_a_glider_moves_down_and_to_the_right_round_the_torus():
    life, field = script("life"), np.zeros((6, 8), np.uint8)
    field[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    moved = life.run(life.step, field.copy(), 4)
    np.testing.assert_array_equal(moved, np.roll(field, (1, 1), (0, 1)))
    np.testing.assert_array_equal(life.run(life.step, field.copy(), 4 * 24), field)


def test_slopes_of_a_regression_are_those_of_its_cost():
    logistic = script("logistic")
    X, y = logistic.start(20, 3)
    params = {"w": RNG.normal(size=3), "b": np.float64(0.3)}
    new, value = logistic.step(params, X, y, 0.5)
    assert value == logistic.cost(params, X, y)
    for name in params:
        for i in np.ndindex(np.shape(params[name])):
            ends = [{key: np.array(x) for key, x in params.items()} for _ in range(2)]
            ends[0][name][i] += 1e-5
            ends[1][name][i] -= 1e-5
            slope = (logistic.cost(ends[0], X, y) - logistic.cost(ends[1], X, y)) / 2e-5
            assert_near((params[name][i] - new[name][i]) / 0.5, slope, "central differences")


def test_points_diverge_in_the_round_in_which_their_size_exceeds_two():
    mandelbrot, C = script("mandelbrot"), np.array([[0, -1, 1j], [2.1, 1, 0.5 + 0.5j]])
    want = np.full(C.shape, 9)
    for at in np.ndindex(C.shape):
        z = 0
        for i in range(9):
            z = z**2 + C[at]
            if abs(z) > 2:
                want[at] = i
                break
    np.testing.assert_array_equal(mandelbrot.run(mandelbrot.step, C, 9), want)
    assert {0, 2, 9} <= {*want.ravel().tolist()}


def test_bodies_attract_one_another_and_keep_their_momentum():
    nbody = script("nbody")
    pos, vel, mass = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3)), RNG.random((4, 1)) + 1
    want = np.zeros((4, 3))
    for i, j in np.ndindex(4, 4):
        between = pos[j] - pos[i]
        want[i] += 2.0 * mass[j] * between / ((between**2).sum() + 0.25) ** 1.5
    acc = nbody.acceleration(pos, mass, 2.0, 0.5)
    assert_near(acc, want, "float64 formulas near zero")
    new_pos, new_vel, new_acc = nbody.step(pos.copy(), vel.copy(), acc, mass, 0.01, 2.0, 0.5)
    assert_near(new_pos, pos + 0.01 * (vel + 0.005 * acc), "float64 formulas near zero")
    assert_near(new_vel, vel + 0.005 * (acc + new_acc), "float64 formulas near zero")
    assert_near((mass * new_vel).sum(0), (mass * vel).sum(0), "float64 formulas near zero")


@pytest.mark.parametrize(("K", "payoff"), [(100.0, 5.0), (110.0, 0.0)])
def test_without_volatility_a_price_is_what_is_paid_for_certain(K, payoff):
    """The mean of 100, grown by the rate, over two steps of half a year."""
    rate = 2 * np.log(1.05 / 1.025)
    mean, err = script("option").price(RNG, 100.0, K, 1.0, rate, 0.0, steps=2, paths=5)
    grown = 100 * (np.exp(rate / 2) + np.exp(rate)) / 2
    assert_near(mean, np.exp(-rate) * max(grown - K, 0), "float64 formulas near zero")
    assert (mean > 0) == (payoff > 0)
    assert_near(err, 0, "float64 formulas near zero")


def test_ranks_are_shared_along_links_and_a_part_among_all():
    pagerank, M = script("pagerank"), np.array([[0, 0.5, 1], [1, 0, 0], [0, 0.5, 0]])
    v = np.array([0.5, 0.25, 0.25])
    new, change = pagerank.step(M, v, 0.8)
    assert_near(new, 0.8 * np.array([0.375, 0.5, 0.125]) + 0.2 / 3, "float64 formulas")
    assert_near(change, np.abs(new - v).sum(), "float64 formulas")
    ranks, _ = pagerank.run(pagerank.step, M)
    assert_near(ranks.sum(), 1, "float64 formulas")
    assert_near(pagerank.step(M, ranks)[0], ranks, "float64 conditioned")


def test_components_have_the_shares_of_the_variance_and_the_rest_is_the_error():
    X = RNG.normal(size=(50, 5)) * [5, 1, 3, 0.5, 2]
    ratio, Z, err = script("pca").pca(X, 2)
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    assert_near(ratio, values[:2] / values.sum(), "float64 formulas")
    assert_near((Z**2).sum(0) / 49, values[:2], "float64 formulas")
    assert_near(err, np.sqrt(values[2:].sum() * 49 / X.size), "float64 formulas")
