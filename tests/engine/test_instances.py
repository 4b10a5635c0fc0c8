"""An instance of the CPU engine: what lies in its own memory, failures half way, and turns."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import threads as pools
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.make_code import code_of
from cgraph.engine.cpu.threads import ThreadPool
from cgraph.ir.work import Part
from cgraph.kernels.kernel import ARENA, Pointer, contiguous
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import host_target
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
