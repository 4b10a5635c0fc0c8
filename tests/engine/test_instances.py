"""An instance of the CPU engine: what lies in its own memory, failures half way, and turns."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import instance as instances
from cgraph.engine.cpu import threads as pools
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.make_code import code_of
from cgraph.engine.cpu.rows import TableRows
from cgraph.engine.cpu.threads import ThreadPool
from cgraph.engine.instance import failure
from cgraph.errors import PositionError
from cgraph.ir.work import Part
from cgraph.kernels import control
from cgraph.kernels.control import STOPPED
from cgraph.kernels.kernel import ARENA, Pointer, contiguous
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import host_target
from cgraph.record import replace
from tests.support.injection import Injected, Lines, events
from tests.support.planned import planned

SHAPE = (40, 40)


def read_late(x: cg.Node) -> cg.Node:
    """The operand is read by the last step, when its memory has been written by others."""
    matrix = cg.Const(np.random.default_rng(0).normal(0, 0.2, SHAPE).astype("f4"))
    y = x @ matrix
    return cg.cumsum(cg.tanh(y) @ matrix, 0) + cg.sort(y, 1) @ matrix - x


def read_twice(x: cg.Node) -> cg.Node:
    y = cg.sort(cg.cumsum(x, 1), 0)
    return cg.transpose(x) @ y + cg.cumsum(cg.transpose(x), 0)


def read_backwards(x: cg.Node) -> cg.Node:
    return cg.cumsum(x[::-1, ::-1], 0) @ cg.exp(-x * x) + cg.sort(x, 0)


GRAPHS = [read_late, read_twice, read_backwards]


def value(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=SHAPE).astype("f4")


# -- memory of its own --------------------------------------------------------------------------------


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_view_that_a_call_gave_is_as_an_input_what_it_was_when_the_call_began(graph, poison):
    """The run writes where it lies before it is read for the last time."""
    x = cg.Var(SHAPE, name="x")
    function, plain = (cg.compile(graph(x), x, engine=CpuEngine(poison=poison)) for _ in range(2))
    given = value(1)
    for _ in range(3):
        view = function(given, copy=False)
        before = view.copy()
        np.testing.assert_array_equal(function(view, copy=False), plain(before))
        given = before


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_part_of_a_view_that_a_call_gave_is_an_input_too(graph):
    """Rows in the middle of it: it begins inside the arena, not where that begins."""
    x, many = cg.Var(SHAPE, name="x"), cg.Var((120, 40), name="many")
    outputs = [cg.tanh(many), graph(x)]
    function, plain = (cg.compile(outputs, [x, many]) for _ in range(2))
    wide = np.random.default_rng(2).normal(size=(120, 40)).astype("f4")
    view = function(value(1), wide, copy=False)[0]
    part = view[60:100]
    before = part.copy()
    for got, want in zip(function(part, wide, copy=False), plain(before, wide), strict=True):
        np.testing.assert_array_equal(got, want)


def test_views_of_outputs_cannot_be_written():
    x = cg.Var(SHAPE, name="x")
    view = cg.compile(read_late(x), x)(value(1), copy=False)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE|read-only"):
        view.flags.writeable = True


# -- failures half way --------------------------------------------------------------------------------


def test_after_a_bind_that_failed_at_any_line_the_next_call_has_its_own_inputs_and_vars():
    """Also where the next call is given the arrays of the last one that went well."""
    x, v, w = (cg.Var(SHAPE, name=name) for name in "xvw")
    function = cg.compile(x * 2 + v, [x], updates={w: w * 0.5 + x})
    first, second = value(1), value(2)
    held = {"a": value(3), "b": value(4)}
    for name in ("a", "b"):
        v.assign(held[name])
        w.assign(np.zeros(SHAPE, "f4"))
        function(first)

    def call() -> None:
        v.assign(held["b"])
        function(second)

    for at in range(1, len(events(call)) + 1):
        v.assign(held["a"])
        w.assign(np.zeros(SHAPE, "f4"))
        kept = v.cell.value
        function(first)
        Lines(at).during(call)
        v.cell.value = kept  # the very bytes that were bound before
        w.assign(np.zeros(SHAPE, "f4"))
        np.testing.assert_array_equal(function(first), first * 2 + held["a"])
        np.testing.assert_array_equal(w.value, first)


# -- turns --------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [0, 1, 3])
def test_a_run_of_many_slices_steps_back_between_two_while_others_wait_for_a_core(monkeypatch, waiting):
    """And only then."""
    pool = ThreadPool(1)
    taken: list[int] = []

    def slice_of(table: int, row: int, *_: int) -> int:
        taken.append(row)
        return row + 1

    naps: list[float] = []
    monkeypatch.setattr(pool, "_slice", slice_of)
    monkeypatch.setattr(pools, "time", SimpleNamespace(sleep=naps.append))
    pool._cores[pools.WAITING] = waiting
    assert pool.run(0, 5) == 5 and taken == [0, 1, 2, 3, 4]
    assert len(naps) == (5 if waiting else 0)


@pytest.mark.parametrize(("threads", "most"), [(0, 3), (1, 1), (2, 2), (3, 3), (8, 3), (1000, 3)])
def test_a_run_has_no_more_threads_than_asked_for_and_than_there_are_cores(monkeypatch, threads, most):
    pool, asked = ThreadPool(3), []
    monkeypatch.setattr(pool, "_slice", lambda table, row, rows, most, *_: asked.append(most) or rows)
    pool.run(0, 1, threads)
    assert asked == [most]


def test_an_exception_ends_a_run_before_the_row_that_follows(monkeypatch):
    """Of the Python functions in a table the one whose number stands there is called, with its arguments' address."""
    pool, calls = ThreadPool(1), []
    table = np.array([[0, 11, 1, 1], [0, 22, 0, 1], [0, 33, 1, 1]], np.int64)

    def fail(args: int) -> None:
        calls.append(("fail", args))
        raise Injected

    with pytest.raises(Injected):
        pool.run(table.ctypes.data, 3, functions=[fail, lambda args: calls.append(("fine", args))])
    assert calls == [("fine", 11), ("fail", 22)]


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_the_same_steps_run_with_and_without_the_update_edges(order):
    """Rows of chosen steps are kept: those with and those without update edges are two choices."""
    x = cg.Var((6, 4), name="x")
    parts = [
        [Part(name, copy_calls(host_target(), pieces(ARENA, to), pieces(x, source)))]
        for name, to, source in (("step", 0, 32), ("update", 16, 64))
    ]
    run = CpuEngine(threads=1).program(code_of(parts, planned(x + 1))).instance()
    run.bind({x: np.arange(24, dtype="f4").reshape(6, 4)}, {}, np.zeros(1, np.int64))
    for write in order:
        run.arena[:] = 0
        run.run((0,), write=write)
        assert run.arena[:32].view("f4").tolist() == [8, 9, 10, 11, *([16, 17, 18, 19] if write else [0] * 4)]


def pieces(base, offset):
    return contiguous(Pointer(base, offset), (4,), "f4")


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("engine", ["cpu", "cuda-sim", "reference"])
@pytest.mark.parametrize("is_assigned", [True, False])
def test_an_input_that_an_update_writes_is_the_one_of_the_call(engine, copy, is_assigned):
    """Its cell has another value before the run, or none, and the new one behind it."""
    x = cg.Var((3,), name="x")
    if is_assigned:
        x.assign([7, 8, 9])
    f = cg.compile([x, x[::-1], x * 2], [x], {x: x + 1}, engine=engine)
    for start in (10, 20):
        value = np.arange(3, dtype="f4") + start
        for got, want in zip(f(value, copy=copy), (value, value[::-1], value * 2), strict=True):
            assert np.asarray(got).tolist() == want.tolist()
        assert x.value.tolist() == (value + 1).tolist() and value.tolist() == [start, start + 1, start + 2]


@pytest.mark.parametrize(
    ("stop", "kind", "text"),
    [
        (1, PositionError, "a position is outside its axis. Check the indices"),
        (control.SINGULAR, np.linalg.LinAlgError, "Singular matrix. "),
        (control.NOT_POSITIVE, np.linalg.LinAlgError, "Matrix is not positive definite. "),
        (control.NO_EIGENVALUES, np.linalg.LinAlgError, "Eigenvalues did not converge. "),
        (control.NO_SINGULAR_VALUES, np.linalg.LinAlgError, "SVD did not converge. "),
        (control.NOT_FINITE, np.linalg.LinAlgError, "Array must not contain infs or NaNs. "),
    ],
)
def test_each_word_that_ends_a_run_is_an_error_of_its_kind_with_the_step(stop, kind, text):
    error = failure(stop, "a step")
    assert type(error) is kind and str(error).startswith(f"a step: {text}")


def three_copies(**engine):
    """An instance whose steps, called 0, 1 and 2, copy a row each: into the second, third and fourth of the arena."""
    x = cg.Var((6, 4), name="x")
    parts = [[Part(str(i), copy_calls(host_target(), pieces(ARENA, 16 * i + 16), pieces(x, 16 * i)))] for i in range(3)]
    code = replace(code_of([*parts, []], planned(x + 1)), first_write=3)
    run = CpuEngine(threads=1, **engine).program(code).instance()
    run.bind({x: np.arange(24, dtype="f4").reshape(6, 4)}, {}, np.zeros(1, np.int64))
    return run


@pytest.mark.parametrize("ran", [0, 1, 2])
def test_rows_that_a_direct_run_leaves_run_and_an_error_names_the_step_of_its_row(monkeypatch, ran):
    run, asked = three_copies(), []
    monkeypatch.setattr(instances, "run_rows", lambda *given: asked.append(given) or 1)
    assert run._finish_directly(run._whole, ran)
    assert asked == [(run._whole.first + 32 * ran, 3 - ran, 1, run._stop_address)]
    run.stop[0] = 1
    for count in (ran, STOPPED - (ran + 1)):
        with pytest.raises(PositionError, match=f"^{ran}: "):
            run._finish_directly(run._whole, count)
    assert len(asked) == 2


@pytest.mark.parametrize("steps", [(0,), (2,), (0, 2), (1, 0), None])
@pytest.mark.parametrize("poison", [False, True])
def test_chosen_steps_run_alone_but_all_where_dead_bytes_are_filled(steps, poison):
    run = three_copies(poison=poison)
    run.arena[:] = 0
    run.run(steps)
    done = run.arena[16:64].view("f4").reshape(3, 4)[:, 3] > 0
    assert done.tolist() == [poison or steps is None or i in steps for i in range(3)]


@pytest.mark.parametrize("split", [0, 1, 3])
def test_rows_are_two_parts_of_a_table_and_other_calls_have_the_same_parts(split):
    table, numbers = np.arange(12).reshape(3, 4), np.array([5, 7, 9])
    rows = TableRows(table, split, numbers)
    calls = rows.calling(table + 100, [print])
    for each in (rows, calls):
        first = each.table.ctypes.data
        assert (each.first, each.count, each.second, each.rest) == (first, split, first + 32 * split, 3 - split)
        assert each.numbers is numbers
    assert rows.table is table and rows.functions is None
    assert (calls.table == table + 100).all() and calls.functions == [print]


@pytest.mark.parametrize(("size", "threads"), [(4, 1), (1 << 20, 3)])
def test_a_run_asks_for_threads_if_some_call_has_shares_for_several(size, threads):
    x = cg.Var((size,), name="x")
    program = cg.compile(cg.exp(x), [x], threads=3).program
    assert program.threads == 3 and program.instance().threads == threads


@pytest.mark.parametrize("engine", ["cpu", "cuda-sim", "reference"])
@pytest.mark.parametrize("copy", [True, False])
def test_a_result_that_shows_an_input_or_a_var_has_other_memory(engine, copy):
    x, w = cg.Var((3, 4), name="x"), cg.Var((3, 4), name="w").assign(np.ones((3, 4), "f4"))
    f = cg.compile([x, x.T, x[1:], w, w[::-1]], [x], engine=engine)
    value = np.arange(12, dtype="f4").reshape(3, 4)
    results = [np.asarray(y) for y in f(value, copy=copy)]
    assert not any(np.shares_memory(y, other) for y in results for other in (value, w.cell.array))
    value[...] = 7
    w.assign(np.zeros((3, 4), "f4"))
    assert results[0].sum() == results[1].sum() == 66 and (results[3] == 1).all() and (results[4] == 1).all()


def test_an_error_names_the_step_of_the_row_among_those_that_were_chosen():
    run = three_copies()
    run.stop[0] = 1
    rows = run._rows_of((2, 0), False)
    assert [str(run._stopped(ran, rows))[:3] for ran in (1, 2)] == ["2: ", "0: "]


def test_a_run_begins_anew_after_one_that_a_kernel_ended():
    run = three_copies()
    run.arena[:] = 0
    run.stop[0] = 1
    run.run()
    assert run.arena[16:64].any() and run.stop[0] == 0


def test_a_run_sets_the_word_that_was_bound_last():
    x, v = cg.Var((3,), name="x"), cg.Var((3,), name="v").assign(np.zeros(3, "f4"))
    f = cg.compile([], [x], {v: x[::-1]})
    run, words = f.program.instance(), np.zeros((2, 1), np.int64)
    for done in words:
        run.bind({x: np.ones(3, "f4")}, {v: v.cell.value}, done)
    run.run()
    assert words.tolist() == [[0], [1]]
