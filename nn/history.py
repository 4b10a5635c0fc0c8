"""History: loss and learning rate of every step and the figures of every epoch, with a summary and a plot."""

from dataclasses import field
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cgraph import Record
from cgraph.system.extras import missing_package


class History(Record):
    """Losses, learning rates and metrics of a training. ``print(history)`` shows a summary of one screen.

    Fields
        loss: loss before each step ``[steps]``
        rate: learning rate of each step ``[steps]``
        checked_at: steps after which a validation ran ``[checks]``
        validation: validation losses ``[checks]``
        parts: the loss's parts of each step, by name ``[steps]``; empty when the loss is one number
        metrics: metrics of each epoch's predictions, by name ``[epochs, ...]``
        validation_metrics: metrics of each validation, by name ``[checks, ...]``
        steps_per_epoch: number of steps of an epoch; 0 when unknown
    """

    loss: np.ndarray
    rate: np.ndarray
    checked_at: np.ndarray
    validation: np.ndarray
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    metrics: dict[str, np.ndarray] = field(default_factory=dict)
    validation_metrics: dict[str, np.ndarray] = field(default_factory=dict)
    steps_per_epoch: int = 0

    def by_epoch(self) -> dict[str, np.ndarray]:
        """Return the figures of each complete epoch by name, the first axis counting epochs.

        The names are "loss" and those of the loss's parts (means over the steps of the epoch), those of the metrics,
        "valid loss", and "valid " followed by the name of each metric.

        Example
            >>> history.by_epoch()["valid accuracy"]
            array([0.81, 0.92, 0.95])
        """
        n = self.steps_per_epoch
        epochs = len(self.loss) // n if n else 0
        steps = {"loss": self.loss, **{name: x for name, x in self.parts.items() if name != "loss"}}
        figures = {name: x[: epochs * n].reshape(epochs, n).mean(axis=1) for name, x in steps.items() if epochs}
        figures |= {name: x for name, x in self.metrics.items() if name not in steps and len(x)}
        valid = {"loss": self.validation} | {name: x for name, x in self.validation_metrics.items() if name != "loss"}
        return figures | {f"valid {name}": x for name, x in valid.items() if len(x)}

    def __repr__(self) -> str:
        return "\n".join([headline(self), *table(self.by_epoch())])

    def plot(self, path: str | Path) -> None:
        """Write a plot of the losses over the steps, on a logarithmic scale. Needs matplotlib (extra `plot`)."""
        self._draw(path)

    def _draw(self, path: str | Path | BinaryIO, **options: Any) -> None:
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise missing_package("matplotlib", "plots") from None
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        steps = np.arange(1, len(self.loss) + 1)
        axes.plot(steps, self.loss, color="0.8", linewidth=1, label="each step")
        axes.plot(steps, running_mean(self.loss), color="tab:blue", label="mean of the last 50")
        if len(self.validation):
            axes.plot(self.checked_at, self.validation, "o-", color="tab:orange", label="validation")
        axes.set(xlabel="step", ylabel="loss", yscale="log" if positive(self.loss) else "linear")
        axes.legend()
        FigureCanvasAgg(figure).print_figure(path, dpi=120, **options)

    def _repr_png_(self) -> bytes | None:
        """Return the plot for a notebook; None without matplotlib."""
        if find_spec("matplotlib") is None:
            return None
        buffer = BytesIO()
        self._draw(buffer, format="png")
        return buffer.getvalue()


def headline(history: History) -> str:
    """Return the number of steps and the ranges of loss and learning rate."""
    text = f"History of {len(history.loss)} steps"
    if not len(history.loss):
        return text
    return (
        f"{text}, loss {history.loss[0]:.4g} to {history.loss[-1]:.4g}, learning rate {history.rate[0]:.3g} to "
        f"{history.rate[-1]:.3g}"
    )


def table(figures: dict[str, np.ndarray]) -> list[str]:
    """Return a line for each figure: of the first and last epoch, and the lowest and highest with their epochs."""
    if not figures:
        return []
    width = max(map(len, figures))
    lines = [f"{'':{width}}  {'first':>10} {'last':>10} {'lowest':>10} {'epoch':>6} {'highest':>10} {'epoch':>6}"]
    for name, x in figures.items():
        if x.ndim != 1:
            lines.append(f"{name:{width}}  array {list(x.shape)}")
            continue
        cells = [f"{x[0]:>10.4g} {x[-1]:>10.4g}"]
        if not np.isnan(x).all():
            cells += [f"{x[i]:>10.4g} {i + 1:>6}" for i in (int(np.nanargmin(x)), int(np.nanargmax(x)))]
        lines.append(f"{name:{width}}  {' '.join(cells)}")
    return lines


def positive(x: np.ndarray) -> bool:
    """Return True if there are elements and all are positive."""
    return bool(len(x)) and bool((x > 0).all())


def running_mean(x: np.ndarray, width: int = 50) -> np.ndarray:
    """Return the running mean of each element and up to ``width - 1`` elements before it."""
    sums = np.concatenate([[0.0], np.cumsum(x, dtype=np.float64)])
    first = np.maximum(np.arange(1, len(x) + 1) - width, 0)
    return (sums[1:] - sums[first]) / (np.arange(1, len(x) + 1) - first)
