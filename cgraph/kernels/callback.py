"""Python functions called in place of a kernel, with arrays that view the program's own memory.

The interpreter returns to Python at the row of a callback and holds no lock there. An exception that the function
raises therefore ends the run like any other, and the function may wait for other threads.
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
    """Return a call of ``function(outs, xs)`` with arrays over the views. It fills `outs` and must not change `xs`."""
    views = (*outs, *xs)

    def enter(args: int) -> None:
        words = (ctypes.c_int64 * len(views)).from_address(args)
        arrays = [array_at(at, view, i < len(outs)) for i, (at, view) in enumerate(zip(words, views))]
        function(tuple(arrays[: len(outs)]), tuple(arrays[len(outs) :]))

    return Call(Callback(enter, blas, views, len(outs)), tuple(v.at for v in views), 1)


def port_call(port: object, view: View, fills: bool) -> Call:
    """Return a call whose function each run supplies; the function gets one array over the view.

    Parameters
        port: key under which a run supplies its function
        fills: True if the function writes the elements, False if it reads them
    """
    return Call(Callback(refuse_call, False, (view,), int(fills), port), (view.at,), 1)


def refuse_call(args: int) -> None:
    raise GraphError(
        "this program reads or writes streamed rows and was called without a row source or sink. "
        "Call it through the streaming runner, which supplies them"
    )


def array_at(address: int, view: View, writeable: bool) -> np.ndarray:
    """Return an array over the elements of a view at an address."""
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
