"""Machine code as one piece, and placing it in executable memory."""

import ctypes
import mmap
from functools import cache

import numpy as np

from cgraph.record import Record

ADDRESS_BYTES = 8


class UnknownCode(Exception):
    """Code of another machine or system, or with something in it that is not known here."""


class Image(Record, eq=False):
    """Machine code apart from where it lies: addresses in it are 0.

    Fields
        code: uint8
        symbols: where each function begins
        inner: int64 ``[n, 2]``: where an address stands, and the place in the image that it is of
        outer: C functions by name, where the address of each stands, and what is added to it
    """

    code: np.ndarray
    symbols: dict[str, int]
    inner: np.ndarray
    outer: tuple[tuple[str, int, int], ...]


def place_image(image: Image) -> tuple[np.ndarray, dict[str, int]]:
    """Place an image: the memory, which must live as long as the functions, and the functions' addresses.

    Raises
        UnknownCode: the system has not such a C function, or makes no memory executable
    """
    memory = np.frombuffer(mmap.mmap(-1, max(len(image.code), 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    memory[: len(image.code)] = image.code
    base, (places, targets) = memory.ctypes.data, image.inner.T
    addresses = (base + targets).view(np.uint8).reshape(-1, ADDRESS_BYTES)
    memory[places[:, None] + np.arange(ADDRESS_BYTES)] = addresses
    for name, at, plus in image.outer:
        memory[at : at + ADDRESS_BYTES].view(np.int64)[0] = c_function(name) + plus
    if c_library().mprotect(base, len(memory), mmap.PROT_READ | mmap.PROT_EXEC):
        raise UnknownCode("the system makes no memory executable")
    return memory, {name: base + at for name, at in image.symbols.items()}


@cache
def c_library() -> ctypes.CDLL:
    """The C library, and what else this process was linked with."""
    library = ctypes.CDLL(None)
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


def c_function(name: str) -> int:
    """The address of a C function."""
    try:
        return ctypes.cast(getattr(c_library(), name), ctypes.c_void_p).value or 0
    except (AttributeError, ValueError):  # ValueError: no name at all
        raise UnknownCode(f"there is no C function {name!r:.80}") from None
