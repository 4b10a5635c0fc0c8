"""How far quantising is: a line for every stage that takes longer than a second."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO, TypeVar

T = TypeVar("T")
Tell = Callable[[str, int, int], None]
QUICK = 1.0  # seconds that need no line
PAUSE, LONG_PAUSE = 0.2, 5.0  # seconds between two lines, where somebody looks and where nobody does


def silent(stage: str, done: int, total: int) -> None:
    """Shows nothing."""


def told(stage: str, items: Sequence[T], tell: Tell) -> Iterator[T]:
    """The items, while `tell` is told how many of them are done."""
    tell(stage, 0, len(items))
    for i, item in enumerate(items):
        yield item
        tell(stage, i + 1, len(items))


class Bars:
    """Writes how far a stage is, on one line where somebody looks. Changes: the stage, and when it was last shown."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.clock = stream or sys.stderr, clock
        self.over = self.stream.isatty()
        self.begun = self.shown = clock()
        self.width = 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = self.clock()
        if done == 0:
            self.begun = self.shown = now
        if done == total:
            self.clear()
        elif done and now - self.begun >= QUICK and now - self.shown >= (PAUSE if self.over else LONG_PAUSE):
            self.shown = now
            self.write(f"{stage} {done}/{total}  {(now - self.begun) / done * (total - done):.0f} s left")

    def write(self, text: str) -> None:
        self.stream.write(f"\r{text:<{self.width}}" if self.over else f"{text}\n")
        self.stream.flush()
        self.width = len(text)

    def clear(self) -> None:
        """Leave no line behind."""
        if self.over and self.width:
            self.stream.write(f"\r{'':<{self.width}}\r")
            self.stream.flush()
        self.width = 0
