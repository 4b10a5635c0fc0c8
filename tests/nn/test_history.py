import numpy as np
import pytest

from nn.history import History, positive, running_mean
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("width", [1, 3, 50])
def test_the_running_mean_is_that_of_each_element_and_those_before_it(width):
    x = np.random.default_rng(0).normal(size=17)
    want = [x[max(i + 1 - width, 0) : i + 1].mean() for i in range(len(x))]
    assert_near(running_mean(x, width), want, "float64 formulas near zero")
    assert running_mean(np.zeros(0), width).size == 0


@pytest.mark.parametrize(("x", "want"), [([], False), ([1.0, 2.0], True), ([1.0, 0.0], False), ([-1.0], False)])
def test_a_logarithmic_scale_needs_losses_that_are_all_positive(x, want):
    assert positive(np.array(x)) is want


def test_the_plot_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    history = History(np.array([2.0, 1.0]), np.array([0.1, 0.1]), np.array([2]), np.array([1.5]))
    history.plot(tmp_path / "losses.png")
    assert (tmp_path / "losses.png").read_bytes()[:4] == b"\x89PNG"
    assert (history._repr_png_() or b"")[:4] == b"\x89PNG"
