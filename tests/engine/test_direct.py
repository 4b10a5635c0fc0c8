"""Direct runs: where native code binds arrays, what is copied, what runs afterwards, and what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import instance as instances
from cgraph.engine.cpu import threads as pools
from cgraph.engine.cpu.direct import NewResult, NewResults, direct_run, results_reader
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.kernels.control import OTHER_ARRAYS, STOPPED
from tests.support.tolerance import assert_close

SHAPE = (3, 4)
NO_NEW = NewResults([], lambda: None)


def value(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SHAPE, "float32")


def function_of(threads: int = 1) -> cg.Function:
    x, y = cg.Var(SHAPE, name="x"), cg.Var(SHAPE, name="y")
    return cg.compile(cg.cumsum(x, 0) * y + x, [x, y], engine=CpuEngine(threads=threads))


def expected(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.cumsum(x, 0) * y + x


@pytest.mark.parametrize("threads", [1, 2])
def test_each_call_reads_its_own_arrays(threads):
    function = function_of(threads)
    for seed in range(4):
        x, y = value(seed), value(seed + 9)
        assert_close(function.run_directly((x, y)), expected(x, y))
        np.testing.assert_array_equal(function.run_directly((x, x)), function(x, x, copy=False))


def test_arrays_that_do_not_fit_run_nothing_and_the_next_call_binds_anew():
    function, x, y = function_of(), value(1), value(2)
    want = function(x, y)
    assert function.run_directly((x, y.T)) is None and function.run_directly((y,)) is None
    np.testing.assert_array_equal(function(x, y, copy=False), want)
    assert function.run_directly((y, x[:2])) is None  # the first array may be bound then
    np.testing.assert_array_equal(function(x, y, copy=False), want)


def test_rows_that_native_code_leaves_run_afterwards(monkeypatch):
    """A run that waits for a core takes it."""
    function, x, y = function_of(), value(1), value(2)
    want, naps = function(x, y), []
    monkeypatch.setattr(pools, "POLITE_SECONDS", 0)
    monkeypatch.setattr(pools.time, "sleep", naps.append)
    pools._pool._cores[pools.WAITING] += 1
    try:
        np.testing.assert_array_equal(function.run_directly((x, y)), want)
    finally:
        pools._pool._cores[pools.WAITING] -= 1
    assert naps


def test_interpreters_whose_arrays_have_other_fields_take_the_general_path(monkeypatch):
    monkeypatch.setattr(instances, "has_array_fields", lambda: False)
    function, x, y = function_of(), value(1), value(2)
    assert function.run_directly((x, y)) is None
    assert_close(function(x, y), expected(x, y))


def test_the_words_of_a_call_live_as_long_as_its_function():
    words = np.zeros(32, np.int64)
    assert direct_run(words, 0, lambda: None, lambda ran: True, list).words is words


@pytest.mark.parametrize("ran", [OTHER_ARRAYS, STOPPED, STOPPED - 3])
def test_what_native_code_says_is_refused_or_raised(ran):
    x, i = cg.Var((4,), name="x"), cg.Var((2,), "int64", name="i")
    function = cg.compile(cg.take(x, i), [x, i])
    instance = function.program.instance()
    if ran == OTHER_ARRAYS:
        assert not instance._finish_directly(instance._whole, ran)
    else:
        instance.stop[0] = 1
        rows = instance._whole
        with pytest.raises(cg.PositionError):
            instance._finish_directly(rows, STOPPED - 1 if rows.count < 3 else ran)


def test_results_are_copies_and_numbers_are_scalars():
    arrays = [np.arange(3.0), np.array(2)]
    first, second = results_reader(arrays, (), NO_NEW)(())
    assert first is not arrays[0] and first.tolist() == [0, 1, 2] and type(second) is np.int64
    (only,) = results_reader(arrays[:1], (), NO_NEW)(())
    assert only.flags.owndata and only.tolist() == [0, 1, 2]


def test_outputs_that_show_an_input_are_copies_of_the_callers_array():
    x = cg.Var(SHAPE, name="x")
    function = cg.compile([cg.reshape(x, (4, 3)), x[:, 1:], x * 2, x[1, 2], x], [x])
    for call in (function.run_directly, lambda arrays: function(*arrays)):
        array = value(1)
        results = call((array,))
        want = [array.reshape(4, 3), array[:, 1:].copy(), array * 2, array[1, 2], array.copy()]
        for x, y in zip(results, want, strict=True):
            np.testing.assert_array_equal(x, y)
        want = [x.copy() for x in results]
        assert not any(np.shares_memory(x, array) for x in results)
        array[...] = 7
        for x, y in zip(results, want):
            np.testing.assert_array_equal(x, y)


def large() -> cg.Function:
    """A function with a small result, one that calls compute in new arrays, and one that is an output twice."""
    x, y = cg.Var((200, 300), name="x"), cg.Var((300,), name="y")
    twice = cg.cumsum(x, 1)
    return cg.compile([cg.sum(x * y), cg.cumsum(x, 0) * y, twice, twice], [x, y])


def test_large_results_are_computed_in_new_arrays():
    function, results = large(), []
    assert len(function.program.instance().results) == 1
    y = np.ones(300, "float32")
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal((200, 300), "float32")
        want = function(x, y, copy=False)  # the general path, between calls of the other
        want = [np.array(v) for v in want]
        assert function.run_directly((x, y[::-1][:200])) is None  # arrays that do not fit run nothing
        results.append((function.run_directly((x, y)), want))
    for got, want in results:  # later calls change no earlier result
        assert got[1].flags.writeable and got[1].ctypes.data % 64 == 0
        for a, b in zip(got, want):
            np.testing.assert_array_equal(a, b)


def test_every_new_array_has_the_shape_and_dtype_of_its_own_output():
    x, y = cg.Var((200, 300), name="x"), cg.Var((130, 220), "float64", name="y")
    function = cg.compile([cg.argsort(x, 1), cg.sum(x), cg.cumprod(y, 1), cg.cumsum(x, 0)], [x, y])
    assert len(function.program.instance().results) == 3
    rng = np.random.default_rng(0)
    for _ in range(2):
        arrays = rng.standard_normal((200, 300), "float32"), rng.standard_normal((130, 220))
        want = function(*arrays)
        for got, expected in zip(function.run_directly(arrays), want, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


def test_new_arrays_are_forgotten_after_a_call():
    addresses = []
    new = NewResults([NewResult(1, ((2, 3), np.dtype("f4"), 24), addresses.append)], addresses.clear)
    assert new.numbers == {1}
    for _ in range(2):
        new.bind()
        results = [0, 0, 3]
        new.put(results)
        assert (results[0], results[1].shape, results[2]) == (0, (2, 3), 3)
        assert addresses == [results[1].ctypes.data] and not new._arrays


def partly_constant() -> cg.Function:
    """A function with a step that no input changes: a table, which later steps may overwrite or not."""
    x, i = cg.Var((4,), name="x"), cg.Var((4,), "int64", name="i")
    table = cg.cumsum(cg.ones((64,)), 0)
    return cg.compile([cg.scatter(table, i, x), cg.sum(table * x[0]), cg.take(table, i)], [x, i])


def expected_partly_constant(x: np.ndarray, i: np.ndarray) -> list:
    table = np.arange(1, 65, dtype="float32")
    scattered = table.copy()
    scattered[i] = x
    return [scattered, (table * x[0]).sum(), table[i]]


def test_steps_that_no_input_changes_are_left_out_of_later_runs():
    function = partly_constant()
    assert not function.incremental.runs_all(function._always)
    for call in range(5):
        x, i = value(call)[0], np.random.default_rng(call).permutation(64)[:4]
        results = function.run_directly((x, i))
        assert (results is None) == (call < 2)  # the first run computes the table, the second leaves the steady state
        for got, want in zip(function(x, i) if results is None else results, expected_partly_constant(x, i)):
            assert_close(got, want)


def test_after_a_run_that_ended_early_all_steps_run_again():
    function = partly_constant()
    x, i = value(0)[0], np.arange(4)
    for _ in range(2):
        function(x, i)
    assert function.run_directly((x, i)) is not None
    with pytest.raises(cg.PositionError):
        function(x, np.array([0, 1, 2, 640]))
    assert function.run_directly((x, i)) is None
    for _ in range(2):
        for got, want in zip(function(x, i), expected_partly_constant(x, i)):
            assert_close(got, want)
    assert function.run_directly((x, i)) is not None


def test_values_that_another_size_overwrote_are_computed_again():
    """Functions of several sizes share an arena."""

    def build(sizes):
        x = cg.Var((sizes["n"],), name="x")
        return [cg.scatter(cg.cumsum(cg.ones((64,)), 0), np.arange(sizes["n"]), x), cg.sum(x)], [x]

    function = cg.compile_sizes(build, {"x": ("n",)})
    for n in (3, 3, 3, 5, 3, 5, 5, 5, 3):
        x = np.ones(n, "float32")
        table, total = function(x)
        np.testing.assert_array_equal(table, np.where(np.arange(64) < n, 1, np.arange(1, 65)))
        assert total == n
