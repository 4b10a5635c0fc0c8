import sys

import numpy as np
import pytest

from cgraph.errors import UnavailableError
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


def test_two_figures_of_one_name_are_the_first_of_them():
    """The loss before a part, a part before a metric, and the loss of the validation before its metric."""
    x = np.arange(4.0)
    metrics = {"loss": x[:2] + 40, "error": x[:2] + 50, "own": x[:2] + 60}
    valid = {"loss": x[:2] + 70, "own": x[:2] + 80}
    history = History(x, x, np.array([2, 4]), x[:2] + 10, {"loss": x + 20, "error": x + 30}, metrics, valid, 2)
    assert {name: x.tolist() for name, x in history.by_epoch().items()} == {
        "loss": [0.5, 2.5], "error": [30.5, 32.5], "own": [60, 61], "valid loss": [10, 11], "valid own": [80, 81],
    }  # fmt: skip


@pytest.mark.parametrize("steps_per_epoch", [0, 5])
def test_without_a_complete_epoch_there_are_figures_of_validations_alone(steps_per_epoch):
    x = np.ones(4)
    history = History(x, x, np.array([2]), x[:1], {"part": x}, {"none": x[:0]}, {"none": x[:0]}, steps_per_epoch)
    assert list(history.by_epoch()) == ["valid loss"]


def axes_of(history, monkeypatch):
    """The axes of a plot that is drawn into no file."""
    agg = pytest.importorskip("matplotlib.backends.backend_agg", reason="matplotlib is not installed")
    figures = []
    monkeypatch.setattr(
        agg.FigureCanvasAgg, "print_figure", lambda canvas, path, **options: figures.append((path, canvas.figure))
    )
    history.plot("losses.png")
    ((path, figure),) = figures
    assert path == "losses.png"
    return figure.axes[0]


def test_a_plot_has_each_step_their_running_mean_and_validations_at_their_steps(monkeypatch):
    loss, steps = (np.arange(120.0) - 119) ** 2 + 1, np.arange(1, 121)
    axes = axes_of(History(loss, loss / 9, np.array([60, 120]), np.array([1.5, 0.5])), monkeypatch)
    lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    assert list(lines) == ["each step", "mean of the last 50", "validation"]
    np.testing.assert_array_equal(lines["each step"], np.transpose([steps, loss]))
    np.testing.assert_array_equal(lines["mean of the last 50"], np.transpose([steps, running_mean(loss, 50)]))
    np.testing.assert_array_equal(lines["validation"], [[60, 1.5], [120, 0.5]])
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("step", "loss", "log")
    plain = axes_of(History(loss - 1, loss, *[np.zeros(0)] * 2), monkeypatch)
    assert plain.get_yscale() == "linear" and len(plain.get_lines()) == 2


def test_without_matplotlib_a_notebook_has_no_picture_and_a_plot_says_what_to_install(monkeypatch, tmp_path):
    history = History(*[np.ones(2)] * 4)
    monkeypatch.setattr("nn.history.find_spec", lambda name: None)
    assert history._repr_png_() is None
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnavailableError, match="plots need the package matplotlib: pip install"):
        history.plot(tmp_path / "losses.png")
    assert not (tmp_path / "losses.png").exists()


def test_the_running_mean_of_float32_forgets_a_huge_loss_without_a_trace():
    x = np.float32([2.0**26, *[1.0] * 60])
    assert running_mean(x)[50:].tolist() == [1.0] * 11


def test_a_table_has_a_column_for_each_number_of_its_head():
    assert table({"loss": np.array([4.0, 1.0, 7.0, 3.0]), "counts": np.ones((4, 2))}) == [
        "             first       last     lowest  epoch    highest  epoch",
        "loss             4          3          1      2          7      3",
        "counts  array [4, 2]",
    ]
    assert table({}) == []
