"""A progress bar: with rich where it is installed, else plain text on the error stream."""

import sys
import time
from typing import Any, Protocol, TextIO

from cgraph.terminal import visible, write


class Bar(Protocol):
    """Shows how far something is, of training the loss and the rate, and what more there is to say."""

    def show(self, step: int, loss: float | None = None, rate: float = 0.0, more: str = "") -> None: ...

    def close(self) -> None: ...


class SilentBar:
    """Shows nothing."""

    def show(self, step: int, loss: float | None = None, rate: float = 0.0, more: str = "") -> None:
        pass

    def close(self) -> None:
        pass


class PlainBar:
    """One line that is written over, or a line every few seconds where nobody looks. Changes: when it was written."""

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
    """A bar by rich. Changes: what it shows."""

    def __init__(self, first: int, total: int, progress: Any) -> None:
        self.progress = progress
        self.task = progress.add_task("", total=total, completed=first, numbers="")
        progress.start()

    def show(self, step: int, loss: float | None = None, rate: float = 0.0, more: str = "") -> None:
        self.progress.update(self.task, completed=step, numbers=visible(numbers(loss, rate) + more, ""))

    def close(self) -> None:
        self.progress.stop()


def progress_bar(first: int, total: int, enabled: bool) -> Bar:
    """A bar for the steps from `first` to `total`: by rich where that is installed and somebody looks."""
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
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}", markup=False),
        TimeRemainingColumn(),
    )
    return RichBar(first, total, Progress(*columns, console=console, speed_estimate_period=10))


def numbers(loss: float | None, rate: float) -> str:
    """Loss and rate as text; nothing without a loss."""
    return "" if loss is None else f"loss {loss:.4f}  rate {rate:.2e}  "


def seconds_left(elapsed: float, done: int, left: int) -> str:
    """``2 min 05 s`` from the speed so far."""
    if not done:
        return "?"
    seconds = round(elapsed / done * left)
    return f"{seconds // 60} min {seconds % 60:02d} s" if seconds >= 60 else f"{seconds} s"
