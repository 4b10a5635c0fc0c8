"""A Python function as a kernel: it gets arrays over the program's own bytes, and what it raises reaches the caller.

An exception cannot pass through compiled code. It is kept under the address of the program's stop word, which is the
first argument of every such call; the word is set, so the run ends after this call, and the program raises it then.
"""

import ctypes
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from cgraph.kernels.kernel import Call, Callback, Pointer, View

STOP = "stop word"  # the base of the pointer to it; a program binds it to a word of its own
NATIVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_FAILURES: dict[int, BaseException] = {}


def callback_call(
    function: Callable[[tuple[np.ndarray, ...], tuple[np.ndarray, ...]], None],
    outs: Sequence[View],
    xs: Sequence[View],
    blas: bool = False,
) -> Call:
    """A call of ``function(outs, xs)`` with arrays over the views; it fills `outs` and leaves `xs` as they are."""
    views = (*outs, *xs)

    def enter(table: int, first: int, last: int) -> None:
        words = (ctypes.c_int64 * (1 + len(views))).from_address(table)
        try:
            arrays = [array_at(at, view, i < len(outs)) for i, (at, view) in enumerate(zip(words[1:], views))]
            function(tuple(arrays[: len(outs)]), tuple(arrays[len(outs) :]))
        except BaseException as error:  # also an interrupt: it must reach the caller of the run
            _FAILURES[words[0]] = error
            ctypes.c_int64.from_address(words[0]).value = 1

    return Call(Callback(NATIVE(enter), blas), (Pointer(STOP), *(v.at for v in views)), 1)


def taken_failure(stop: int) -> BaseException | None:
    """What a function raised in the run with this stop word; asked once."""
    return _FAILURES.pop(stop, None)


def array_at(address: int, view: View, writeable: bool) -> np.ndarray:
    """The elements of a view at an address."""
    dtype = np.dtype("?" if view.dtype == "b1" else view.dtype)
    if view.size == 0:
        return np.empty(view.shape, dtype)
    interface = {
        "data": (address, not writeable),
        "shape": view.shape,
        "strides": view.strides,
        "typestr": dtype.str,
        "version": 3,
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface))
