"""Linked machine code as one image, and its placement in executable memory."""

import ctypes
from importlib import import_module

import numpy as np

from cgraph.kernels.isa.architectures import host_architecture
from cgraph.record import Record
from cgraph.system.c_library import c_library, make_executable
from cgraph.system.mapping import new_pages

ADDRESS_BYTES = 8
LAPACK = "scipy_lapack_"  # in code, LAPACK's dgesv is scipy_lapack_dgesv


class UnknownCode(Exception):
    """Code of another machine or system, or code with a feature that this linker does not support."""


class Image(Record, eq=False):
    """Position-independent machine code: the addresses in it are 0 until it is placed, at the beginning of a page.

    Fields
        code: uint8
        symbols: offset of each function
        inner: int64 ``[n, 2]``: offset of an address, and the offset in the image that it refers to
        outer: name of a C function, offset where its address is stored, and the number added to it
    """

    code: np.ndarray
    symbols: dict[str, int]
    inner: np.ndarray
    outer: tuple[tuple[str, int, int], ...]


def place_image(image: Image) -> tuple[np.ndarray, dict[str, int]]:
    """Place an image in executable memory.

    Returns the memory, which must live as long as the functions, and the functions' addresses.

    Raises
        UnknownCode: the system lacks a C function, or refuses executable memory
    """
    memory = np.frombuffer(new_pages(max(len(image.code), 1)), np.uint8)
    memory[: len(image.code)] = image.code
    base, (places, targets) = memory.ctypes.data, image.inner.T
    addresses = (base + targets).view(np.uint8).reshape(-1, ADDRESS_BYTES)
    memory[places[:, None] + np.arange(ADDRESS_BYTES)] = addresses
    for name, at, plus in image.outer:
        memory[at : at + ADDRESS_BYTES].view(np.int64)[0] = c_function(name) + plus
    clear_cache(base, len(memory))
    try:
        make_executable(base, len(memory))
    except OSError as error:
        raise UnknownCode(error.strerror) from None
    return memory, {name: base + at for name, at in image.symbols.items()}


def clear_cache(start: int, nbytes: int) -> None:
    """Make bytes that were just written visible to the processor as code, where it does not do that by itself.

    Raises
        UnknownCode: the system lacks libgcc
    """
    name = host_architecture().clear_cache
    if name:
        try:
            clear = ctypes.CDLL("libgcc_s.so.1")[name]
        except (OSError, AttributeError) as error:
            raise UnknownCode(f"new code cannot be made visible to the processor: {error}") from None
        clear.restype = None
        clear(ctypes.c_void_p(start), ctypes.c_void_p(start + nbytes))


def c_function(name: str) -> int:
    """Return the address of a C function: of LAPACK, or of what this process is linked with."""
    try:
        if name.startswith(LAPACK):
            return import_module("cgraph.system.scipy_lapack").address_of(name.removeprefix(LAPACK))
        return ctypes.cast(getattr(c_library(), name), ctypes.c_void_p).value or 0
    except (AttributeError, KeyError, OSError, ValueError):  # ValueError: no name at all
        raise UnknownCode(f"there is no C function {name!r:.80}") from None
