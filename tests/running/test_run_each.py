"""Outputs that a run passes on as soon as they are complete: those of a call, each once, in memory of their own."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import InputError
from cgraph.storage.weight_file import StreamedWeights

A = np.arange(24, dtype="f4").reshape(6, 4)


def each(function, *arrays):
    """The outputs by number, in the order in which they came."""
    results = {}

    def complete(i, value):
        assert i not in results
        results[i] = value

    function.run_each(arrays, complete)
    return results


def test_an_output_comes_before_a_later_step_runs():
    events = []

    def later(value):
        events.append("later")
        return value

    x = cg.Var((6, 4), name="x")
    first = cg.cumsum(x, 0)
    f = cg.compile([cg.delay(later, first) + 1, first], [x])
    f.run_each([A], lambda i, value: events.append(i))
    assert events == [1, "later", 0]


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_outputs_are_those_of_a_call(engine):
    x, w = cg.Var((6, 4), name="x"), cg.Var((6, 4), name="w").assign(A + 2)
    y = cg.cumsum(x, 0)
    outputs = [cg.cumsum(w, 1), y, cg.reshape(y, (24,)), x, w, cg.Const(A), y, cg.sum(y) * 2, y[1:] @ w.T]
    f = cg.compile(outputs, [x], engine=engine)
    first = each(f, A)
    for _ in range(2):  # the second time without the steps of `w` alone
        want, results = f(A + 1), each(f, A + 1)
        assert sorted(results) == list(range(len(outputs)))
        for i, value in results.items():
            np.testing.assert_array_equal(value, want[i])
    np.testing.assert_array_equal(first[1], np.cumsum(A, 0))  # later runs have not changed it


@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_come_one_by_one_with_the_bits_of_a_call(threads):
    x = cg.Var((64, 64), name="x")
    weights = [cg.Var((64, 64), name=f"w{i}").assign(np.eye(64, dtype="f4") * (1 + i)) for i in range(4)]
    y = x
    for w in weights:
        y = cg.tanh(y @ w)
    f = cg.compile(cg.gradient(cg.sum(y), weights), [x], threads=threads)
    values = np.random.default_rng(0).normal(size=(64, 64)).astype("f4")
    results = each(f, values)
    assert list(results) == [3, 2, 1, 0]
    for value, want in zip(reversed(results.values()), f(values)):
        np.testing.assert_array_equal(value, want)


def test_what_is_raised_ends_the_run_and_the_next_one_is_whole():
    x, w = cg.Var((6, 4), name="x"), cg.Var((6, 4), name="w").assign(A)
    f = cg.compile([cg.cumsum(x, 0), cg.cumsum(w, 0) + cg.cumprod(x, 1)], [x])

    def complete(i, value):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        f.run_each([A], complete)
    for i, value in each(f, A).items():
        np.testing.assert_array_equal(value, f(A)[i])


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_names_its_step_however_many_outputs_came_before(bad):
    x, index = cg.Var((6, 4), name="x"), [cg.Var((6,), "int64", name=name) for name in "ijk"]
    first = cg.take(x, index[0], 0)
    second = cg.take(cg.cumsum(first, 0), index[1], 0)
    third = cg.take(cg.cumsum(second, 1), index[2], 0)
    takes, came = [first, second, third], []
    f = cg.compile([cg.cumprod(y, 0) for y in takes], [x, *index], threads=1)
    places = [np.full(6, 99 if n == bad else 1) for n in range(3)]
    with pytest.raises(cg.PositionError, match=f"take at {takes[bad].where}: "):
        f.run_each([A, *places], lambda i, value: came.append(i))
    assert came == list(range(bad))


def test_update_edges_happen_once_and_after_all_outputs():
    x, total = cg.Var((6, 4), name="x"), cg.Var((6, 4), name="total").assign(A)
    f = cg.compile([cg.cumsum(x, 0), total * 1.0], [x], {total: total + cg.cumsum(x, 1)})
    results = each(f, A)
    np.testing.assert_array_equal(results[1], A)
    np.testing.assert_array_equal(total.value, A + np.cumsum(A, 1))


def test_a_loaded_function_passes_outputs_on_after_the_same_rows(tmp_path):
    x = cg.Var((6, 4), name="x")
    y = cg.cumsum(x, 0)
    f = cg.compile([cg.cumprod(y, 0), y], [x])
    f.save(tmp_path / "saved")
    loaded = cg.load(tmp_path / "saved")
    rows = [f.program.code.complete[output] for output in f.outputs]
    assert rows == [loaded.program.code.complete[output] for output in loaded.outputs] and rows[1] < rows[0]
    results = each(loaded, A)
    assert list(results) == [1, 0]
    np.testing.assert_array_equal(results[0], f(A)[0])


def test_functions_that_stream_weights_or_rows_pass_outputs_on_at_the_end(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(200, 200)).astype("f4")
    x = cg.Var((4, 200), name="x")
    first = cg.tanh(x @ cg.Const(matrix))
    weights = StreamedWeights(str(tmp_path / "weights"), 2 * matrix.nbytes)
    f = cg.compile([cg.tanh(first @ cg.Const(matrix + 1)), first], [x], weights=weights)
    for i, value in each(f, matrix[:4]).items():
        np.testing.assert_array_equal(value, f(matrix[:4])[i])
    image = cg.Var((1, 3, 40, 8), name="image")
    value = np.random.default_rng(1).normal(size=(1, 3, 40, 8)).astype("f4")
    g = cg.compile(image * 2, [image], rows=[image])
    np.testing.assert_array_equal(each(g, iter([value]))[0], value * 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_outputs_are_whole_where_memory_is_filled_first(threads):
    x = cg.Var((6, 4), name="x")
    y = cg.cumsum(x, 0)
    f = cg.compile([cg.cumprod(y, 1), y], [x], engine=CpuEngine(threads=threads, poison=0xFF))
    for i, value in each(f, A).items():
        np.testing.assert_array_equal(value, [np.cumprod(np.cumsum(A, 0), 1), np.cumsum(A, 0)][i])


def test_arrays_are_checked_as_a_call_checks_them():
    x = cg.Var((6, 4), name="x")
    with pytest.raises(InputError, match="x"):
        cg.compile(x + 1, [x]).run_each([A[:3]], lambda i, value: None)


@pytest.mark.parametrize("updates", [False, True])
def test_a_run_that_writes_vars_waits_for_its_turn(monkeypatch, updates):
    x, v = cg.Var((6, 4), name="x"), cg.Var((6, 4), name="v").assign(A)
    f, turns = cg.compile([x * v], [x], {v: v + 1} if updates else {}), []
    wait = f.between_runs
    monkeypatch.setattr(f, "between_runs", lambda work: turns.append(1) or wait(work))
    np.testing.assert_array_equal(each(f, A)[0], A * A)
    assert len(turns) == updates
