"""Two GPUs in one process: each has its own name, kernels, memory and streams, and is used in its own context."""

import gc

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda import gpu as gpu_module
from cgraph.engine.cuda import pinned
from cgraph.engine.cuda.dlpack import CUDA
from cgraph.engine.cuda.engine import CudaEngine, open_device
from cgraph.errors import BudgetError, EngineError, InputError
from cgraph.kernels.isa.ptx import gpu_target
from tests.engine.cuda.conftest import driver_of
from tests.support.tolerance import assert_near
from tests.support.two_gpus import CAPABILITIES, NAMES, NBYTES, TwoGpus

VALUE = np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4)


@pytest.fixture
def library(monkeypatch):
    """The driver that the engine ``cuda`` finds; nothing may have strayed into the other context."""
    with driver_of(TwoGpus(), monkeypatch) as library:
        yield library
    gc.collect()
    assert not library.strays and not library.alive


def test_each_gpu_is_described_by_its_own_line(library):
    assert gpu_module.describe_gpus() == [
        "small, capability 8.0, 1 GiB, driver of CUDA 12.8",
        "large, capability 9.0, 3 GiB, driver of CUDA 12.8",
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_a_device_has_the_name_target_and_memory_of_its_number(library, number):
    for other in (1 - number, number):  # the other one's context was current
        device = open_device(other)
    assert (device.name, device.capability, device.number) == (NAMES[number], CAPABILITIES[number], (CUDA, number))
    assert device.target == gpu_target(*CAPABILITIES[number]) and device.nbytes == NBYTES[number] - 4096
    assert open_device(number) is device is not open_device(1 - number)


@pytest.mark.parametrize("number", [-2, 2, 3])
def test_other_numbers_are_refused(library, number):
    words = f"there is no device {number}; this machine has 2. Choose a number from 0 to 1"
    with pytest.raises(EngineError, match=words):
        cg.compile(cg.Var((2,)) + 1, engine=CudaEngine(number))


def test_a_plan_is_refused_by_the_gpu_that_is_too_small_for_it(library):
    x = cg.Var((1 << 15, 1 << 13), name="x")  # 1 GiB
    y = cg.cumsum(cg.exp(x), 0)
    assert cg.compile(y, x, engine=CudaEngine(1)).nbytes >= 1 << 30
    with pytest.raises(BudgetError, match="small has"):
        cg.compile(y, x, engine=CudaEngine(0))


def test_functions_on_two_gpus_take_turns_at_one_var(library, monkeypatch):
    """Large arrays go by the pinned buffers of each; from the third run on each has a graph."""
    monkeypatch.setattr(pinned, "PIECE", 16)
    monkeypatch.setattr(gpu_module, "LEAST_PINNED", 20)
    x, w = cg.Var((3, 4), name="x"), cg.Var((3, 4), name="w").assign(np.ones((3, 4), "f4"))
    steps = [cg.compile(x * w, x, updates={w: w + x * (i + 1)}, engine=CudaEngine(i)) for i in range(2)]
    want = np.ones((3, 4), "f4")
    for turn in (0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1):
        assert_near(steps[turn](VALUE), VALUE * want, "float32 sums")
        want = want + VALUE * (turn + 1)
    assert_near(w.value, want, "float32 sums")
    assert len(library.ready) >= 2 and len(library.pinned) == 4


def test_an_array_on_one_gpu_is_read_there_and_refused_by_the_other(library):
    x = cg.Var((3, 4), name="x")
    make = [cg.compile(cg.exp(x) + i, x, engine=CudaEngine(i)) for i in range(2)]
    arrays = [f(VALUE, copy=False) for f in make]
    for i, on in enumerate(arrays):
        assert on.__dlpack_device__() == (CUDA, i) and NAMES[i] in repr(on)
        with pytest.raises(InputError, match=rf"on {NAMES[i]}>: it lies in the memory of .*\(2, {i}\)"):
            make[1 - i](on)
        assert_near(np.asarray(on), np.exp(VALUE) + i, "float32 formulas")
        assert_near(make[i](on), np.exp(np.exp(VALUE) + i) + i, "float32 formulas")


def test_memory_goes_back_while_the_other_context_is_current(library):
    x = cg.Var((3, 4), name="x")
    functions = [cg.compile(cg.exp(x) + cg.Const(VALUE), x, engine=CudaEngine(i)) for i in range(2)]
    for f in functions * 4:
        f(VALUE)
    assert {library.owners[at] for at in library.alive} == {0, 1} and len(library.ready) == 2
    del functions[0], f
    gc.collect()
    assert {library.owners[at] for at in library.alive} == {1} and len(library.ready) == 1


@pytest.mark.parametrize(("number", "text"), [(12000, "12.0"), (12080, "12.8"), (13100, "13.10"), (9020, "9.2")])
def test_a_version_of_cuda_has_a_major_and_a_minor_number(number, text):
    assert gpu_module.cuda_text(number) == text
