"""Loaders: the samples of each training step. The order of an epoch depends only on seed and epoch."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from warnings import warn

import numpy as np

from cgraph import InputError, Record
from nn.checks import check_integer, check_kind

Batch = tuple[np.ndarray, ...]


class SampleSource(Record, eq=False):
    """Samples that a Loader reads when a batch needs them: the base of classes for sets larger than memory.

    A subclass defines ``__len__``, the number of samples, and `read`.
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__")

    def read(self, numbers: np.ndarray) -> np.ndarray:
        """Return the samples of these numbers, in this order, as an array with as many rows."""
        raise NotImplementedError(f"{type(self).__name__} does not define read")


class Loader(Record, eq=False):
    """Batches of arrays in memory, mapped from files, or read by a `SampleSource`.

    Fields
        arrays: an array or SampleSource for each input, then the targets; the first axis counts the samples
        batch: samples in a step
        order: ``"shuffled"`` anew in each epoch, ``"given"``, or ``"sampled"`` (drawn with repetition)
        seed: seed of the order
        change: augments a batch, such as by shifting pictures; its arguments are the arrays and a generator that
            depends only on seed and step
        partial: the samples after the last complete batch of an epoch form a smaller batch. Otherwise the
            epoch skips them.
        prefetch: batches that a thread reads and changes ahead
    """

    arrays: Sequence[np.ndarray | SampleSource]
    batch: int = 100
    order: str = "shuffled"
    seed: int = 0
    change: Callable[[Batch, "np.random.Generator"], Batch] | None = None
    partial: bool = False
    prefetch: int = 0

    def __post_init__(self) -> None:
        check_kind("arrays", self.arrays, tuple | list, "a list or tuple: an array for each input, then the targets")
        for x in self.arrays:
            check_kind("one of arrays", x, np.ndarray | SampleSource, "an array whose first axis counts the samples")
            if isinstance(x, np.ndarray) and not x.ndim:
                raise InputError("one of arrays is one number. Pass arrays whose first axis counts the samples.")
        check_integer("batch", self.batch, 0)
        check_integer("seed", self.seed, 0)
        check_integer("prefetch", self.prefetch, 0)
        counts = {len(x) for x in self.arrays}
        if len(counts) != 1:
            raise InputError(f"arrays have {sorted(counts)} samples. Pass as many in each.")
        if not 1 <= self.batch <= self.count:
            raise InputError(f"a batch of {self.batch} of {self.count} samples. Pass batch= from 1 to {self.count}.")
        if self.order not in ("shuffled", "given", "sampled"):
            raise InputError(f"order is {self.order!r}. Use 'shuffled', 'given' or 'sampled'.")

    def __repr__(self) -> str:
        each = ", ".join(f"{x.dtype}{list(x.shape[1:])}" if isinstance(x, np.ndarray) else repr(x) for x in self.arrays)
        return f"<Loader of {self.count} samples: {each}; batches of {self.batch}, {self.order}>"

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.arrays[0])

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches of an epoch."""
        return self.count // self.batch + (self.partial and self.rest > 0)

    @property
    def rest(self) -> int:
        """Number of samples after the last complete batch."""
        return self.count % self.batch

    def at(self, step: int) -> Batch:
        """Return the batch of a step, counted from 0 over all epochs."""
        return self.shard_at(step, 0, 1)

    def between(self, first: int, stop: int) -> Iterator[Batch]:
        """Yield the batches of the steps from `first` to `stop`, the last one excluded."""
        return map(self.at, range(first, stop))

    def shard_at(self, step: int, shard: int, shards: int) -> Batch:
        """Return one of equal shards of a step's batch; `change` takes the shard and a separate generator."""
        epoch, place = divmod(step, self.steps_per_epoch)
        rows = sample_order(self.order, self.count, self.seed, epoch)[place * self.batch : (place + 1) * self.batch]
        rows = rows[len(rows) * shard // shards : len(rows) * (shard + 1) // shards]
        arrays = tuple(
            np.ascontiguousarray(x[rows] if isinstance(x, np.ndarray) else x.read(rows)) for x in self.arrays
        )
        if self.change is None:
            return arrays
        return self.change(arrays, np.random.default_rng([self.seed, step, 1] + [shard] * (shards > 1)))


def random_shift(pixels: int) -> Callable[[tuple[np.ndarray, ...], "np.random.Generator"], tuple[np.ndarray, ...]]:
    """Return a `change` that shifts each picture ``[c, h, w]`` of the first array by up to `pixels`, with zeros."""

    def change(arrays: tuple[np.ndarray, ...], rng: "np.random.Generator") -> tuple[np.ndarray, ...]:
        images = arrays[0]
        n, _, h, w = images.shape
        padded = np.pad(images, [(0, 0), (0, 0), (pixels, pixels), (pixels, pixels)])
        at = rng.integers(0, 2 * pixels + 1, (n, 2))
        moved = np.stack([x[:, r : r + h, s : s + w] for x, (r, s) in zip(padded, at)])
        return (moved, *arrays[1:])

    return change


def shifted(pixels: int) -> Callable[[tuple[np.ndarray, ...], "np.random.Generator"], tuple[np.ndarray, ...]]:
    """Deprecated name of `random_shift`."""
    warn("nn.shifted is called nn.random_shift now. Use nn.random_shift.", DeprecationWarning, stacklevel=2)
    return random_shift(pixels)


@lru_cache(maxsize=2)
def sample_order(order: str, count: int, seed: int, epoch: int) -> np.ndarray:
    """Return the indices of the samples of an epoch, in order."""
    rng = np.random.default_rng([seed, epoch])
    if order == "given":
        return np.arange(count)
    return rng.permutation(count) if order == "shuffled" else rng.integers(0, count, count)
