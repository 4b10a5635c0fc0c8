"""The order of the driver's calls: the same values from a driver that does nothing before somebody waits for it."""

import gc
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda import gpu as gpu_module
from cgraph.engine.cuda import pinned
from cgraph.engine.cuda.arrays import LEGACY, DeviceArray, device_array
from cgraph.engine.cuda.dlpack import CUDA, SharedArray, capsule_of
from cgraph.engine.cuda.engine import CudaEngine, open_device
from cgraph.errors import EngineError, PositionError
from tests.engine.cuda.conftest import driver_of
from tests.function.test_transactions import copied_updates, first_value, updates_in_place
from tests.support.injection import Injected, ends_of_lines
from tests.support.late_cuda import LateStandIn, fill_later
from tests.support.tolerance import assert_near
from tests.support.transactions import cut_off

OTHER = 55  # a stream of another library
VALUE = np.arange(12, dtype="float32").reshape(3, 4) + 1


@pytest.fixture
def late(monkeypatch):
    """A driver that works as late as it may."""
    with driver_of(LateStandIn(), monkeypatch) as library:
        yield library


@pytest.fixture
def small_pieces(monkeypatch):
    """Arrays from 100 bytes on go by pinned buffers of 64 bytes."""
    monkeypatch.setattr(pinned, "PIECE", 64)
    monkeypatch.setattr(gpu_module, "LEAST_PINNED", 100)


@pytest.mark.parametrize("engine", ["cuda", CudaEngine(graphs=False), CudaEngine(check=True), CudaEngine(poison=True)])
def test_training_waits_for_everything_that_it_gives(late, engine):
    rng = np.random.default_rng(0)
    steps = []
    for name in (engine, "cpu"):
        x, w = cg.Var((9, 5), name="x"), cg.Var((5, 3), name="w").assign(np.full((5, 3), 0.5, "f4"))
        loss = cg.mean(cg.square(cg.tanh(x @ w)))
        steps.append((cg.compile([loss, x @ w], [x], updates={w: w - 0.1 * cg.gradient(loss, w)}, engine=name), w))
    (step, w), (plain, other) = steps
    for i in range(6):
        batch = rng.standard_normal((9, 5), "f4")
        for mine, theirs in zip(step(batch), plain(batch)):
            assert_near(mine, theirs, "float32 sums near zero")
        if i % 2:
            assert_near(w.value, other.value, "float32 sums")


@pytest.mark.parametrize("count", [1, 16, 17, 25, 32, 33, 100, 257])
def test_large_arrays_go_up_and_come_down_whole(late, small_pieces, count):
    x = cg.Var((count,), name="x")
    function = cg.compile(x * 2, x, engine="cuda")
    for i in range(4):
        value = np.arange(count, dtype="float32") + 1000 * i
        np.testing.assert_array_equal(function(value), value * 2)


def test_a_buffer_is_filled_again_only_behind_its_last_copy(late, small_pieces):
    """Of two uploads in two streams, neither of which anybody waits for, too."""
    device = open_device(0)
    arrays = [np.arange(80, dtype="float32") + 100 * i for i in range(4)]
    queues = [device.queue(), device.queue()]
    places = [device.take(x.nbytes) for x in arrays]
    for i, (x, at) in enumerate(zip(arrays, places)):
        queues[i % 2].upload(at, x)
    for queue in queues:
        queue.wait()
    for x, at in zip(arrays, places):
        np.testing.assert_array_equal(late.simulator.memory.bytes_at(at, x.nbytes), x.view("uint8"))
    down = np.zeros(80, "float32")
    for i, (x, at) in enumerate(zip(arrays, places)):
        queues[i % 2].upload(at, x[::-1].copy())
        queues[i % 2].download(at, down)
        np.testing.assert_array_equal(down, x[::-1])


def test_a_var_is_uploaded_once_and_again_when_it_is_assigned(late):
    x, w = cg.Var((5,), name="x"), cg.Var((5,), name="w").assign(np.ones(5, "f4"))
    first, second = (cg.compile(y, x, engine="cuda") for y in (x * w, x + w))
    batch = np.arange(5, dtype="f4")

    def moved(function):
        late.moved.clear()
        function(batch)
        return late.moved["up"] - batch.nbytes

    assert [moved(first), moved(first), moved(second), moved(first)] == [w.value.nbytes, 0, 0, 0]
    w.value  # noqa: B018 reading it moves nothing up
    assert moved(first) == 0
    for i in range(3):
        w.assign(np.full(5, i, "f4"))
        assert [moved(first), moved(second), moved(first)] == [w.value.nbytes, 0, 0]
        np.testing.assert_array_equal(second(batch), batch + i)


def test_a_var_that_the_device_has_written_is_read_by_other_functions_there(late):
    x, w = cg.Var((5,), name="x"), cg.Var((5,), name="w").assign(np.ones(5, "f4"))
    step = cg.compile(x * w, x, updates={w: w + x}, engine="cuda")
    read, plain = cg.compile(cg.exp(w) + x, x, engine="cuda"), cg.compile(w * 2, engine="cpu")
    batch = np.linspace(0, 1, 5, dtype="f4")
    want = np.ones(5, "f4")
    for _ in range(4):
        step(batch)
        want = want + batch
        late.moved.clear()
        assert_near(read(batch), np.exp(want) + batch, "float32 formulas")
        assert late.moved == {"up": batch.nbytes, "down": 20}
        assert_near(plain(), want * 2, "float32 formulas")
    w.assign(np.zeros(5, "f4"))
    assert_near(read(batch), 1 + batch, "float32 formulas")


class Foreign:
    """An array that another library's stream is yet to write."""

    def __init__(self, late, kind):
        self.address, self.late = open_device(0).take(VALUE.nbytes), late
        late.simulator.memory.bytes_at(self.address, VALUE.nbytes)[:] = 0
        self.stream = LEGACY if kind in ("dlpack", "version 2") else OTHER
        fill_later(late, self.stream, self.address, VALUE)
        if kind == "dlpack":
            self.__dlpack_device__ = lambda: (CUDA, 0)
            self.__dlpack__ = self.capsule
        else:
            version = 2 if kind == "version 2" else 3
            more = {"stream": OTHER} if version == 3 else {}
            place = {"data": (self.address, False), "shape": (3, 4), "typestr": "<f4", "strides": None}
            self.__cuda_array_interface__ = {**place, "version": version, **more}

    def capsule(self, stream=None):
        assert stream == LEGACY
        return capsule_of(SharedArray(self.address, (3, 4), (4, 1), np.dtype("f4"), (CUDA, 0), self))


PROTOCOLS = ["dlpack", "version 2", "version 3"]


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_an_array_of_another_stream_is_read_when_that_streams_work_is_done(late, kind):
    given = Foreign(late, kind)
    found = device_array(open_device(0), given)
    assert isinstance(found, DeviceArray) and found.stream == given.stream
    np.testing.assert_array_equal(np.asarray(found), VALUE)


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_run_reads_an_input_behind_the_stream_that_writes_it(late, kind):
    x = cg.Var((3, 4), name="x")
    function = cg.compile(cg.sum(x, 0) * 2, x, engine="cuda")
    for _ in range(4):  # the third run is a graph
        assert_near(function(Foreign(late, kind)), VALUE.sum(0) * 2, "float32 formulas")


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_an_input_of_another_stream_that_is_an_output_too_is_what_that_stream_writes(late, kind):
    x = cg.Var((3, 4), name="x")
    function = cg.compile([x, cg.transpose(x), x + 1], x, engine="cuda")
    for want, found in zip((VALUE, VALUE.T, VALUE + 1), function(Foreign(late, kind))):
        np.testing.assert_array_equal(found, want)


def test_an_array_whose_values_are_there_waits_for_no_stream(late):
    x = cg.Var((3, 4), name="x")
    found = cg.compile(cg.exp(x), x, engine="cuda")(VALUE, copy=False)
    assert found.stream is None and late.followed == 0
    assert_near(np.asarray(found), np.exp(VALUE), "float32 formulas")
    assert late.followed == 0


def test_results_on_the_device_are_there_when_the_call_returns(late):
    """Another library reads them without asking: nothing of the run waits."""
    x = cg.Var((3, 4), name="x")
    function = cg.compile(cg.exp(x) - 1, x, engine="cuda")
    for i in range(5):
        found = function(VALUE + i, copy=False)
        there = late.simulator.memory.bytes_at(found.address, VALUE.nbytes).view("f4").reshape(3, 4)
        assert_near(there, np.exp(VALUE + i) - 1, "float32 sums")


def test_a_result_that_is_given_back_is_copied_before_the_run_writes_over_it(late):
    x = cg.Var((50,), name="x")
    twice = cg.compile(cg.exp(x) * 0.5 - x, x, engine="cuda")
    start, want = np.linspace(-1, 1, 50, dtype="f4"), np.linspace(-1, 1, 50)
    value = start
    for _ in range(5):
        value, want = twice(value, copy=False), np.exp(want) * 0.5 - want
    assert_near(np.asarray(value), want, "float32 long sums")


def test_steps_on_the_host_have_their_operands_and_what_follows_has_their_results(late):
    rng = np.random.default_rng(0)
    x = cg.Var((9, 9), name="x")
    y = np.linalg.inv(cg.tanh(x) + 9 * cg.eye(9)) @ x
    function = cg.compile([cg.exp(y), y + 1], x, engine="cuda")
    plain = cg.compile([cg.exp(y), y + 1], x, engine="cpu")
    for _ in range(4):
        value = rng.standard_normal((9, 9), "f4")
        for mine, theirs in zip(function(value), plain(value)):
            assert_near(mine, theirs, "float32 small networks")


def test_a_position_outside_is_told_once_and_changes_no_var(late):
    x, at = cg.Var((5,), name="x"), cg.Var((2,), "int64", name="at")
    w = cg.Var((2,), name="w").assign(np.ones(2, "f4"))
    taken = cg.take(x, at) * 2
    step = cg.compile(taken, [x, at], updates={w: w + taken}, engine="cuda")
    values, want = np.arange(5, dtype="f4"), np.ones(2, "f4")
    for places in ([0, 4], [1, 7], [2, 3], [9, 0], [1, 1], [4, 4]):
        if max(places) > 4:
            with pytest.raises(PositionError):
                step(values, np.array(places))
        else:
            np.testing.assert_array_equal(step(values, np.array(places)), values[places] * 2)
            want = want + values[places] * 2
        np.testing.assert_array_equal(w.value, want)


def test_each_instance_has_a_stream_of_its_own_and_all_are_waited_for(late):
    x = cg.Var((5,), name="x")
    functions = [cg.compile(cg.exp(x) + i, x, engine="cuda") for i in range(3)]
    batch = np.linspace(0, 1, 5, dtype="f4")
    for i, function in enumerate(functions * 3):
        assert_near(function(batch), np.exp(batch) + i % 3, "float32 formulas")
    assert not any(late.waiting.values()), "work that nobody waited for"


@pytest.mark.parametrize("each", [19, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [copied_updates, updates_in_place, first_value])
def test_an_exception_leaves_all_vars_old_or_all_new(late, make, each):
    """At a line of the engine; the kernels themselves run behind the driver."""
    scenario = make("cuda")
    first = lines_of_the_engine(scenario.act, each)
    for _ in range(3):  # the third run captures a graph
        scenario.act()
    for at in lines_of_the_engine(scenario.act, each):
        cut_off(scenario, at)
    for at in first[::4]:
        cut_off(make("cuda"), at)


@pytest.mark.parametrize("nbytes", [8, 200])
def test_an_array_lives_until_its_copy_has_arrived_whatever_ends_the_wait(late, small_pieces, nbytes, monkeypatch):
    device = open_device(0)
    queue, address = device.queue(), device.take(nbytes)
    queue.upload(address, np.arange(nbytes, dtype=np.uint8))
    queue.wait()

    def interrupted():
        raise Injected

    array = np.zeros(nbytes, np.uint8)
    alive = weakref.ref(array)
    with monkeypatch.context() as patched:
        patched.setattr(queue, "device", SimpleNamespace(use=interrupted, pinned=device.pinned))
        with pytest.raises(Injected):
            queue.wait()
        patched.undo()
        queue.download(address, array)
        patched.setattr(queue.driver, "is_done", lambda stream: interrupted())
        with pytest.raises(Injected):
            queue.wait()
    del array
    gc.collect()
    assert alive() is not None, "the driver would write into freed memory"
    queue.wait()
    assert alive() is None


def test_a_lost_context_keeps_no_arrays(late):
    queue, array = open_device(0).queue(), np.zeros(8, np.uint8)
    alive = weakref.ref(array)
    queue.driver.lost = "a test"
    with pytest.raises(EngineError, match="is lost"):
        queue.upload(0, array)
    del array
    assert alive() is None


def lines_of_the_engine(act, each):
    """Numbers of events of a call at lines outside the simulator: every so many; with 1 the ends of each line."""
    lines, ends = ends_of_lines(act)
    chosen = ends if each == 1 else range(1, len(lines) + 1)
    return [at for at in chosen if "simulator" not in Path(lines[at - 1][0]).parts][::each]
