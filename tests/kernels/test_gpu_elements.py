"""The machine code of kernels in blocks of threads: registers, no stack, no float64 where the dtype is float32."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.normalise.calls import layer_norm_calls
from cgraph.kernels.reduce.calls import reduce_calls
from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.store import store
from tests.kernels.test_reduce import identity
from tests.support.gpu import BLOCKS, GPU
from tests.support.kernels import view_of
from tests.support.ptxas import usage


def draw(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


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


def test_ptxas_finds_no_stack_and_no_spill_in_teams(tmp_path):
    x, row, out = draw(64, 2048), draw(2048), np.zeros(64, "f4")
    calls = [
        *reduce_calls(BLOCKS, "sum", identity("f4"), view_of(out), view_of(x), axes=(1,)),
        *softmax_calls(BLOCKS, "softmax", view_of(x), view_of(x), 1),
        *layer_norm_calls(BLOCKS, *map(view_of, (x, x, row, row)), 1, 1e-5),
    ]
    for call in calls:
        text = store().ptx(call.kernel, -(-len(call.args) // 8) * 8, GPU)[1].decode()
        found = usage(text, GPU.cpu, tmp_path)
        assert found.registers <= 64 and found.stack == found.spills == 0, call.kernel
        assert ".f64" not in text.replace("cvt.rn.f32.f64", "", 1)  # epsilon
