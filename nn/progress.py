"""Progress bars: by rich where it is installed, else plain text on the error stream."""

import sys
import time
from typing import Any, Protocol, TextIO

from cgraph.terminal import visible, write


class Bar(Protocol):
    """A progress bar that shows step, loss, learning rate and more text."""

    def show(self, step: int, loss: float | None = None, rate: float = 0.0, more: str = "") -> None: ...

    def close(self) -> None: ...


class SilentBar:
    """A progress bar that shows nothing."""

    def show(self, step: int, loss: float | None = None, rate: float = 0.0, more: str = "") -> None:
        pass

    def close(self) -> None:
        pass


class PlainBar:
    """A line of text that is overwritten; off a terminal, a new line every few seconds. Changes: `shown`."""

    def __init__(self, first: int, total: int, stream: TextIO | None = None) -> None:
        self.first, self.total, self.stream = first, total, stream or sys.stderr
        self.begun = time.monotonic()
        self.shown = -float("inf")
        self.over = self.stream.isatty()

    def show(self, step: int, loss: float | None = None, rate: float = 0.0, more: str = "") -> None:
        now = time.monotonic()
        if step < self.total and now - self.shown < (0.2 if self.over else 5.0):
            return
        self.shown = now
        left = seconds_left(now - self.begun, step - self.first, self.total - step)
        text = f"step {step}/{self.total}  {numbers(loss, rate)}{more}{left} left"
        if self.over:
            write(f"{text:<78}", self.stream, before="\r")
        else:
            write(f"{text}\n", self.stream)

    def close(self) -> None:
        if self.over:
            write("\n", self.stream)


class RichBar:
    """A progress bar by rich. Changes: its contents."""

    def __init__(self, first: int, total: int, progress: Any) -> None:
        self.progress = progress
        self.task = progress.add_task("", total=total, completed=first, numbers="")
        progress.start()

    def show(self, step: int, loss: float | None = None, rate: float = 0.0, more: str = "") -> None:
        self.progress.update(self.task, completed=step, numbers=visible(numbers(loss, rate) + more, ""))

    def close(self) -> None:
        self.progress.stop()


def progress_bar(first: int, total: int, enabled: bool) -> Bar:
    """Return a bar for the steps from `first` to `total`: by rich if it is installed and stderr is a terminal."""
    if not enabled:
        return SilentBar()
    if not sys.stderr.isatty():
        return PlainBar(first, total)
    try:
        from rich.console import Console
    except ImportError:
        return PlainBar(first, total)
    return rich_bar(first, total, Console(stderr=True))


def rich_bar(first: int, total: int, console: Any) -> RichBar:
    """Return a bar by rich on a console."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}", markup=False),
        TimeRemainingColumn(),
    )
    return RichBar(first, total, Progress(*columns, console=console, speed_estimate_period=10))


def numbers(loss: float | None, rate: float) -> str:
    """Return loss and rate as text; empty without a loss."""
    return "" if loss is None else f"loss {loss:.4f}  rate {rate:.2e}  "


def seconds_left(elapsed: float, done: int, left: int) -> str:
    """Return the remaining time, such as ``2 min 05 s``, estimated from the speed so far."""
    if not done:
        return "?"
    seconds = round(elapsed / done * left)
    return f"{seconds // 60} min {seconds % 60:02d} s" if seconds >= 60 else f"{seconds} s"
