"""Batches of any origin, and batches read ahead by a thread."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import numpy as np

from cgraph import InputError, Record
from nn.checks import check_integer, check_kind
from nn.loader import Batch, Loader


class Batches(Record, eq=False):
    """Batches that a function returns for each epoch: from a generator, a database, files larger than memory.

    All batches have the same shapes. A resumed run calls the function again and skips the batches of the epoch that it
    has trained on; the same batches for the same epoch give the same bits.

    Fields
        of_epoch: function of the epoch's number, counted from 0; returns an iterable of batches, which are tuples of an
            array for each input, then the targets
        steps_per_epoch: batches of an epoch; others are not read
        prefetch: batches that a thread reads ahead

    Example
        nn.Batches(lambda epoch: read_files(seed=epoch), steps_per_epoch=500, prefetch=4)
    """

    of_epoch: Callable[[int], Iterable[Batch]]
    steps_per_epoch: int
    prefetch: int = 0

    def __post_init__(self) -> None:
        check_kind("of_epoch", self.of_epoch, Callable, "a function of the epoch's number")
        check_integer("steps_per_epoch", self.steps_per_epoch, 1)
        check_integer("prefetch", self.prefetch, 0)

    def at(self, step: int) -> Batch:
        """Return the batch of a step, counted from 0 over all epochs."""
        return next(self.between(step, step + 1))

    def between(self, first: int, stop: int) -> Iterator[Batch]:
        """Yield the batches of the steps from `first` to `stop`, the last one excluded."""
        while first < stop:
            epoch, place = divmod(first, self.steps_per_epoch)
            end = min(self.steps_per_epoch, place + stop - first)
            for batch in islice(self.of_epoch(epoch), place, end):
                check_kind("a batch", batch, tuple | list, "a tuple: an array for each input, then the targets")
                yield tuple(map(np.asarray, batch))
                first += 1
            if first % self.steps_per_epoch != end % self.steps_per_epoch:
                raise InputError(
                    f"epoch {epoch} has {first % self.steps_per_epoch} batches, and steps_per_epoch is "
                    f"{self.steps_per_epoch}. Lower it, or return more."
                )


class BatchReader:
    """Reads the batches of one step after another, ahead if `prefetch` says so. Changes: with every batch.

    Fields
        data: the batches
        stop: number of steps
        steps_per_epoch: batches of an epoch
    """

    def __init__(self, data: Loader | Batches, stop: int) -> None:
        self.data, self.stop, self.steps_per_epoch = data, stop, data.steps_per_epoch
        self._next = -1
        self._batches: Generator[Batch] | None = None

    def at(self, step: int) -> Batch:
        """Return the batch of a step. It is the next one, or reading begins anew."""
        if self._batches is None or step != self._next:
            self.close()
            self._batches = read_ahead(self.data.between(step, self.stop), self.data.prefetch)
        self._next = -1  # until there is a batch
        batch = next(self._batches)
        self._next = step + 1
        return batch

    def close(self) -> None:
        """End the thread."""
        if self._batches is not None:
            self._batches.close()


def read_ahead(batches: Iterator[Batch], count: int) -> Generator[Batch]:
    """Yield the batches, of which a thread reads the next `count`."""
    if not count:
        yield from batches
        return
    with ThreadPoolExecutor(1, "batches") as thread:
        waiting: deque[Future[Batch | None]] = deque()
        try:
            waiting.extend(thread.submit(next, batches, None) for _ in range(count))
            while (batch := waiting.popleft().result()) is not None:
                waiting.append(thread.submit(next, batches, None))
                yield batch
        finally:
            thread.shutdown(wait=True, cancel_futures=True)
