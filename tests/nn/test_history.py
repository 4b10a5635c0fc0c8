import numpy as np
import pytest

from nn.history import History, positive, running_mean, table
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


def long_history(steps=6000, each=60):
    rng = np.random.default_rng(0)
    epochs = steps // each
    loss, accuracy = rng.random(steps).astype("f4"), rng.random(epochs)
    return History(
        loss, np.full(steps, 0.1, "f4"), np.arange(1, epochs + 1) * each, rng.random(epochs).astype("f4"),
        {"boxes": loss / 2}, {"accuracy": accuracy, "confusion": np.ones((epochs, 3, 3))},
        {"accuracy": accuracy / 2}, each,
    )  # fmt: skip


def test_the_figures_of_an_epoch_are_means_over_its_steps_metrics_and_those_of_the_validation():
    history = long_history(65, 10)
    figures = history.by_epoch()
    assert [*figures] == ["loss", "boxes", "accuracy", "confusion", "valid loss", "valid accuracy"]
    assert_near(figures["loss"], [history.loss[i * 10 : i * 10 + 10].mean() for i in range(6)], "float32 sums")
    assert (figures["valid loss"] == history.validation).all() and (figures["valid accuracy"] <= 0.5).all()
    assert History(*[np.zeros(0)] * 4).by_epoch() == {}


def test_a_history_of_any_length_prints_one_screen_with_the_best_epochs():
    history = long_history()
    lines = str(history).splitlines()
    assert len(lines) == 2 + len(history.by_epoch()) and max(map(len, lines)) <= 80
    assert "6000 steps" in lines[0]
    row = next(x for x in lines if x.startswith("valid accuracy")).split()
    x = history.validation_metrics["accuracy"]
    assert row[4:] == [f"{x.min():.4g}", str(x.argmin() + 1), f"{x.max():.4g}", str(x.argmax() + 1)]
    assert "array [100, 3, 3]" in str(history)


@pytest.mark.parametrize("x", [
    [3, 1, 2], [np.nan, 3, 1, 4], [3, np.nan, 4, 1], [2, np.nan, np.nan], [np.inf, 5, -np.inf, np.nan], [7],
    [np.nan] * 3,
], ids=str)  # fmt: skip
def test_the_best_epochs_are_found_among_those_with_a_figure(x):
    """NaN stands for an epoch without one."""
    _, line = table({"a figure": np.array(x, "f4")})
    known = [(figure, epoch) for epoch, figure in enumerate(x, 1) if figure == figure]
    low, high = (min(known), max(known, key=lambda pair: (pair[0], -pair[1]))) if known else ((), ())
    cells = [x[0], x[-1], *low, *high]
    assert line.removeprefix("a figure").split() == [f"{cell:.4g}" for cell in cells]


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_first_line_has_the_first_and_last_loss_and_rate(steps):
    x = np.arange(1, steps + 1)
    line = str(History(x / 4, x / 8, *[np.zeros(0)] * 2)).splitlines()[0]
    assert line == (f"History of {steps} steps, loss 0.25 to {steps / 4:.4g}, learning rate 0.125 to {steps / 8:.3g}")


def test_a_history_without_steps_or_numbers_prints_too():
    assert str(History(*[np.zeros(0)] * 4)) == "History of 0 steps"
    x = np.full(2, np.nan, "f4")
    assert "nan" in str(History(x, x, np.arange(2), x, steps_per_epoch=1))
