"""The engine over the CUDA driver's own functions, by a stand-in: right values, few bytes moved, every failure told."""

import gc
import re
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda import driver as driver_module
from cgraph.engine.cuda import gpu as gpu_module
from cgraph.engine.cuda.device import Allocation
from cgraph.engine.cuda.driver import Driver, open_driver
from cgraph.engine.cuda.engine import CudaEngine, open_device
from cgraph.engine.cuda.gpu import GpuGraph
from cgraph.engine.cuda.segments import label_of
from cgraph.errors import EngineError
from tests.engine.cuda.conftest import driver_of, forget
from tests.support.libcuda import StandIn
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
        ({"failures": {"cuDeviceGetCount": 100}}, "finds no device"),
        ({"failures": {"cuDeviceGetCount": 999}}, r"cuDeviceGetCount.*\(999\)"),
        ({"major": 7, "minor": 4}, "compute capability 7.4; at least 7.5 is needed"),
        ({"major": 6, "minor": 9}, "compute capability 6.9; at least 7.5 is needed"),
        ({"version": 11090}, "driver supports CUDA 11.9; at least 12.0 is needed"),
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


def test_the_first_library_that_loads_is_the_driver(monkeypatch):
    asked = []

    def load(name):
        asked.append(name)
        if len(asked) < len(driver_module.NAMES):
            raise OSError(name)
        return name

    monkeypatch.setattr(driver_module.ctypes, "CDLL", load)
    assert driver_module.library() == driver_module.NAMES[-1] and tuple(asked) == driver_module.NAMES


@pytest.mark.parametrize("change", [{"major": 7, "minor": 5}, {"major": 8, "minor": 0}, {"version": 12000}], ids=str)
def test_the_oldest_device_and_driver_that_are_supported_are_used(library, change):
    for name, value in change.items():
        setattr(library, name, value)
    assert open_device(0).capability == (library.major, library.minor)


LOST = (700, 702, 714, 715, 716, 717, 718, 719)


@pytest.mark.parametrize("code", [1, 2, 201, 699, 701, 703, 713, 720, 999, *LOST])
def test_only_errors_of_a_context_that_is_gone_lose_it(library, code):
    cuda, end = open_driver(library), "; the context is lost. Start a new process" if code in LOST else ""
    library.failures["cuMemFree_v2"] = code
    with pytest.raises(EngineError, match=rf"^cuMemFree_v2: unknown error \({code}\){end}$"):
        cuda.do("cuMemFree_v2", 0)
    assert cuda.is_usable == (code not in LOST)
    if code in LOST:
        with pytest.raises(EngineError, match=rf"is lost since cuMemFree_v2: unknown error \({code}\)\. Start"):
            cuda.do("cuInit", 0)
    else:
        cuda.do("cuInit", 0)


@pytest.mark.parametrize("how", ["lost", "forked"])
def test_memory_and_graphs_of_a_context_that_is_gone_are_left_alone(library, how, monkeypatch):
    device = open_device(0)
    memory, graph = Allocation(device, 8), GpuGraph(device.queue(), 5)
    if how == "lost":
        device.driver.lost = "a test"
    else:
        monkeypatch.setattr(driver_module.os, "getpid", lambda: -1)
    library.calls.clear()
    for each in (memory, graph):
        each.__del__()  # raises nothing, which Python would print
    assert not library.calls


def test_copies_of_nothing_and_fills_of_nothing_are_no_calls(library):
    queue, nothing = open_device(0).queue(), np.zeros(0, "f4")
    library.calls.clear()
    queue.upload(64, nothing)
    queue.download(64, nothing)
    queue.copy(64, 128, 0)
    queue.fill(64, 0, 7)
    assert not library.calls


class Flags(StandIn):
    """A driver that notes how streams, events and captures are asked for."""

    def __init__(self):
        self.flags = {}
        super().__init__()

    def _cuStreamCreate(self, found, flags):
        self.flags["stream"] = flags
        super()._cuStreamCreate(found, flags)

    def _cuEventCreate(self, found, flags):
        self.flags["event"] = flags
        super()._cuEventCreate(found, flags)

    def _cuStreamBeginCapture_v2(self, stream, mode):
        self.flags["capture"] = mode
        super()._cuStreamBeginCapture_v2(stream, mode)


def test_streams_wait_for_no_other_events_keep_no_time_and_captures_are_of_their_thread(library, monkeypatch):
    """CU_STREAM_NON_BLOCKING, CU_EVENT_DISABLE_TIMING and CU_STREAM_CAPTURE_MODE_THREAD_LOCAL of cuda.h."""
    flags = Flags()
    monkeypatch.setattr(gpu_module, "driver", lambda: open_driver(flags))
    queue = open_device(0).queue()
    queue.follow(1)
    queue.captured(np.zeros((0, 5), np.int64))
    assert flags.flags == {"stream": 1, "event": 2, "capture": 1}


class Nth(dict):
    """Failures by name, of the n-th launch alone. Changes: counts the launches."""

    def __init__(self, number):
        super().__init__()
        self.left = number

    def get(self, name, default=None):
        self.left -= name == "cuLaunchKernel"
        return 1 if name == "cuLaunchKernel" and self.left == 0 else default


def test_each_launch_that_is_refused_names_its_own_step(library):
    x = cg.Var((40,), name="x")
    first = cg.cumsum(x)
    second = cg.sort(first)
    f = cg.compile(cg.cumprod(second), x, engine="cuda")
    code, value = f.program.code, np.linspace(0.01, 0.05, 40, dtype="f4")
    rows = np.flatnonzero(code.table[:, 2]).tolist()
    assert len({code.label_of[row] for row in rows}) == 3
    for number, row in enumerate(rows, 1):
        library.failures = Nth(number)
        with pytest.raises(EngineError, match=f"^{re.escape(label_of(code, row))}: cuLaunchKernel"):
            f(value)
    library.failures = {}
    assert_near(f(value), np.cumprod(np.sort(np.cumsum(value))), "float32 sums")


def test_the_launches_of_a_loop_are_no_graph_however_often_they_run(library):
    """It would repeat the addresses of one round."""
    x = cg.Var((6, 5), name="x")
    last, rows = cg.scan(lambda s, row: (0.5 * s + row, s), np.zeros(5, "f4"), x)
    f, plain = (cg.compile([last, rows], x, engine=engine) for engine in ("cuda", "cpu"))
    for seed in range(5):
        value = np.random.default_rng(seed).standard_normal((6, 5), "f4")
        for got, want in zip(f(value), plain(value), strict=True):
            assert_near(got, want, "float32 sums")


class Named(StandIn):
    """A driver that names its errors and notes the bytes that it is asked for. Changes: both."""

    def __init__(self):
        self.asked = []
        super().__init__()

    def _cuGetErrorName(self, code, found):
        found[0] = {1: b"CUDA_ERROR_INVALID_VALUE", 700: b"CUDA_ERROR_ILLEGAL_ADDRESS"}[code]

    def _cuMemAlloc_v2(self, found, nbytes):
        self.asked.append(nbytes)
        super()._cuMemAlloc_v2(found, nbytes)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1, r"cuMemFree_v2: CUDA_ERROR_INVALID_VALUE \(1\)$"),
        (700, r"cuMemFree_v2: CUDA_ERROR_ILLEGAL_ADDRESS \(700\); the context is lost. Start a new process$"),
    ],
)
def test_an_error_is_told_by_the_name_that_the_driver_gives_it(code, text):
    library = Named()
    cuda = open_driver(library)
    library.failures["cuMemFree_v2"] = code
    with pytest.raises(EngineError, match=f"^{text}"):
        cuda.do("cuMemFree_v2", 0)


def test_at_least_one_byte_is_allocated(monkeypatch):
    """The driver refuses none."""
    library = Named()
    with driver_of(library, monkeypatch):
        device = open_device(0)
        addresses = [device.take(nbytes) for nbytes in (0, 1, 7)]
        assert library.asked == [1, 1, 7] and len(set(addresses)) == 3
        for address in addresses:
            device.free(address)
        assert not library.alive


def test_a_wait_naps_only_after_it_has_asked_for_a_while(library, monkeypatch):
    queue, naps = open_device(0).queue(), []
    spin = gpu_module.SPIN
    times = iter([5.0, 5.0, 5.0 + spin / 2, 5.0 + 2 * spin, 6.0])
    monkeypatch.setattr(gpu_module, "time", SimpleNamespace(monotonic=lambda: next(times), sleep=naps.append))
    library.busy = 5
    queue.wait()
    assert naps == [gpu_module.NAP] * 2 and next(times, None) is None


def test_an_array_is_kept_until_a_wait_has_seen_the_end_of_its_copy(library):
    queue, array = open_device(0).queue(), np.arange(5.0)
    at = open_device(0).take(40)
    queue.upload(at, array)
    queue.download(at, array)
    assert [x is array for x in queue._arrays.values()] == [True]
    queue.wait()
    assert not queue._arrays
    open_device(0).free(at)
