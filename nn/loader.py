"""Loaders: which samples each step of training sees. The order of an epoch depends on seed and epoch alone."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from cgraph import InputError, Record
from nn.checks import check_integer, check_kind


class Loader(Record, eq=False):
    """Batches of arrays that lie in memory (or are mapped into it).

    Fields
        arrays: an array for each input, then what is wanted; the first axis counts the samples
        batch: samples in a step
        order: ``"shuffled"`` anew in each epoch, ``"given"``, or ``"sampled"`` (drawn with repetition)
        seed: of the order
        change: makes other samples of a batch, such as shifted pictures, given its arrays and a generator that
            depends on seed and step alone
        partial: the samples behind the last whole batch of an epoch are a batch of their own, and a smaller one.
            Otherwise they are left out; in another order they are others.
    """

    arrays: Sequence[np.ndarray]
    batch: int = 100
    order: str = "shuffled"
    seed: int = 0
    change: Callable[[tuple[np.ndarray, ...], "np.random.Generator"], tuple[np.ndarray, ...]] | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        check_kind("arrays", self.arrays, tuple | list, "an array for each input, then what is wanted")
        for x in self.arrays:
            check_kind("one of arrays", x, np.ndarray, "an array whose first axis counts the samples")
            if not x.ndim:
                raise InputError("one of arrays is one number; its first axis counts the samples")
        check_integer("batch", self.batch, 0)
        check_integer("seed", self.seed, 0)
        counts = {len(x) for x in self.arrays}
        if len(counts) != 1:
            raise InputError(f"arrays have {sorted(counts)} samples; there must be as many in each")
        if not 1 <= self.batch <= self.count:
            raise InputError(f"a batch of {self.batch} of {self.count} samples")
        if self.order not in ("shuffled", "given", "sampled"):
            raise InputError(f"order is {self.order!r}; use 'shuffled', 'given' or 'sampled'")

    @property
    def count(self) -> int:
        """Samples."""
        return len(self.arrays[0])

    @property
    def steps_per_epoch(self) -> int:
        return self.count // self.batch + (self.partial and self.rest > 0)

    @property
    def rest(self) -> int:
        """Samples behind the last whole batch."""
        return self.count % self.batch

    def at(self, step: int) -> tuple[np.ndarray, ...]:
        """The batch of any step, counted from 0 over all epochs."""
        return self.shard_at(step, 0, 1)

    def shard_at(self, step: int, shard: int, shards: int) -> tuple[np.ndarray, ...]:
        """One of equal shards of a step's batch; `change` sees its samples alone, and a generator of its own."""
        epoch, place = divmod(step, self.steps_per_epoch)
        rows = sample_order(self.order, self.count, self.seed, epoch)[place * self.batch : (place + 1) * self.batch]
        rows = rows[len(rows) * shard // shards : len(rows) * (shard + 1) // shards]
        arrays = tuple(np.ascontiguousarray(x[rows]) for x in self.arrays)
        if self.change is None:
            return arrays
        return self.change(arrays, np.random.default_rng([self.seed, step, 1] + [shard] * (shards > 1)))


def shifted(pixels: int) -> Callable[[tuple[np.ndarray, ...], "np.random.Generator"], tuple[np.ndarray, ...]]:
    """A change of batches: every picture ``[c, h, w]`` of the first array moved by up to `pixels`, zeros come in."""

    def change(arrays: tuple[np.ndarray, ...], rng: "np.random.Generator") -> tuple[np.ndarray, ...]:
        images = arrays[0]
        n, _, h, w = images.shape
        padded = np.pad(images, [(0, 0), (0, 0), (pixels, pixels), (pixels, pixels)])
        at = rng.integers(0, 2 * pixels + 1, (n, 2))
        moved = np.stack([x[:, r : r + h, s : s + w] for x, (r, s) in zip(padded, at)])
        return (moved, *arrays[1:])

    return change


@lru_cache(maxsize=2)
def sample_order(order: str, count: int, seed: int, epoch: int) -> np.ndarray:
    """Positions of samples in an epoch."""
    rng = np.random.default_rng([seed, epoch])
    if order == "given":
        return np.arange(count)
    return rng.permutation(count) if order == "shuffled" else rng.integers(0, count, count)
