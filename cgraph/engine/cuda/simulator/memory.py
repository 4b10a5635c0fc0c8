"""Memory of simulated kernels: allocations, and a record of which thread touched which word when.

Device memory starts as 0xFF bytes (NaN). `Watch` detects races: two threads access one word, one of them writes, and no
barrier separates them; none ever separates threads of different blocks. Accesses of less than a word are not watched.
"""

import numpy as np

from cgraph.engine.cuda.simulator.text import Fault
from cgraph.system.alignment import round_up

DEVICE = 1 << 44  # the first address of device memory
GAP = 256  # unallocated bytes after each allocation
WORD = 4
# A stamp identifies an access: launch, block, barriers passed, thread; 0 means no thread.
THREAD_BITS, EPOCH_BITS, BLOCK_BITS = 10, 16, 20
BLOCK_AT = THREAD_BITS + EPOCH_BITS
LAUNCH_AT = BLOCK_AT + BLOCK_BITS
EPOCHS, LAUNCHES = 1 << EPOCH_BITS, 1 << (63 - LAUNCH_AT)  # that stamps tell apart
SEVERAL_THREADS = (1 << THREAD_BITS) - 1
SEVERAL_BLOCKS = SEVERAL_THREADS | ((1 << BLOCK_BITS) - 1) << BLOCK_AT


class Watch:
    """The last writer and reader of each word of some memory. Mutable: every access."""

    def __init__(self, words: int) -> None:
        self.written, self.read = np.zeros(words, np.int64), np.zeros(words, np.int64)

    def forget(self) -> None:
        """Forget all accesses, before the numbers of launches come again; 0 is the number of none."""
        self.written[:] = self.read[:] = 0

    def loaded(self, words: np.ndarray, stamps: np.ndarray) -> None:
        """Record reads of these words by these threads. Fault if another thread has written them."""
        if in_conflict(self.written[words], stamps).any():
            raise Fault("a race: another thread wrote this word")
        before = self.read[words]
        self.read[words] = stamps
        other = self.read[words] ^ stamps  # not 0 where another thread of this access reads the same word
        several = in_conflict(before, stamps) | (other != 0)
        if several.any():
            far = (in_conflict(before, stamps) & ((before ^ stamps) >= 1 << BLOCK_AT)) | (other >= 1 << BLOCK_AT)
            self.read[words[several]] = stamps[several] | SEVERAL_THREADS
            self.read[words[far]] = stamps[far] | SEVERAL_BLOCKS

    def stored(self, words: np.ndarray, stamps: np.ndarray) -> None:
        """Record writes of these words. Fault if another thread wrote or read them, or writes them now."""
        if in_conflict(self.written[words], stamps).any() or in_conflict(self.read[words], stamps).any():
            raise Fault("a race: another thread used this word")
        self.written[words] = stamps
        if (self.written[words] != stamps).any():
            raise Fault("a race: two threads write one word")


def in_conflict(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return True for stamps of another thread in the same launch without a barrier between."""
    apart = old ^ new
    return ((apart > 0) & (apart < 1 << THREAD_BITS)) | ((apart >= 1 << BLOCK_AT) & (apart < 1 << LAUNCH_AT))


class Memory:
    """Device memory. Mutable: allocations come and go, bytes are written.

    Fields
        data: the bytes, from address `DEVICE` on
        owned: the bytes that are allocated
        unwatched: the words that many threads may write
    """

    def __init__(self) -> None:
        self.data, self.owned, self.unwatched = np.empty(0, np.uint8), np.empty(0, bool), np.empty(0, bool)
        self.watch = Watch(0)
        self._sizes: dict[int, int] = {}
        self._end = 0

    def take(self, nbytes: int, watched: bool = True) -> int:
        """Return the address of new memory, 256-byte aligned. `watched` is False if many threads may write one word."""
        start = self._end
        self._end = round_up(start + max(nbytes, 1), GAP) + GAP
        if self._end > len(self.data):
            self._grow(max(self._end, 2 * len(self.data)))
        self.owned[start : start + nbytes] = True
        self.unwatched[start // WORD : (start + nbytes) // WORD] = not watched
        self._sizes[DEVICE + start] = nbytes
        return DEVICE + start

    def free(self, address: int) -> None:
        """Release memory; later accesses are faults."""
        start = address - DEVICE
        self.owned[start : start + self._sizes.pop(address)] = False

    def bytes_at(self, address: int, nbytes: int) -> np.ndarray:
        """Return allocated bytes as an array, for copies from and to the host."""
        start = address - DEVICE
        if nbytes and (start < 0 or start + nbytes > len(self.owned) or not self.owned[start : start + nbytes].all()):
            raise Fault(f"a copy of {nbytes} bytes outside every allocation")
        return self.data[start : start + nbytes]

    def check(self, at: np.ndarray, low: int, high: int, size: int) -> None:
        """Raise Fault for accesses of `size` bytes at these offsets, from `low` to `high`, that are outside the
        allocations.
        """
        if low < 0 or high > len(self.owned) - size:
            raise Fault("outside every allocation")
        if np.logical_and.reduce(self.owned[low : high + size]):  # all bytes between, so these too: the usual case
            return
        if not (self.owned[at].all() and self.owned[at + (size - 1)].all()):
            raise Fault("outside every allocation")

    def touch(self, at: np.ndarray, size: int, stamps: np.ndarray, write: bool) -> None:
        """Record accesses of `size` bytes with the watch."""
        if size < WORD:
            return
        first = at // WORD
        is_watched = ~self.unwatched[first]
        for i in range(size // WORD):
            (self.watch.stored if write else self.watch.loaded)(first[is_watched] + i, stamps[is_watched])

    def _grow(self, nbytes: int) -> None:
        data, owned = np.full(nbytes, 0xFF, np.uint8), np.zeros(nbytes, bool)
        unwatched, watch = np.zeros(nbytes // WORD, bool), Watch(nbytes // WORD)
        for new, old in (
            (data, self.data), (owned, self.owned), (unwatched, self.unwatched),
            (watch.written, self.watch.written), (watch.read, self.watch.read),
        ):  # fmt: skip
            new[: len(old)] = old
        self.data, self.owned, self.unwatched, self.watch = data, owned, unwatched, watch
