"""The engine over a simulated GPU: whole graphs, Vars on the device, steps on the host, failures that are data."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.engine.cuda import engine as engine_module
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.engine.cuda.simulated import SimulatedQueue
from cgraph.errors import BudgetError, EngineError, NoKernelError, PositionError
from cgraph.ir.work import Part
from cgraph.kernels.callback import callback_call
from cgraph.kernels.kernel import Call, Kernel
from cgraph.storage.cell import CellValue
from nn import models, optim
from tests.support.tolerance import assert_near

SIM = "cuda-sim"


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def both(outputs, xs, *arrays, **options):
    """The values on the CPU and on the simulated GPU."""
    return [cg.compile(outputs, xs, engine=engine, **options)(*arrays) for engine in ("cpu", SIM)]


@pytest.mark.slow
def test_a_residual_network_runs_whole():
    network = models.ResNet((2, 2, 2, 2), small=True, classes=10, image=(3, 16, 16))
    network = nn.initialise(network, 0)
    x = draw(2, 3, 16, 16)
    here, there = (nn.compile(network, 2, engine=engine)(x) for engine in ("cpu", SIM))
    assert_near(there, here, "float32 deep networks")


@pytest.mark.slow
def test_training_steps_of_a_convolutional_network_agree():
    losses = []
    for engine in ("cpu", SIM):
        network = models.lenet(1, image=(1, 12, 12), classes=4)
        x, labels = draw(12, 1, 12, 12), np.arange(12, dtype="int32") % 4
        optimiser = nn.Optimiser(optim.Adam(), optim.Const(0.01))
        losses.append(nn.train(network, nn.Loader((x, labels), 6), epochs=2, optimiser=optimiser, engine=engine,
                               progress=False).loss)  # fmt: skip
    assert_near(losses[1], losses[0], "float32 trainings")


def test_a_recurrent_network_runs_whole():
    network = models.lstm_text(0, vocabulary=20, length=5, features=6, units=10)
    x = np.random.default_rng(0).integers(0, 20, (3, 5)).astype("int32")
    here, there = (nn.compile(network, 3, engine=engine)(x) for engine in ("cpu", SIM))
    assert_near(there, here, "float32 small networks")


def test_boxes_are_found_as_on_the_cpu():
    deltas, scores = cg.Var((30, 4), name="deltas"), cg.Var((30, 3), name="scores")
    rng = np.random.default_rng(3)
    corner = rng.uniform(0, 10, (30, 2))
    anchors = np.concatenate([corner, corner + rng.uniform(2, 5, (30, 2))], 1).astype("float32")
    boxes = cg.box_decode(deltas, anchors)
    best = cg.max(cg.softmax(scores, 1), axis=1)
    places, count = cg.non_maximum_suppression(boxes, best, 10, 0.3, 0.4)
    found = cg.take(boxes, cg.maximum(places, 0), 0)
    here, there = both([found, places, count], [deltas, scores], 0.1 * draw(30, 4), draw(30, 3, seed=1))
    assert_near(there[0], here[0], "float32 sums")
    assert there[1].tolist() == here[1].tolist() and there[2] == here[2] > 0


@pytest.mark.parametrize("most", [3, 400])
def test_many_boxes_are_chosen_by_a_block_of_threads(most):
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 60, (400, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(1, 9, (400, 2))], 1).astype("float32")
    x, y, groups = cg.Var((400, 4), name="x"), cg.Var((400,), name="y"), np.arange(400) % 2
    found = cg.non_maximum_suppression(x, y, most, 0.2, 0.1, groups)
    function = cg.compile(found, [x, y], engine=SIM)
    assert "boxes.gpu.suppress" in [kernel.family for kernel in function.program.code.compiled_kernels]
    here, there = both(found, [x, y], boxes, rng.random(400).astype("float32"))
    assert there[0].tolist() == here[0].tolist() and there[1] == here[1] > 1


# -- Vars -------------------------------------------------------------------------------------------------------------


def counter(engine=SIM):
    """A Var that grows by one with each run, and a Function that reads it."""
    x = cg.Var((3,), name="x").assign([1, 2, 3])
    return x, cg.compile(cg.sum(x), updates={x: x + 1}, engine=engine)


def test_update_edges_are_seen_by_the_host_and_by_every_engine():
    x, step = counter()
    assert [float(step()) for _ in range(3)] == [6, 9, 12]
    assert x.value.tolist() == [4, 5, 6]
    assert cg.compile(x * 2)().tolist() == [8, 10, 12]
    assert cg.compile(x * 2, engine=SIM)().tolist() == [8, 10, 12]


def test_a_value_from_the_host_replaces_that_of_the_device():
    x, step = counter()
    step()
    x.assign([10, 20, 30])
    assert float(step()) == 60
    assert x.value.tolist() == [11, 21, 31]


def test_a_view_of_an_earlier_value_stays_as_it_was():
    x, step = counter()
    before = x.cell.share()
    step()
    assert before.tolist() == [1, 2, 3] and x.value.tolist() == [2, 3, 4]


def test_engines_may_take_turns_at_one_var():
    x, step = counter()
    other = cg.compile(cg.sum(x), updates={x: x * 2}, engine="cpu")
    assert [float(f()) for f in (step, other, step, other)] == [6, 9, 18, 21]
    assert x.value.tolist() == [10, 14, 18]


def test_an_update_whose_source_is_strided_is_written():
    x = cg.Var((2, 3), name="x").assign(np.arange(6, dtype="f4").reshape(2, 3))
    y = cg.Var((3, 2), name="y").assign(np.zeros((3, 2), "f4"))
    step = cg.compile(cg.sum(x), updates={y: cg.transpose(x + 1)}, engine=SIM)
    step()
    assert y.value.tolist() == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.parametrize("poison", [False, True])
def test_only_what_depends_on_a_changed_var_runs_again(monkeypatch, poison):
    """With poison all steps, since none of them may find what another run has left."""
    a, b = (cg.Var((4,), name=n).assign(np.arange(4, dtype="f4")) for n in "ab")
    f = cg.compile(cg.exp(a) @ cg.sin(b), changing=[b], engine=CudaEngine(SIMULATED, poison=poison))
    f()
    instance = f._idle[0].instance
    rows = []
    monkeypatch.setattr(
        instance.queue, "run", lambda table, run=instance.queue.run: (rows.append(len(table)), run(table))
    )
    b.assign([1, 0, 0, 0])
    assert_near(f(), np.exp(np.arange(4)) @ np.sin([1, 0, 0, 0]), "float32 sums")
    assert (
        sum(rows) == np.count_nonzero(f.program.code.table[:, 2]) if poison else sum(rows) < len(f.program.code.table)
    )


def test_outputs_may_be_inputs_constants_and_views():
    x = cg.Var((2, 3), name="x")
    constant = cg.Const(np.arange(3.0))
    here, there = both([x, cg.transpose(x), constant, x[:, ::-1] + 0], [x], draw(2, 3))
    for a, b in zip(here, there):
        np.testing.assert_array_equal(a, b)


# -- the host ---------------------------------------------------------------------------------------------------------


def test_steps_without_a_kernel_run_on_the_host_and_are_listed():
    x = cg.Var((9, 9), "float64", name="x")
    y = cg.inv(x @ cg.transpose(x) + np.eye(9)) * 2
    f = cg.compile(y, [x], engine=SIM)
    a = np.random.default_rng(0).standard_normal((9, 9))
    assert_near(f(a), 2 * np.linalg.inv(a @ a.T + np.eye(9)), "float64 conditioned")
    ((label, nbytes),) = f.report().on_host
    assert label.startswith("inv at test_engine.py:") and nbytes >= 3 * 81 * 8
    assert "on the host" in str(f.report()) and label in str(f.report())


def test_the_host_may_be_refused():
    x = cg.Var((9, 9), "float64", name="x")
    with pytest.raises(NoKernelError, match=r"inv at test_engine.py:\d+ runs on the host"):
        cg.compile(cg.inv(x), [x], engine=CudaEngine(SIMULATED, host=False))


def test_a_users_function_raises_through_a_run():
    def refuse(v):
        raise KeyError("no")

    x = cg.Var((3,), name="x")
    f = cg.compile(cg.delay(refuse, x) + 1, [x], engine=SIM)
    for _ in range(2):
        with pytest.raises(KeyError):
            f(np.ones(3, "float32"))


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_position_outside_its_axis_is_told_and_forgotten():
    x, i = cg.Var((5,), name="x"), cg.Var((2,), "int64", name="i")
    f = cg.compile(cg.take(x + 1, i, 0), [x, i], engine=SIM)
    for _ in range(2):
        with pytest.raises(PositionError, match=r"take at test_engine.py:\d+: a position is outside its axis"):
            f(np.arange(5, dtype="f4"), np.array([1, 9]))
        assert f(np.arange(5, dtype="f4"), np.array([1, -1])).tolist() == [2, 5]


def test_a_plan_that_the_device_does_not_hold_is_refused(monkeypatch):
    from cgraph.engine.cuda.simulated import SimulatedDevice

    monkeypatch.setattr(SimulatedDevice, "nbytes", 1000)
    x = cg.Var((1000,), name="x")
    with pytest.raises(BudgetError, match="a simulated GPU has 1000 B"):
        cg.compile(cg.cumsum(x * 2), [x], engine=SIM)
    y = cg.cumsum(cg.flip(cg.cumsum(cg.flip(cg.cumsum(x)))))
    monkeypatch.setattr(SimulatedDevice, "nbytes", 1 << 20)
    for memory in ("auto", "one_each"):  # plans of the fewest bytes, and plans of more
        f = cg.compile(y, [x], engine=SIM, memory=memory)
        assert (f.nbytes > f.compiled.lower_bound) == (memory == "one_each")
        with monkeypatch.context() as patch:
            patch.setattr(SimulatedDevice, "nbytes", f.nbytes)
            assert cg.compile(y, [x], engine=SIM, memory=memory).nbytes == f.nbytes
            patch.setattr(SimulatedDevice, "nbytes", f.nbytes - 1)
            with pytest.raises(BudgetError, match="a simulated GPU has"):
                cg.compile(y, [x], engine=SIM, memory=memory)


def test_a_fault_of_a_kernel_names_the_step():
    x = cg.Var((1000,), name="x")
    f = cg.compile(cg.exp(x), [x], engine=CudaEngine(SIMULATED, check=True))
    f(np.ones(1000, "float32"))
    instance = f._idle[0].instance
    instance.rows[:, 3] = instance.args.ctypes.data + 8  # arguments that are another call's
    instance._parts.clear()
    with pytest.raises(EngineError, match=r"exp at test_engine.py:\d+: "):
        f(np.ones(1000, "float32"))


def test_an_old_llvmlite_is_refused(monkeypatch):

    engine_module.open_device.cache_clear()
    monkeypatch.setattr(engine_module.llvmlite, "__version__", "0.44.0")
    with pytest.raises(EngineError, match="needs llvmlite 0.50 or newer; 0.44.0 is installed"):
        counter()
    engine_module.open_device.cache_clear()
    engine_module.cells_of.cache_clear()


def test_the_arena_is_the_plan():
    x = cg.Var((100,), name="x")
    f = cg.compile(cg.exp(x) + cg.sin(x), [x], engine=SIM)
    f(np.ones(100, "float32"))
    assert f.nbytes % 256 == 0
    assert f._idle[0].instance.arena.nbytes == f.nbytes


@pytest.mark.parametrize("value", [[1, 2, 3, 4], [-1, -2, -3, -4], [9, 9, 9, 9], [0, 0, 0, 0]])
def test_jumps_are_taken_and_not_taken(value):
    """Branches on either side, loops of no round and of several, and steps behind them."""
    x = cg.Var((4,), name="x")
    chosen = cg.cond(cg.sum(x) > 0, lambda: cg.sort(x) * 2, lambda: cg.cumsum(x) - 1)
    grown = cg.while_loop(lambda s: cg.sum(s) < 20, lambda s: cg.cumsum(s) + 1, chosen)
    turned = cg.fori(0, 3, lambda i, s: cg.sort(s)[::-1] * 0.5, grown)
    outputs = [chosen, grown, turned, cg.sum(turned)]
    got, want = (cg.compile(outputs, [x], engine=name)(np.float32(value)) for name in ("cuda-sim", "reference"))
    for a, b in zip(got, want, strict=True):
        assert_near(a, b, "float32 formulas")


def test_each_step_on_the_host_is_listed_with_its_own_bytes():
    large, small = cg.Var((12, 12), "float64", name="large"), cg.Var((9, 9), "float64", name="small")
    first = cg.inv(large)
    second = cg.inv(small)
    function = cg.compile([first, second], [large, small], engine=SIM)
    nbytes = dict(function.program.on_host)
    assert len(nbytes) == 2 and {f"inv at {x.where}" for x in (first, second)} == set(nbytes)
    most, least = (nbytes[f"inv at {x.where}"] for x in (first, second))
    assert most >= 2 * 144 * 8 and 2 * 81 * 8 <= least < most


@pytest.mark.parametrize(
    ("version", "is_new"), [("0.49.9", False), ("0.50.0", True), ("0.50.0rc1", True), ("1.0.0", True)]
)
def test_llvmlite_is_new_enough_from_0_50_on(version, is_new, monkeypatch):
    monkeypatch.setattr(engine_module.llvmlite, "__version__", version)
    if is_new:
        assert engine_module.open_device.__wrapped__(SIMULATED).name == "a simulated GPU"
    else:
        with pytest.raises(EngineError, match=f"needs llvmlite 0.50 or newer; {version} is installed"):
            engine_module.open_device.__wrapped__(SIMULATED)


def test_runs_without_update_edges_change_no_var_whatever_ran_before():
    x, y, done = cg.Var((2, 3), name="x"), cg.Var((3, 2), name="y"), np.zeros(1, np.int64)
    instance = cg.compile(cg.sum(x), updates={y: cg.transpose(x + 1)}, engine=SIM).program.instance()
    value, last = CellValue(np.zeros((3, 2), "f4")), 0
    for start, write in enumerate((False, True, False, True, True)):
        instance.bind({}, {x: CellValue(np.full((2, 3), start, "f4")), y: value}, done)
        instance.run(write=write)
        last = start + 1 if write else last
        assert (value.array == last).all() and (instance._copy(y).fetched() == last).all()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_input_and_each_var_has_its_own_memory(count):
    """Of one shape, so that any of them would fit into another's."""
    xs = [cg.Var((4,), name=f"x{i}") for i in range(count)]
    ws = [cg.Var((4,), name=f"w{i}").assign(np.full(4, 10.0 * i)) for i in range(count)]
    outputs = [cg.cumsum(x) * 2 + w for x, w in zip(xs, ws)]
    function = cg.compile(outputs, xs, {w: w + x * (i + 1) for i, (w, x) in enumerate(zip(ws, xs))}, engine=SIM)
    values = [np.arange(4, dtype="f4") + i for i in range(count)]
    for turn in range(3):
        for i, (got, value) in enumerate(zip(function(*values), values)):
            old = 10 * i + turn * (i + 1) * value
            assert got.tolist() == (np.cumsum(value) * 2 + old).tolist()
            assert ws[i].value.tolist() == (old + (i + 1) * value).tolist()


def chain(**options):
    """A function of three launches, and an instance."""
    x = cg.Var((40,), name="x")
    function = cg.compile(cg.cumsum(cg.sort(cg.cumsum(x))), x, engine=CudaEngine(SIMULATED, **options))
    return function, function.program.instance()


@pytest.mark.parametrize("check", [False, True])
def test_each_launch_is_a_segment_where_each_is_checked(check):
    _, instance = chain(check=check)
    before, after = instance._parts_of(None, True)
    assert [len(x.rows) for x in before] == ([1, 1, 1] if check else [3]) and after == []


@pytest.mark.parametrize("blocks", [False, True])
def test_kernels_for_blocks_of_threads_are_used_unless_they_are_refused(blocks):
    function, _ = chain(blocks=blocks)
    assert any(kernel.is_block for kernel in function.program.code.compiled_kernels) == blocks
    value = np.random.default_rng(0).integers(-9, 9, 40).astype("f4")
    np.testing.assert_array_equal(function(value), np.cumsum(np.sort(np.cumsum(value))))


@pytest.mark.parametrize("poison", [False, True])
def test_a_new_arena_is_filled_on_request(poison, monkeypatch):
    fills, fill = [], SimulatedQueue.fill
    monkeypatch.setattr(SimulatedQueue, "fill", lambda *given: fills.append(given[1:]) or fill(*given))
    function, instance = chain(poison=poison)
    assert ((instance.arena.address, function.nbytes, 0xFF) in fills) == poison


def test_a_part_is_refused_if_any_of_its_calls_runs_on_the_host():
    here = callback_call(lambda outs, xs: None, (), ())
    there = Call(Kernel("one"), (), 1)
    for calls, is_allowed in (([there, here], False), ([here, there], False), ([there], True), ([], True)):
        part = Part("a step", calls)
        assert CudaEngine(SIMULATED)._allowed(part) is part
        if is_allowed:
            assert CudaEngine(SIMULATED, host=False)._allowed(part) is part
            continue
        with pytest.raises(NoKernelError, match="^a step runs on the host"):
            CudaEngine(SIMULATED, host=False)._allowed(part)


@pytest.mark.parametrize("array", [np.arange(12).reshape(3, 4).T, np.arange(12.0)[::-2], np.zeros((0, 3))])
def test_a_constant_lies_in_c_order_on_the_device(array):
    device = engine_module.open_device(SIMULATED)
    memory, found = engine_module.upload_constant(device, array), np.empty(array.shape, array.dtype)
    queue = device.queue()
    queue.download(memory.address, found)
    queue.wait()
    np.testing.assert_array_equal(found, array)


def test_a_kernel_is_loaded_once_for_each_number_of_arguments(monkeypatch):
    kernel, loaded = Kernel("one"), []
    keys = [(kernel, 8), (kernel, 16), (Kernel("two"), 8), (kernel, 8)]
    device = SimpleNamespace(target="a GPU", load=lambda name, text: loaded.append(name) or name)
    store = SimpleNamespace(ptx=lambda kernel, words, target: (f"{kernel.family} {words}", target))
    monkeypatch.setattr(engine_module, "open_device", lambda number: device)
    monkeypatch.setattr(engine_module, "keys_of", lambda code: keys)
    monkeypatch.setattr(engine_module, "store", lambda: store)
    monkeypatch.setattr(engine_module, "cells_of", lambda number: None)
    program = CudaEngine().program(SimpleNamespace(constants=()))
    assert program.loaded == ("one 8", "one 16", "two 8", "one 8") and loaded == ["one 8", "one 16", "two 8"]
