"""How far something is that takes longer than a second: a line for every stage, and one for a search."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO, TypeVar

from cgraph.errors import bytes_text
from cgraph.terminal import write

T = TypeVar("T")
Tell = Callable[[str, int, int], None]
QUICK = 1.0  # seconds that need no line
CLEAR = "\r\x1b[K"  # back to the start of a terminal's line, which is emptied: another bar may have written there
PAUSE, LONG_PAUSE = 0.2, 5.0  # seconds between two lines, where somebody looks and where nobody does


def line_start(stream: TextIO | None) -> str:
    """What empties the line that a bar has left; nothing where there are no bars."""
    return CLEAR if stream is not None and stream.isatty() else ""


def silent(stage: str, done: int, total: int) -> None:
    """Shows nothing."""


def with_progress(stage: str, items: Sequence[T], tell: Tell) -> Iterator[T]:
    """The items, while `tell` is told how many of them are done."""
    tell(stage, 0, len(items))
    for i, item in enumerate(items):
        yield item
        tell(stage, i + 1, len(items))


@contextmanager
def bounds_progress(
    name: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int], None]]:
    """What a search is to tell: the bytes that no plan is below, and those of the best so far. A line on a terminal."""
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
    """Writes how far a stage is, on one line where somebody looks. Changes: the stage, and when it was last shown."""

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
        """It takes longer than a second, and the last line is old."""
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
        """Leave no line behind."""
        if self.is_dirty:
            write("", self.stream, before=CLEAR)
        self.is_dirty = False
