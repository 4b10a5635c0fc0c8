"""What is loaded behaves as what was saved: results, incremental answers, cells, errors, copies, pickles."""

import copy
import pickle
import queue
import re
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.errors import FormatError, GraphError, InputError, PositionError, UnassignedError, WeightsError
from cgraph.formats.safetensors import write_safetensors
from cgraph.kernels.mapped import mapping_of
from cgraph.saved.pieces import Pieces
from cgraph.system.fair_lock import Ticket
from tests.ops.cases import CASES as OPS_CASES
from tests.ops.cases import beyond
from tests.ops.test_cases import Drawn
from tests.support.graphs import graphs
from tests.support.injection import Lines, events
from tests.support.patience import PATIENCE
from tests.support.saved import CASES, held, normal
from tests.support.transactions import in_time


def reloaded(function: cg.Runner) -> cg.Runner:
    with tempfile.TemporaryDirectory() as folder:
        function.save(Path(folder) / "saved")
        return cg.load(Path(folder) / "saved", in_memory=True)


def same_bits(xs, ys) -> bool:
    return all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(xs, ys, strict=True)
    )


def assert_same_op(case) -> None:
    drawn = Drawn(case)
    function = cg.compile(drawn.outputs, drawn.xs)
    if function.program.code.callbacks:
        return
    arrays = [drawn.given[x] for x in drawn.xs]
    assert same_bits(reloaded(function)(*arrays), function(*arrays))


@pytest.mark.parametrize("case", OPS_CASES[::12], ids=str)
def test_some_ops_have_the_same_bits(case):
    assert_same_op(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", OPS_CASES, ids=str)
def test_every_op_has_the_same_bits(case):
    assert_same_op(case)


@settings(max_examples=40, deadline=None)
@given(drawn=graphs(), changing=st.integers(0, 4), changes=st.lists(st.integers(0, 15), min_size=1, max_size=6))
def test_the_same_steps_run_again(drawn, changing, changes):
    function = cg.compile(drawn.outputs, changing=drawn.leaves[changing : changing + 1])
    loaded = None
    rng = np.random.default_rng(0)
    for mask in (15, *changes):
        for i, x in enumerate(drawn.leaves):
            if mask >> i & 1:
                value = rng.standard_normal(x.shape).astype(x.dtype)
                x.assign(value)
                for y in loaded.cells if loaded else ():
                    if y.name == x.name:
                        y.assign(value)
        loaded = loaded or reloaded(function)
        ran = [spied(f) for f in (function, loaded)]
        assert same_bits(function(), loaded())
        assert ran[0] == ran[1]


def spied(function: cg.Runner) -> list:
    """The steps that are asked for from now on."""
    found: list = []
    asked = type(function.incremental).steps

    def steps(*args):
        found.append(asked(function.incremental, *args))
        return found[-1]

    function.incremental.steps = steps
    return found


def test_errors_are_those_of_the_function():
    x, w, i = cg.Var((4,), name="x"), cg.Var((4,), name="w"), cg.Var((2,), "int64", name="i")
    function = reloaded(cg.compile([x * w, cg.take(x, i)], [x, i]))
    a, right = normal(4), np.array([0, 3])
    for args, error, text in (
        ((a,), InputError, r"input i int64\[2\] is missing"),
        ((a, right, a), InputError, "inputs, got 3"),
        ((normal(5), right), InputError, r"x expects float32\[4\], got float32\[5\]"),
        ((a, right), UnassignedError, r"w float32\[4\] \(made at test_saved.py:\d+\) has no value"),
    ):
        with pytest.raises(error, match=text):
            function(*args)
    with pytest.raises(InputError, match="no input 'y'. Use one of x, i"):
        function(a, y=right)
    with pytest.raises(UnassignedError, match="w"):
        _ = function.cells[0].value
    with pytest.raises(InputError, match=r"w expects float32\[4\], got float32\[3\]"):
        function.cells[0].assign(normal(3))
    function.cells[0].assign(a)
    with pytest.raises(PositionError, match="take at test_saved.py:.*: a position is outside its axis"):
        function(a, i=np.array([0, 4]))
    assert same_bits(function(a, i=right), [a * a, a[right]])
    assert repr(function).startswith("<SavedFunction (x float32[4], i int64[2]) -> float32[4], float32[2]; arena ")


@pytest.mark.parametrize("name", ["script", "training", "loop"])
def test_the_code_that_is_loaded_is_the_code_that_was_saved(name):
    """But for the constants, which lie in one file."""
    function = CASES[name]().function
    code, loaded = function.program.code, reloaded(function).program.code
    assert loaded.kernels == code.kernels and loaded.labels == code.labels
    for ours, theirs in zip(loaded.lines(), code.lines(), strict=True):
        assert re.sub(r"constant\d+\+\d+", "constant", ours) == re.sub(r"constant\d+\+\d+", "constant", theirs)


def test_users_kernels_and_weights_that_were_streamed_are_saved(tmp_path):
    @cg.kernel
    def softsign(v):
        return v / (1.0 + abs(v))

    x = cg.Var((8, 256), name="x")
    y = beyond(softsign(cg.tanh(x @ normal(256, 256)) @ normal(256, 256)), np.full(256, 0.1, "float32"))
    function = cg.compile(y, [x], weights=cg.StreamedWeights(str(tmp_path / "weights"), 1 << 20))
    a = normal(8, 256)
    assert same_bits([reloaded(function)(a)], [function(a)])


def streamed(folder):
    """A function whose weights go through a ring of half of them, saved without the file that it read."""
    x = cg.Var((8, 256), name="x")
    y = x
    for i in range(6):
        y = cg.tanh(y @ normal(256, 256 + i % 2)[:, :256])
    weights = cg.StreamedWeights(str(folder / "weights"), 768 << 10, 128 << 10)
    function, a = cg.compile(y, [x], weights=weights), normal(8, 256)
    want, ring = function(a), function.program.code.ring
    function.save(folder / "saved")
    del function
    (folder / "weights").unlink()
    return a, want, ring


def test_a_ring_of_weights_is_kept(tmp_path):
    a, want, ring = streamed(tmp_path)
    found = cg.load(tmp_path / "saved", verify=True)
    assert found.program.code.ring.nbytes == ring.nbytes
    assert [(p.nbytes, p.first, p.last, p.at) for p in found.program.code.ring.pieces] == [
        (p.nbytes, p.first, p.last, p.at) for p in ring.pieces
    ]
    for _ in range(3):
        assert same_bits([found(a)], [want])
    found.save(tmp_path / "again")
    again = cg.load(tmp_path / "again")
    assert again.program.code.ring.nbytes == ring.nbytes and same_bits([again(a)], [want])
    for other in (cg.load(tmp_path / "saved", in_memory=True), pickle.loads(pickle.dumps(found))):
        assert other.program.code.ring is None and same_bits([other(a)], [want])
        assert mapping_of(other.parts.weights) is None, "their file may change"
    assert mapping_of(found.parts.weights) is not None


def test_weights_of_a_saved_ring_that_are_damaged_or_changed_are_refused(tmp_path):
    a, want, _ = streamed(tmp_path)
    found, file = cg.load(tmp_path / "saved"), next((tmp_path / "saved").glob("weights-*.bin"))
    whole = file.read_bytes()
    file.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    with pytest.raises(WeightsError, match="has changed since"):
        found(a)
    with pytest.raises(FormatError, match="is not what was saved"):
        cg.load(tmp_path / "saved", verify=True)
    file.write_bytes(whole[:-4096])
    with pytest.raises(FormatError, match="were saved"):
        cg.load(tmp_path / "saved")
    file.unlink()
    with pytest.raises(FormatError, match="No such file"):
        cg.load(tmp_path / "saved")
    file.write_bytes(whole)
    assert same_bits([cg.load(tmp_path / "saved")(a)], [want])


def test_outputs_are_taken_by_arrays_or_seen_where_they_lie():
    x = cg.Var((4,), name="x")
    function = reloaded(cg.compile(cg.cumsum(x), [x]))
    a, out = normal(4), np.empty(4, "float32")
    assert function(a, out=out) is out and same_bits([out], [function(a)])
    assert function(a, copy=False) is function(a, copy=False)


def step() -> cg.Function:
    x, w = cg.Var((3,), name="x"), held(3, name="w")
    return cg.compile([cg.sum(w * x)], [x], updates={w: w * 0.5 + x})


def test_a_function_that_was_loaded_is_saved_again_with_what_its_cells_hold_now():
    function, a = reloaded(step()), normal(3)
    function(a)
    again = reloaded(function)
    assert again.cells[0].value.tobytes() == function.cells[0].value.tobytes()
    assert same_bits(again(a), function(a))


@pytest.mark.parametrize("make", [step, lambda: reloaded(step())], ids=["compiled", "loaded"])
def test_copies_share_cells_and_pickles_and_deep_copies_have_their_own(make):
    function, a = make(), normal(3)
    function(a)
    apart = [pickle.loads(pickle.dumps(function)), copy.deepcopy(function)]
    shared = copy.copy(function)
    assert type(shared) is type(function) and shared._idle is not function._idle
    want = function.cells[0].value
    function(a)
    assert all(f.cells[0].value.tobytes() == want.tobytes() for f in apart)
    assert shared.cells[0] is function.cells[0]
    first = apart[0](a)
    assert same_bits(first, apart[1](a))
    shared(a)
    assert function.cells[0].value.tobytes() != apart[0].cells[0].value.tobytes()  # two calls further than they


def test_what_python_or_a_device_does_is_not_pickled():
    x = cg.Var((2, 2), name="x")
    for node, engine in ((cg.delay(np.negative, x), "cpu"), (x + 1, "reference")):
        with pytest.raises(FormatError):
            pickle.dumps(cg.compile(node, [x], engine=engine))


def test_what_cells_hold_is_saved_and_restored_by_name(tmp_path):
    case = CASES["training"]()
    function, other = case.function, reloaded(case.function)
    for given_ in case.calls:
        function(*given_)
    function.save_state(tmp_path / "state")
    other.load_state(tmp_path / "state")
    assert same_bits(function(*case.calls[0]), other(*case.calls[0]))
    for name, x in function.state.items():
        assert x.value.tobytes() == other.state[name].value.tobytes(), name


def test_a_state_of_another_function_changes_nothing(tmp_path):
    x, w, v = cg.Var((3,), name="x"), held(3, name="w"), held(2, name="w")
    function = cg.compile([w * x, v], [x])
    assert list(function.state) == ["w", "w.2"]
    before = [c.value for c in function.cells]
    write_safetensors(tmp_path / "other", {"w": normal(3)})
    with pytest.raises(FormatError, match=r"'w\.2' is only in the file or only in the Function"):
        function.load_state(tmp_path / "other")
    write_safetensors(tmp_path / "shape", {"w": normal(3), "w.2": normal(3)})
    with pytest.raises(InputError, match="w.2"):
        function.load_state(tmp_path / "shape")
    assert same_bits([c.value for c in function.cells], before)


def test_what_is_saved_while_another_thread_runs_is_what_cells_hold_between_two_runs(tmp_path, monkeypatch):
    """A run that comes when the first of the cells has been read waits until the last one has."""
    cells = [cg.Var((3,), name=f"w{i}").assign(np.zeros(3, "float32")) for i in range(4)]
    function = cg.compile([], updates={x: x + 1 for x in cells})
    function()
    events, add, wait = queue.Queue(), Pieces.add, Ticket.wait

    def add_while_another_runs(file, x, *alignment):
        if not events.empty():
            return add(file, x, *alignment)
        place = add(file, x, *alignment)
        run = pool.submit(function)
        run.add_done_callback(lambda _: events.put("ran"))
        events.put(events.get(timeout=PATIENCE))
        return place

    monkeypatch.setattr(Ticket, "wait", lambda turn: (events.put("waits"), wait(turn)))
    monkeypatch.setattr(Pieces, "add", add_while_another_runs)
    with ThreadPoolExecutor(1) as pool:
        function.save(tmp_path / "saved")
    assert {"waits", "ran"} <= set(events.queue)
    values = [x.value.tolist() for x in cg.load(tmp_path / "saved").cells]
    assert values == [[1.0] * 3] * 4 and [x.value.tolist() for x in cells] == [[2.0] * 3] * 4


def test_two_functions_of_one_folder_have_cells_of_their_own(tmp_path):
    step().save(tmp_path / "saved")
    first, second = (cg.load(tmp_path / "saved") for _ in range(2))
    before, a = second.cells[0].value, normal(3)
    first(a)
    assert second.cells[0].value.tobytes() == before.tobytes() != first.cells[0].value.tobytes()


def test_runs_of_several_python_threads_at_once(tmp_path):
    case = CASES["network"]()
    case.function.save(tmp_path / "saved")
    function, want, failures = cg.load(tmp_path / "saved"), case.function(*case.calls[0]), []

    def repeat() -> None:
        failures.extend(i for i in range(10) if not same_bits(function(*case.calls[0]), want))

    threads = [threading.Thread(target=repeat) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_exception_at_a_line_of_a_call_leaves_nothing_in_between():
    function, a = reloaded(step()), normal(3)
    for at in range(1, len(events(lambda: function(a))) + 1, 3):
        before = function.cells[0].value
        Lines(at).during(lambda: function(a))
        after = before * np.float32(0.5) + a
        assert function.cells[0].value.tobytes() in (before.tobytes(), after.tobytes())
        in_time(lambda: function(a))


def test_a_plan_is_told_where_there_is_one():
    x = cg.Var((3,), name="x")
    assert reloaded(cg.compile(cg.cumsum(x), [x])).nbytes == cg.compile(cg.cumsum(x), [x]).nbytes
    with pytest.raises(GraphError, match="no plan"):
        _ = cg.compile(x + 1, [x], engine="reference").nbytes


def test_names_of_outputs_are_kept(tmp_path):
    x = cg.Var((4,), name="x")
    function = cg.compile([cg.sin(x), cg.cos(x)], [x])
    function.save(tmp_path / "named", names=["sine", "cosine"])
    found = cg.load(tmp_path / "named")
    assert found.names == ("sine", "cosine")
    found.save(tmp_path / "again")
    assert cg.load(tmp_path / "again").names == pickle.loads(pickle.dumps(found)).names == ("sine", "cosine")
    function.save(tmp_path / "bare")
    assert cg.load(tmp_path / "bare").names == function.names == ("output0", "output1")
    with pytest.raises(FormatError, match="1 names for 2 outputs"):
        function.save(tmp_path / "other", names=["sine"])
