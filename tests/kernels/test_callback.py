"""Python functions in place of kernels: arrays over the program's own memory, results first, operands read-only."""

import numpy as np
import pytest

from cgraph.errors import GraphError
from cgraph.kernels.callback import array_at, callback_call, port_call
from cgraph.kernels.kernel import Callback, Pointer, View
from tests.support.kernels import run_calls, view_of


def test_results_come_first_and_keep_their_own_layouts():
    """Two results and two operands of different shapes, dtypes and strides."""
    first, second = np.zeros((3, 4), "f4"), np.zeros(3, "i8")
    x, y = np.arange(12, dtype="f4").reshape(3, 4), np.array([10, 20, 30], "i8")

    def function(outs, xs):
        outs[0][...], outs[1][...] = xs[0] * 2, xs[1] + 1
        assert [a.dtype for a in (*outs, *xs)] == [np.float32, np.int64, np.float32, np.int64]

    outs = (View(Pointer(first, 12), (4, 3), (-4, 16), "f4"), view_of(second))
    call = callback_call(function, outs, (View(Pointer(x), (4, 3), (4, 16), "f4"), view_of(y)))
    run_calls([call])
    np.testing.assert_array_equal(first, 2 * x[:, ::-1])
    assert second.tolist() == [11, 21, 31]
    np.testing.assert_array_equal(x, np.arange(12).reshape(3, 4))


def test_operands_cannot_be_written_and_results_can():
    out, x = np.zeros(2, "f4"), np.ones(2, "f4")
    flags = []

    def function(outs, xs):
        flags.extend(a.flags.writeable for a in (*outs, *xs))

    run_calls([callback_call(function, [view_of(out)], [view_of(x), view_of(x)])])
    assert flags == [True, False, False]


def test_a_call_names_its_memory_and_is_one_task():
    out, x = view_of(np.zeros(2, "f4")), view_of(np.ones(2, "f4"))
    call = callback_call(lambda outs, xs: None, [out], [x])
    assert call.args == (out.at, x.at) and call.tasks == 1
    kernel = call.kernel
    assert isinstance(kernel, Callback) and kernel.views == (out, x)
    assert (kernel.results, kernel.blas, kernel.port) == (1, False, None)
    assert callback_call(lambda outs, xs: None, [], [x, out], blas=True).kernel.blas
    assert callback_call(lambda outs, xs: None, [], [x, out]).kernel.results == 0


@pytest.mark.parametrize(("fills", "results"), [(True, 1), (False, 0)])
def test_a_port_has_a_key_and_no_function_of_its_own(fills, results):
    view, port = view_of(np.zeros((2, 3), "f4")), object()
    call = port_call(port, view, fills)
    assert call.kernel.port is port and call.kernel.results == results and call.kernel.views == (view,)
    assert call.args == (view.at,) and call.tasks == 1 and not call.kernel.blas
    with pytest.raises(GraphError, match="without a row source or sink. Call it through the streaming runner"):
        run_calls([call])


def test_an_array_over_memory_shows_it_and_copies_nothing():
    x = np.arange(6, dtype="i2")
    over = array_at(x.ctypes.data + 2, View(Pointer(x, 2), (2, 2), (4, 2), "i2"), True)
    assert over.tolist() == [[1, 2], [3, 4]]
    over[1, 0] = 9
    assert x.tolist() == [0, 1, 2, 9, 4, 5]
    broadcast = array_at(x.ctypes.data, View(Pointer(x), (3,), (0,), "i2"), False)
    assert broadcast.tolist() == [0, 0, 0] and not broadcast.flags.writeable


def test_booleans_are_numpys():
    x = np.array([1, 0, 1], "u1")
    over = array_at(x.ctypes.data, View(Pointer(x), (3,), (1,), "b1"), False)
    assert over.dtype == np.bool_ and over.tolist() == [True, False, True]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 4)])
def test_no_elements_need_no_memory(shape):
    empty = array_at(0, View(Pointer(None), shape, (4,) * len(shape), "f4"), True)
    assert empty.shape == shape and empty.dtype == np.float32


def test_no_axes_are_one_element():
    x = np.array([2.5, 7])
    assert array_at(x.ctypes.data + 8, View(Pointer(x, 8), (), (), "f8"), False)[()] == 7
