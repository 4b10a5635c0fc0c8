"""DLPack through ctypes, without another package: capsules that export memory, and reading other libraries' capsules.

Source: the DLPack specification 0.8, https://dmlc.github.io/dlpack/latest/
"""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, pythonapi
from typing import Any

import numpy as np

from cgraph.record import Record

CUDA = 2  # DLPack's number of the kind of device
KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's numbers of the kinds of elements
LETTERS = {number: letter for letter, number in KINDS.items()}
FRESH, CONSUMED = b"dltensor", b"used_dltensor"


class DLTensor(ctypes.Structure):
    """DLPack's DLTensor; strides are in elements."""

    _fields_ = [
        ("data", c_void_p), ("device_kind", c_int32), ("device_number", c_int32), ("ndim", c_int32),
        ("kind", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
        ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("first", c_uint64),
    ]  # fmt: skip


class DLManagedTensor(ctypes.Structure):
    """DLPack's DLManagedTensor."""

    _fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", c_void_p)]


new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", pythonapi))
get_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", pythonapi))
set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, c_char_p)(("PyCapsule_SetName", pythonapi))
hold = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", pythonapi))
release = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", pythonapi))


class SharedArray(Record, eq=False):
    """An array at an address, with strides in elements; `owner` keeps its memory alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    device: tuple[int, int]
    owner: Any


class _Context:
    """The objects that a capsule's receiver needs while it uses the memory."""

    def __init__(self, shown: SharedArray) -> None:
        n, kind = len(shown.shape), shown.dtype.kind
        self.owner = shown.owner
        self.extents, self.steps = (c_int64 * n)(*shown.shape), (c_int64 * n)(*shown.strides)
        tensor = DLTensor(
            shown.address, *shown.device, n, KINDS[kind], 8 * shown.dtype.itemsize, 1,
            ctypes.cast(self.extents, POINTER(c_int64)), ctypes.cast(self.steps, POINTER(c_int64)), 0,
        )  # fmt: skip
        self.managed = DLManagedTensor(tensor, id(self), ctypes.cast(DELETER, c_void_p).value)


@ctypes.CFUNCTYPE(None, c_void_p)
def DELETER(managed: int) -> None:
    """Release the context when the receiver is done."""
    release(ctypes.cast(DLManagedTensor.from_address(managed).context, ctypes.py_object).value)


@ctypes.CFUNCTYPE(None, c_void_p)
def DESTRUCTOR(capsule: int) -> None:
    """Release the context of a capsule that no receiver took."""
    if is_valid(capsule, FRESH):
        DELETER(get_pointer(capsule, FRESH))


def capsule_of(shown: SharedArray) -> Any:
    """Return a capsule for one receiver."""
    context = _Context(shown)
    hold(context)
    return new_capsule(ctypes.addressof(context.managed), FRESH, ctypes.cast(DESTRUCTOR, c_void_p).value)


class _ForeignMemory:
    """Another library's memory, released with the last reference."""

    def __init__(self, managed: int) -> None:
        self.managed = managed

    def __del__(self) -> None:
        deleter = DLManagedTensor.from_address(self.managed).deleter
        if deleter:
            ctypes.CFUNCTYPE(None, c_void_p)(deleter)(self.managed)


def read_capsule(capsule: Any) -> SharedArray:
    """Return the array in a capsule, which belongs to the caller from now on.

    Raises
        BufferError: the capsule was taken before, or NumPy has no such dtype
    """
    if not is_valid(id(capsule), FRESH):
        raise BufferError("not a DLPack capsule, or one that was taken before. Call __dlpack__ again for a new one")
    managed = get_pointer(id(capsule), FRESH)
    set_name(capsule, CONSUMED)
    owner, t = _ForeignMemory(managed), DLManagedTensor.from_address(managed).tensor
    if t.lanes != 1 or t.bits % 8 or t.kind not in LETTERS:
        raise BufferError(
            f"elements of DLPack's kind {t.kind} with {t.bits} bits have no NumPy dtype. Convert them first"
        )
    shape = tuple(t.shape[: t.ndim])
    steps = [int(np.prod(shape[i + 1 :])) for i in range(t.ndim)]
    strides = tuple(t.strides[: t.ndim] if t.strides else steps)
    dtype = np.dtype("?" if LETTERS[t.kind] == "b" else f"{LETTERS[t.kind]}{t.bits // 8}")
    return SharedArray((t.data or 0) + t.first, shape, strides, dtype, (t.device_kind, t.device_number), owner)
