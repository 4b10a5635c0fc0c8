"""Arrays that lie in memory-mapped files: read once, piece by piece, and given back to the system as they are read.

Pages of a mapped file count as the process's own while they are resident. What is packed or copied elsewhere need not
stay: the system reads the pages again, from its cache or the disk, should anybody ask.
"""

import mmap
from collections.abc import Callable

import numpy as np

from cgraph.system.alignment import round_up

Keep = Callable[[np.ndarray], np.ndarray]  # an equal array: where one that has been made goes, perhaps into a file
PIECE = 1 << 18  # bytes read before they are forgotten
AROUND = 1 << 21  # bytes that the system may map around one that is asked for: a huge page


def release(x: np.ndarray) -> None:
    """Give back the pages of an array that lies in a file mapped for reading, and those mapped around them.

    Any other array is left alone.
    """
    mapping = mapping_of(x)
    if mapping is not None and x.size:
        release_pages(mapping, x)


def release_rows(rows: np.ndarray) -> None:
    """Give back the pages of some rows of images ``[n, c, rows, w]`` that lie in a mapped file; what was written into
    them stays in the file. Any other array is left alone, also one whose changes are not the file's.
    """
    mapping = mapping_of(rows) or written_mapping_of(rows)
    if mapping is not None and rows.size:
        for image in rows:
            for plane in image:
                release_pages(mapping, plane)


def release_pages(mapping: mmap.mmap, x: np.ndarray) -> None:
    """The pages of an array in a mapping that is shared with its file."""
    start = np.frombuffer(mapping, np.uint8, 1).ctypes.data
    low, high = (at - start for at in np.lib.array_utils.byte_bounds(x))
    first, last = low // AROUND * AROUND, round_up(high, AROUND)
    mapping.madvise(mmap.MADV_DONTNEED, first, min(last, len(mapping)) - first)


def mapping_of(x: np.ndarray) -> mmap.mmap | None:
    """The mapping that an array's bytes lie in, if nobody can write there."""
    base: object = x
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) and memoryview(base).readonly else None


def written_mapping_of(x: np.ndarray) -> mmap.mmap | None:
    """The mapping of an array that NumPy has mapped for writing into the file."""
    if not isinstance(x, np.memmap) or x.mode not in ("r+", "w+"):
        return None
    base: object = x
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def copy_to(out: np.ndarray, x: np.ndarray) -> None:
    """``out[...] = x``, arrays of one shape; what lies in a file is read in its order and forgotten piece by piece."""
    if mapping_of(x) is None:
        out[...] = x
        return
    low, high = np.lib.array_utils.byte_bounds(x)
    if high - low <= PIECE:
        out[...] = x
        release(x)
        return
    axis = max(range(x.ndim), key=lambda i: abs(x.strides[i]) * (x.shape[i] > 1))
    count = max(min(PIECE // abs(x.strides[axis]), x.shape[axis] // 2), 1)
    for start in range(0, x.shape[axis], count):
        piece = (*[slice(None)] * axis, slice(start, start + count))
        copy_to(out[piece], x[piece])


def in_memory(x: np.ndarray) -> np.ndarray:
    """The array itself unless it lies in a mapped file; then a copy, which maps nothing around it when it is read."""
    if mapping_of(x) is None:
        return x
    copy = x.copy()
    release(x)
    return copy


def in_place(x: np.ndarray) -> np.ndarray:
    """The array itself: it is kept where it is."""
    return x


def in_c_order(x: np.ndarray) -> np.ndarray:
    """The array itself if its elements follow one another in C order; else a copy."""
    if x.flags.c_contiguous:
        return x
    out = np.empty(x.shape, x.dtype)
    copy_to(out, x)
    return out


def aligned(x: np.ndarray) -> np.ndarray:
    """An array in C order whose elements lie at multiples of their size: itself, or a copy."""
    if x.flags.aligned:
        return x
    out = np.empty(x.shape, x.dtype)
    copy_to(out.reshape(-1).view(np.uint8), x.reshape(-1).view(np.uint8))
    return out
