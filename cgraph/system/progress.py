"""Progress lines for operations that take more than a second: one for each stage, one for a search."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO, TypeVar

from cgraph.errors import bytes_text
from cgraph.terminal import write

T = TypeVar("T")
Tell = Callable[[str, int, int], None]
QUICK = 1.0  # shorter operations show no line
CLEAR = "\r\x1b[K"  # back to the start of a terminal's line, which is cleared: another bar may have written there
PAUSE, LONG_PAUSE = 0.2, 5.0  # seconds between two lines, on a terminal and in a log


def line_start(stream: TextIO | None) -> str:
    """Return the characters that clear a progress line; an empty string if there are no bars."""
    return CLEAR if stream is not None and stream.isatty() else ""


def silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""


def with_progress(stage: str, items: Sequence[T], tell: Tell) -> Iterator[T]:
    """Yield the items, and report after each how many are done."""
    tell(stage, 0, len(items))
    for i, item in enumerate(items):
        yield item
        tell(stage, i + 1, len(items))


@contextmanager
def bounds_progress(
    name: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of a search's lower bound and best size so far, which it shows on a terminal line."""
    bars = Bars(stream, clock)

    def tell(lower: int, upper: int) -> None:
        if bars.over and bars.is_due:
            seconds = bars.clock() - bars.begun
            bars.write(f"{name}: at least {bytes_text(lower)}, found {bytes_text(upper)}  {seconds:.0f} s")

    try:
        yield tell
    finally:
        bars.clear()


class Bars:
    """A progress line for the current stage, on a terminal or in a log. Mutable: the stage, and the time of the last
    line."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.clock = stream or sys.stderr, clock
        self.over = self.stream is not None and self.stream.isatty()
        self.begun = self.shown = clock()
        self.is_dirty = False

    def __call__(self, stage: str, done: int, total: int) -> None:
        if done == 0:
            self.begun = self.shown = self.clock()
        if done == total:
            self.clear()
        elif done and self.is_due:
            seconds = self.clock() - self.begun
            self.write(f"{stage} {done}/{total}  {seconds / done * (total - done):.0f} s left")

    @property
    def is_due(self) -> bool:
        """True if the stage takes longer than a second and the last line is old."""
        now = self.clock()
        return now - self.begun >= QUICK and now - self.shown >= (PAUSE if self.over else LONG_PAUSE)

    def write(self, text: str) -> None:
        self.shown = self.clock()
        if self.over:
            write(text, self.stream, before=CLEAR)
        else:
            write(f"{text}\n", self.stream)
        self.is_dirty = self.over

    def clear(self) -> None:
        """Clear the progress line."""
        if self.is_dirty:
            write("", self.stream, before=CLEAR)
        self.is_dirty = False
