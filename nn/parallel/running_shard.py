"""A shard whose pieces are used while a thread computes the later ones."""

import threading
import time
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from typing import Self

import numpy as np

from cgraph import Runner


class RunningShard:
    """One run of a Function in a thread: an iterator over its outputs, in their order. Mutable: while it runs.

    Its context ends when the run is over: no run continues beyond the step to which it belongs.

    Fields
        in_thread: False computes all pieces when the context begins
        seconds: time of the run, when it is over
    """

    def __init__(self, gradient: Runner, arrays: Sequence[np.ndarray], in_thread: bool = True) -> None:
        self.gradient, self.arrays, self.in_thread, self.seconds = gradient, arrays, in_thread, 0.0
        self._queue = SimpleQueue[tuple[int, np.ndarray] | BaseException]()
        self._thread = threading.Thread(target=self._run, name="cgraph-gradient", daemon=True)

    def __enter__(self) -> Self:
        if self.in_thread:
            self._thread.start()
        else:
            self._run()
        return self

    def __exit__(self, *_: object) -> None:
        if self.in_thread:
            self._thread.join()

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield each output as soon as it and those before it are complete. Raises what the run raises."""
        early: dict[int, np.ndarray] = {}
        for i in range(len(self.gradient.outputs)):
            while i not in early:
                entry = self._queue.get()
                if isinstance(entry, BaseException):
                    raise entry
                early[entry[0]] = entry[1]
            yield early.pop(i)

    def _run(self) -> None:
        began = time.perf_counter()
        try:
            self.gradient.run_each(self.arrays, lambda i, x: self._queue.put((i, x)))
        except BaseException as error:
            self._queue.put(error)
        self.seconds = time.perf_counter() - began
