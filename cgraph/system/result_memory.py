"""Memory of large results, which is used again after the caller has dropped them.

The C library returns large blocks to the system, and the system clears each page of a new block. For a large result
this takes longer than most kernels. So a few blocks of results without references are kept.
"""

import numpy as np

from cgraph.system.addresses import address_of
from cgraph.system.alignment import ALIGNMENT, aligned_array

LEAST_NBYTES = 32 * 1024 * 1024  # of a result: glibc keeps smaller blocks itself
MOST_NBYTES = 256 * 1024 * 1024  # of all blocks that are kept


class FreeBlocks(dict[int, np.ndarray]):
    """Blocks that no result uses, by their identity. Mutable.

    Results are dropped at any moment, also while another one is made. So each step is one call of a dict, and none
    takes a lock.
    """

    def take(self, nbytes: int) -> np.ndarray | None:
        """Remove and return a block of this length; None if there is none."""
        fitting = (key for key, block in tuple(self.items()) if block.nbytes == nbytes)
        return next((block for key in fitting if (block := self.pop(key, None)) is not None), None)

    def give(self, block: np.ndarray) -> None:
        """Keep a block, in place of the oldest ones where there would be too many bytes."""
        self[id(block)] = block
        for key in tuple(self):
            if sum(x.nbytes for x in tuple(self.values())) <= MOST_NBYTES:
                return
            self.pop(key, None)


FREE_BLOCKS = FreeBlocks()


class BlockUse:
    """The base of the arrays in a block. When the last of them is gone, the block is free."""

    def __init__(self, block: np.ndarray, free: FreeBlocks) -> None:
        self.block, self.free = block, free
        self.__array_interface__ = block.__array_interface__

    def __del__(self) -> None:
        self.free.give(self.block)


def result_array(shape: tuple[int, ...], dtype: np.dtype, nbytes: int) -> np.ndarray:
    """Return an uninitialised array of `nbytes` bytes in C order; its address is a multiple of the alignment."""
    if not LEAST_NBYTES <= nbytes <= MOST_NBYTES - ALIGNMENT:
        return aligned_array(shape, dtype, nbytes)
    block = FREE_BLOCKS.take(nbytes + ALIGNMENT)
    raw = np.asarray(BlockUse(np.empty(nbytes + ALIGNMENT, np.uint8) if block is None else block, FREE_BLOCKS))
    return np.ndarray(shape, dtype, raw, -address_of(raw) % ALIGNMENT)  # type: ignore[arg-type]
