"""Calls with their tables, and the tasks of a chunk."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Call, Kernel
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of, join_calls, table


def test_parts_are_joined_in_their_order_with_all_constants():
    a, b, c = (Call(Kernel("tests.own", (i,)), (), 1) for i in range(3))
    x, y = np.zeros(1), np.ones(1)
    parts = [KernelCalls((a, b), (x,)), KernelCalls(), KernelCalls((c,), (y,))]
    for whole in (join_calls(parts), parts[0] + parts[1] + parts[2]):
        assert whole.calls == (a, b, c)
        assert [z is w for z, w in zip(whole.constants, (x, y))] == [True, True]
    assert join_calls([]) == KernelCalls()


@pytest.mark.parametrize(
    ("tasks", "nanoseconds", "chunk"),
    [
        (1, 1e9, 1),
        (0, 100, 1),
        (64, 1e9, 1),
        (65, 1e9, 2),  # at most 64 chunks
        (1000, 1e9, 16),
        (10, 400, 10),
        (25, 400, 7),  # 4000 ns are 10 tasks; 3 chunks become 4, for an even number of threads
        (10, 0, 10),  # nothing takes at least a nanosecond: one chunk
        (4001, 0, 2001),
        (100, 400, 10),
    ],
)
def test_chunks_last_long_enough_and_are_few(tasks, nanoseconds, chunk):
    assert chunk_of(tasks, nanoseconds) == chunk


@pytest.mark.parametrize("values", [[3, 1, 2], (5,), np.array([[1, 2], [3, 4]], "i4")[:, 1]])
def test_a_table_is_contiguous_int64(values):
    got = table(values)
    assert got.dtype == np.int64 and got.flags.c_contiguous and got.tolist() == list(values)


def test_a_table_is_never_empty():
    assert table([]).tolist() == [0]
