"""A Python function in the place of a kernel: it gets arrays over the program's own bytes.

The interpreter goes back to Python at its row, where the run holds nothing; so what the function raises ends the run as
any exception does, and the function may wait for what other threads compute.
"""

import ctypes
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from cgraph.errors import GraphError
from cgraph.kernels.kernel import Call, Callback, View


def callback_call(
    function: Callable[[tuple[np.ndarray, ...], tuple[np.ndarray, ...]], None],
    outs: Sequence[View],
    xs: Sequence[View],
    blas: bool = False,
) -> Call:
    """A call of ``function(outs, xs)`` with arrays over the views; it fills `outs` and leaves `xs` as they are."""
    views = (*outs, *xs)

    def enter(args: int) -> None:
        words = (ctypes.c_int64 * len(views)).from_address(args)
        arrays = [array_at(at, view, i < len(outs)) for i, (at, view) in enumerate(zip(words, views))]
        function(tuple(arrays[: len(outs)]), tuple(arrays[len(outs) :]))

    return Call(Callback(enter, blas, views, len(outs)), tuple(v.at for v in views), 1)


def port_call(port: object, view: View, fills: bool) -> Call:
    """A call with an array over the view of a function that each run has its own of.

    Parameters
        port: what it is known by
        fills: it writes the elements; otherwise it reads them
    """
    return Call(Callback(refuse_call, False, (view,), int(fills), port), (view.at,), 1)


def refuse_call(args: int) -> None:
    raise GraphError("rows go in and out where an instance knows from where and to where")


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
