"""History: loss and learning rate of every step, with a plot."""

from dataclasses import field
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cgraph import Record
from cgraph.system.extras import missing_package


class History(Record):
    """Losses, learning rates and metrics of a training.

    Fields
        loss: loss before each step ``[steps]``
        rate: learning rate of each step ``[steps]``
        checked_at: steps after which a validation ran ``[checks]``
        validation: validation losses ``[checks]``
        parts: the loss's parts of each step, by name ``[steps]``; empty when the loss is one number
        metrics: metrics of each epoch's predictions, by name ``[epochs, ...]``
        validation_metrics: metrics of each validation, by name ``[checks, ...]``
    """

    loss: np.ndarray
    rate: np.ndarray
    checked_at: np.ndarray
    validation: np.ndarray
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    metrics: dict[str, np.ndarray] = field(default_factory=dict)
    validation_metrics: dict[str, np.ndarray] = field(default_factory=dict)

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


def positive(x: np.ndarray) -> bool:
    """Return True if there are elements and all are positive."""
    return bool(len(x)) and bool((x > 0).all())


def running_mean(x: np.ndarray, width: int = 50) -> np.ndarray:
    """Return the running mean of each element and up to ``width - 1`` elements before it."""
    sums = np.concatenate([[0.0], np.cumsum(x, dtype=np.float64)])
    first = np.maximum(np.arange(1, len(x) + 1) - width, 0)
    return (sums[1:] - sums[first]) / (np.arange(1, len(x) + 1) - first)
