"""Arrays in memory-mapped files: read once, piece by piece, with their pages released after reading.

Resident pages of a mapped file count as memory of the process. After their content was packed or copied elsewhere they
are released; the system reads them again, from its cache or the disk, on the next access.
"""

import mmap
from collections.abc import Callable

import numpy as np

from cgraph.system.alignment import round_up
from cgraph.system.mapping import release_range

Keep = Callable[[np.ndarray], np.ndarray]  # returns an equal array, perhaps one stored in a file
PIECE = 1 << 18  # bytes read before their pages are released
AROUND = 1 << 21  # bytes that the system may map around an accessed byte: a huge page


def release(x: np.ndarray) -> None:
    """Release the pages of an array in a file mapped for reading, and the pages mapped around them.

    Any other array is left unchanged.
    """
    mapping = mapping_of(x)
    if mapping is not None and x.size:
        release_pages(mapping, x)


def release_rows(rows: np.ndarray) -> None:
    """Release the pages of rows of images ``[n, c, rows, w]`` in a mapped file; the file keeps its contents.

    Any other array is left unchanged, including a copy-on-write mapping.
    """
    mapping = mapping_of(rows) or written_mapping_of(rows)
    if mapping is not None and rows.size:
        for image in rows:
            for plane in image:
                release_pages(mapping, plane)


def release_pages(mapping: mmap.mmap, x: np.ndarray) -> None:
    """Release the pages of an array in a mapping that is shared with its file."""
    start = np.frombuffer(mapping, np.uint8, 1).ctypes.data
    low, high = (at - start for at in np.lib.array_utils.byte_bounds(x))
    first, last = low // AROUND * AROUND, round_up(high, AROUND)
    release_range(mapping, first, min(last, len(mapping)) - first)


def mapping_of(x: np.ndarray) -> mmap.mmap | None:
    """Return the read-only mapping that contains an array, or None."""
    base: object = x
    while hasattr(base, "base"):  # arrays, and what NumPy puts between an array and its windows
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) and memoryview(base).readonly else None


def written_mapping_of(x: np.ndarray) -> mmap.mmap | None:
    """Return the mapping of an array that NumPy has mapped for writing into its file, or None."""
    if not isinstance(x, np.memmap) or x.mode not in ("r+", "w+"):
        return None
    base: object = x
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def copy_to(out: np.ndarray, x: np.ndarray) -> None:
    """Copy ``out[...] = x`` for arrays of one shape. A mapped `x` is read in file order and released piece by piece."""
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


def is_finite(x: np.ndarray) -> bool:
    """Return True if no element is NaN or an infinity. A mapped array is read and released piece by piece."""
    if mapping_of(x) is None or not x.ndim:
        return bool(np.isfinite(x).all())
    count = max(PIECE // max(x[:1].nbytes, 1), 1)
    for start in range(0, len(x), count):
        piece = x[start : start + count]
        is_good = np.isfinite(piece).all()
        release(piece)
        if not is_good:
            return False
    return True


def in_memory(x: np.ndarray) -> np.ndarray:
    """Return the array, or a copy in memory if it lies in a mapped file."""
    if mapping_of(x) is None:
        return x
    copy = x.copy()
    release(x)
    return copy


def in_place(x: np.ndarray) -> np.ndarray:
    """Return the array itself, unmoved."""
    return x


def in_c_order(x: np.ndarray) -> np.ndarray:
    """Return the array if it is contiguous in C order, else a copy that is."""
    if x.flags.c_contiguous:
        return x
    out = np.empty(x.shape, x.dtype)
    copy_to(out, x)
    return out


def aligned(x: np.ndarray) -> np.ndarray:
    """Return an array in C order itself if its elements are aligned, else an aligned copy."""
    if x.flags.aligned:
        return x
    out = np.empty(x.shape, x.dtype)
    copy_to(out.reshape(-1).view(np.uint8), x.reshape(-1).view(np.uint8))
    return out
