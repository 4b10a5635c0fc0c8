"""The engine over the CUDA driver's own functions, by a stand-in: right values, few bytes moved, every failure told."""

import gc

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda import driver as driver_module
from cgraph.engine.cuda.driver import Driver
from cgraph.engine.cuda.engine import CudaEngine
from cgraph.errors import EngineError
from tests.engine.cuda.conftest import forget
from tests.support.tolerance import assert_near


def training(engine):
    """A step, its weights, and a batch."""
    rng = np.random.default_rng(0)
    x, w = cg.Var((16, 7), name="x"), cg.Var((7, 3), name="w")
    w.assign(rng.standard_normal((7, 3), "f4"))
    loss = cg.mean(cg.square(cg.tanh(x @ w)))
    step = cg.compile(loss, [x], updates={w: w - 0.1 * cg.gradient(loss, w)}, engine=engine)
    return step, w, rng.standard_normal((16, 7), "f4")


def test_training_gives_the_values_of_the_cpu(library):
    step, w, batch = training("cuda")
    plain, other, _ = training("cpu")
    for _ in range(3):
        assert_near(step(batch), plain(batch), "float32 sums")
    assert_near(w.value, other.value, "float32 sums")
    assert library.calls["cuLaunchKernel"] > 3


def test_a_training_loop_moves_a_batch_up_and_a_loss_down(library):
    step, w, batch = training("cuda")
    step(batch)
    library.moved.clear()
    for _ in range(5):
        step(batch)
    assert library.moved == {"up": 5 * batch.nbytes, "down": 5 * 4}
    w.value  # noqa: B018 the host asks for the weights
    assert library.moved["down"] == 5 * 4 + w.value.nbytes


def test_device_memory_is_given_back(library):
    step, w, batch = training("cuda")
    step(batch)
    assert library.alive
    del step, w
    gc.collect()
    forget()
    assert not library.alive


def test_waiting_asks_until_the_stream_is_done(library):
    step, _, batch = training("cuda")
    library.busy = 30
    step(batch)
    assert library.calls["cuStreamQuery"] >= 30


def test_an_interrupt_waits_for_what_is_queued(library, monkeypatch):
    step, _, batch = training("cuda")
    step(batch)

    def interrupted(self, stream):
        raise KeyboardInterrupt

    monkeypatch.setattr(Driver, "is_done", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step(batch)
    assert library.calls["cuStreamSynchronize"] == 1


# -- graphs -----------------------------------------------------------------------------------------------------------


def test_the_third_run_is_captured_and_later_ones_are_one_call(library):
    step, w, batch = training("cuda")
    plain, other, _ = training("cpu")
    launched = []
    for _ in range(6):
        assert_near(step(batch), plain(batch), "float32 sums")
        launched.append(library.calls["cuLaunchKernel"])
    assert_near(w.value, other.value, "float32 sums")
    assert launched[0] < launched[1] < launched[2] == launched[5]
    graphs = library.calls["cuStreamBeginCapture_v2"]
    assert graphs == library.calls["cuStreamEndCapture"] == library.calls["cuGraphDestroy"] == len(library.ready) >= 1
    assert library.calls["cuGraphLaunch"] == 4 * graphs


def test_a_graph_reads_new_inputs_and_new_values_of_vars(library):
    x, w = cg.Var((5,), name="x"), cg.Var((5,), name="w").assign(np.ones(5, "f4"))
    f = cg.compile(cg.exp(x) * w, x, engine="cuda")
    for i in range(12):
        if i == 6:
            w.assign(np.full(5, 2, "f4"))
        value = np.full(5, i / 10, "f4")
        assert_near(f(value), np.exp(value) * w.value, "float32 formulas")
    assert library.calls["cuStreamBeginCapture_v2"] == 2  # the new value lies elsewhere


def test_few_graphs_are_kept_and_all_are_given_back(library):
    x, w = cg.Var((5,), name="x"), cg.Var((5,), name="w")
    f, kept = cg.compile(x * w, x, engine="cuda"), []
    for i in range(12):
        w.assign(np.full(5, i, "f4"))
        kept.append(w.cell.value)  # so that every value lies elsewhere
        for _ in range(3):
            assert f(np.ones(5, "f4")).tolist() == [i] * 5
    assert library.calls["cuGraphInstantiateWithFlags"] == 12 and len(library.ready) == 8
    del f
    gc.collect()
    assert not library.ready and not library.graphs


def test_graphs_may_be_refused(library):
    step, _, batch = training(CudaEngine(graphs=False))
    for _ in range(5):
        step(batch)
    assert not library.calls["cuStreamBeginCapture_v2"]


GRAPHS = ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch"]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_failure_of_a_graph_is_told_with_the_line_and_the_next_run_is_right(library, name):
    step, _, batch = training("cuda")
    plain, _, _ = training("cpu")
    for _ in range(2):
        assert_near(step(batch), plain(batch), "float32 sums")
    library.failures[name] = 2
    with pytest.raises(EngineError, match=rf"at test_driver.py:\d+.*{name}.*\(2\)"):
        step(batch)
    library.capturing = None
    del library.failures[name]
    for _ in range(4):
        assert_near(step(batch), plain(batch), "float32 sums")


def test_a_launch_that_is_refused_while_capturing_leaves_the_stream_usable(library):
    step, _, batch = training("cuda")
    for _ in range(2):
        step(batch)
    library.failures["cuLaunchKernel"] = 1
    with pytest.raises(EngineError, match=r"at test_driver.py:\d+: cuLaunchKernel"):
        step(batch)
    assert library.calls["cuStreamEndCapture"] == 1


# -- failures ---------------------------------------------------------------------------------------------------------

COMPILING = [
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuMemGetInfo_v2",
    "cuModuleLoadData",
    "cuModuleGetFunction",
]
RUNNING = ["cuStreamCreate", "cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel"]
AT_THE_END = ["cuStreamQuery", "cuMemcpyDtoHAsync_v2"]


@pytest.mark.parametrize("name", COMPILING)
def test_a_failure_while_compiling_is_told(library, name):
    library.failures[name] = 2
    with pytest.raises(EngineError, match=rf"{name}.*\(2\)"):
        training("cuda")


@pytest.mark.parametrize("name", RUNNING)
def test_a_failure_while_running_is_told_and_the_next_run_is_right(library, name):
    step, w, batch = training("cuda")
    plain, _, _ = training("cpu")
    library.failures[name] = 2
    with pytest.raises(EngineError, match=rf"{name}.*\(2\)"):
        step(batch)
    del library.failures[name]
    assert_near(step(batch), plain(batch), "float32 sums")


@pytest.mark.parametrize("name", AT_THE_END)
def test_a_failure_behind_the_last_launch_is_told(library, name):
    step, _, batch = training("cuda")
    library.failures[name] = 2
    with pytest.raises(EngineError, match=rf"{name}.*\(2\)"):
        step(batch)


def test_a_lost_context_is_said_and_stays_said(library):
    step, _, batch = training("cuda")
    library.failures["cuLaunchKernel"] = 700
    with pytest.raises(EngineError, match="the context is lost"):
        step(batch)
    del library.failures["cuLaunchKernel"]
    with pytest.raises(EngineError, match="is lost since cuLaunchKernel"):
        step(batch)


def test_an_error_of_a_launch_names_the_step(library):
    step, _, batch = training("cuda")
    library.failures["cuLaunchKernel"] = 1
    with pytest.raises(EngineError, match=r"at test_driver.py:\d+"):
        step(batch)


def test_a_child_of_a_fork_is_refused(library, monkeypatch):
    step, _, batch = training("cuda")
    monkeypatch.setattr(driver_module.os, "getpid", lambda: -1)
    with pytest.raises(EngineError, match="forked"):
        step(batch)


@pytest.mark.parametrize(
    "change, text",
    [
        ({"count": 0}, "finds no device"),
        ({"failures": {"cuInit": 100}}, "finds no device"),
        ({"failures": {"cuInit": 999}}, r"cuInit.*\(999\)"),
        ({"major": 7, "minor": 0}, "compute capability 7.0; at least 7.5 is needed"),
        ({"version": 11080}, "driver supports CUDA 11.8; at least 12.0 is needed"),
    ],
)
def test_a_device_that_cannot_be_used_is_refused_with_the_reason(library, change, text):
    for name, value in change.items():
        setattr(library, name, value)
    with pytest.raises(
        EngineError, match=rf"engine 'cuda' cannot run here: .*{text}.*engine='cuda-sim', which runs the same kernels"
    ):
        training("cuda")


def test_a_device_that_is_not_there_is_refused(library):
    with pytest.raises(EngineError, match="there is no device 3; this machine has 1"):
        training(CudaEngine(device=3))


def test_no_driver_is_an_error_when_compiling(monkeypatch):
    forget()
    monkeypatch.setattr(driver_module, "NAMES", ("no_such_library",))
    driver_module.driver.cache_clear()
    with pytest.raises(EngineError, match="there is no NVIDIA driver on this machine"):
        training("cuda")
    forget()
