"""Offsets of fields in CPython's objects of arrays, dtypes and tuples, which native code reads to check arrays.

Source: NumPy's C API, ``PyArrayObject_fields`` and ``PyArray_Descr``; CPython's ``PyTupleObject``. All are in bytes.
"""

import ctypes
import sys
from functools import cache

import numpy as np

from cgraph.system.addresses import by_interface

HEAD = object.__basicsize__  # of an object, which ends with the address of its type; a tuple's length follows
ITEMS = tuple.__basicsize__  # before a tuple's items
# After the head of an array, and of a dtype
DATA, NDIM, SHAPE, DTYPE, FLAGS = 0, 8, 16, 40, 48
DTYPE_WORD = 8  # kind, letter, byte order and number
IN_ORDER = 0x101  # flags of an array that is C-contiguous and aligned


def word_of(dtype: np.dtype) -> int:
    """Return the word that a dtype shares with every dtype equal to it, as native code reads it."""
    return ctypes.c_int64.from_address(id(dtype) + HEAD + DTYPE_WORD).value


@cache
def has_array_fields() -> bool:
    """Return True if arrays and tuples of this Python have their fields at these offsets."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probes = (np.zeros((2, 3), np.float32), np.zeros((5,), np.int64)[1:], np.zeros((2, 3, 4)).T, np.zeros((), np.uint8))
    return (
        holds_items(probes)
        and all(has_fields(x) for x in probes)
        and word_of(np.dtype("f4")) != word_of(np.dtype("i8"))
    )


def holds_items(probe: tuple) -> bool:
    """Return True if a tuple has its length and its items where this module expects them."""
    words = (ctypes.c_int64 * len(probe)).from_address(id(probe) + ITEMS)
    return ctypes.c_int64.from_address(id(probe) + HEAD).value == len(probe) and list(words) == list(map(id, probe))


def has_fields(probe: np.ndarray) -> bool:
    """Return True if an array has its fields where this module expects them."""
    at = id(probe) + HEAD
    kind = ctypes.c_int64.from_address(at - 8).value
    words = {x: ctypes.c_int64.from_address(at + x).value for x in (DATA, SHAPE, DTYPE)}
    numbers = [ctypes.c_int32.from_address(at + x).value for x in (NDIM, FLAGS)]
    flags = probe.flags
    if kind != id(np.ndarray) or words[DATA] != by_interface(probe) or words[DTYPE] != id(probe.dtype):
        return False
    if numbers[0] != probe.ndim or (numbers[1] & IN_ORDER == IN_ORDER) != (flags.c_contiguous and flags.aligned):
        return False
    sizes = (ctypes.c_int64 * probe.ndim).from_address(words[SHAPE]) if probe.ndim else ()
    return tuple(sizes) == probe.shape and word_of(probe.dtype) >> 32 == probe.dtype.num
