"""Aligned memory: multiples that are met exactly, addresses, shapes, dtypes and order of memory."""

import numpy as np
import pytest

from cgraph.system.alignment import ALIGNMENT, aligned, aligned_array, aligned_memory, aligned_zeros, round_up


@pytest.mark.parametrize("multiple", [1, 3, 64, 4096])
def test_a_number_is_rounded_up_to_the_next_multiple_or_stays(multiple):
    for n in range(3 * multiple + 1):
        up = round_up(n, multiple)
        assert up % multiple == 0 and n <= up < n + multiple
    assert [aligned(n) for n in (0, 1, 63, 64, 65, 128)] == [0, 64, 64, 64, 128, 128]


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16", "i2"])
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7,), (2, 3, 5)], ids=str)
def test_arrays_begin_at_a_multiple_and_are_whole(shape, dtype):
    """Several at once, since one may lie right by chance."""
    kind = np.dtype(dtype)
    nbytes = int(np.prod(shape)) * kind.itemsize
    for make in (lambda: aligned_zeros(shape, kind), lambda: aligned_array(shape, kind, nbytes)):
        arrays = [make() for _ in range(9)]
        for i, x in enumerate(arrays):
            assert (x.shape, x.dtype, x.nbytes) == (shape, kind, nbytes)
            assert x.ctypes.data % ALIGNMENT == 0 and x.flags.c_contiguous and x.flags.writeable
            x[...] = i
        assert all((x == i).all() for i, x in enumerate(arrays)), "each has its own bytes"
    assert not aligned_zeros(shape, kind).any()


@pytest.mark.parametrize("nbytes", [0, 1, 64, 1000])
def test_aligned_memory_is_bytes(nbytes):
    several = [aligned_memory(nbytes) for _ in range(9)]
    for memory in several:
        assert (memory.shape, memory.dtype) == ((nbytes,), np.uint8) and memory.ctypes.data % ALIGNMENT == 0
