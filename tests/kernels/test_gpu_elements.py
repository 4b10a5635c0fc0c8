"""Families whose threads have an element each, with the bits of the kernels that processors share: random numbers, rows
at a position that is data, responses across channels; and what the machine code of all such kernels is."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.normalise.calls import local_response_calls
from cgraph.kernels.random.calls import random_calls
from cgraph.kernels.rows.calls import rows_calls
from cgraph.kernels.rows.signature import SET, TAKE
from cgraph.kernels.store import store
from tests.kernels.test_random import KEY, REFERENCE
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.kernels import view_of
from tests.support.ptxas import usage
from tests.support.tolerance import assert_near


def in_blocks(calls):
    assert calls and all(call.kernel.is_block for call in calls)
    run_on_gpu(calls)


@pytest.mark.parametrize("kind, dtype", REFERENCE)
def test_random_numbers_are_those_of_every_device(kind, dtype):
    for size in (1, 64, 1000):
        out = np.zeros(size, "?" if dtype == "b1" else dtype)
        in_blocks(random_calls(BLOCKS, kind, view_of(out), view_of(KEY), 0.3))
        np.testing.assert_array_equal(out, REFERENCE[kind, dtype](KEY, size))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_normal_numbers_have_the_bits_of_one_thread(dtype):
    found = [np.zeros(200, dtype) for _ in range(2)]
    for target, out in zip((BLOCKS, GPU), found):
        run_on_gpu(random_calls(target, "normal", view_of(out), view_of(KEY)))
    assert found[0].tobytes() == found[1].tobytes() and 0.8 < found[0].std() < 1.2


@pytest.mark.parametrize("dtype", ["u1", "f4", "c8"])
@pytest.mark.parametrize("start", [np.array(1), np.array([-1, 3])], ids=["one", "each"])
def test_rows_at_a_position(start, dtype):
    x, y = (np.arange(2 * n * 70).reshape(2, n, 70).astype(dtype) for n in (4, 2))
    written, read = x.copy(), np.zeros_like(y)
    for i in range(2):
        for row in range(2):
            place = start[i] + row if start.ndim else start + row
            if 0 <= place < 4:
                written[i, place], read[i, row] = y[i, row], x[i, place]
    out, given = np.full_like(y, 7), x.copy()
    in_blocks(rows_calls(BLOCKS, TAKE, view_of(x), view_of(out), view_of(start), 1))
    in_blocks(rows_calls(BLOCKS, SET, view_of(given), view_of(y), view_of(start), 1))
    np.testing.assert_array_equal(out, read)
    np.testing.assert_array_equal(given, written)


@pytest.mark.parametrize("beta", [0.75, 0.6])
def test_responses_across_channels(beta):
    x = np.random.default_rng(0).standard_normal((2, 7, 3, 5), "float32")
    squares = np.pad(np.square(x), ((0, 0), (1, 2), (0, 0), (0, 0)))
    want = x / (1.5 + 0.3 / 4 * sum(squares[:, i : i + 7] for i in range(4))) ** beta
    out = np.zeros_like(x)
    in_blocks(local_response_calls(BLOCKS, view_of(out), view_of(x), 4, 0.3, beta, 1.5))
    assert_near(out, want, "float32 sums")


KERNELS = {  # with registers of a thread at most
    Kernel("index.gpu.gather", (4, "i8", 3)): 48,
    Kernel("index.gpu.scatter", ("f4", "i8", "add", 3)): 56,
    Kernel("index.gpu.segments", ("f4", "add", 4)): 64,
    Kernel("index.gpu.nonzero", ("f4",)): 48,
    Kernel("sort.gpu.rows", ("f4", "i4", False, True, 4096, 2)): 64,
    Kernel("sort.gpu.merge", ("f4", "i8", False, True, 2)): 48,
    Kernel("sort.gpu.search", ("f4", False, 2)): 40,
    Kernel("window.gpu.indices", ("f4",)): 64,
    Kernel("window.gpu.spread", ("f4",)): 72,
    Kernel("window.gpu.linear", ("f4",)): 48,
    Kernel("regions.gpu.align", ("f4", 2, "aligned", False, False)): 128,
    Kernel("regions.gpu.spread", ("f4", 2, "aligned", False)): 128,
    Kernel("random.gpu.fill", ("uniform", "f4")): 40,
    Kernel("rows.gpu.set", (4,)): 40,
    Kernel("conv.gpu.tile", ("f4", 32, False, False, True)): 128,
    Kernel("conv.gpu.join", ("f4", True, True)): 56,
}


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_ptxas_finds_no_spill_and_no_float64(kernel, tmp_path):
    text = store().ptx(kernel, 64, GPU)[1].decode()
    assert text.count(".f64") <= text.count("cvt.rn.f32.f64")
    found = usage(text, GPU.cpu, tmp_path)
    assert found.registers <= KERNELS[kernel] and found.stack == found.spills == 0
