"""Recorded runs: every task once, of its own step, in order; Python functions too; a loop's first rounds."""

import threading
from collections import Counter

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import recorder as recorder_module
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.make_code import code_of
from cgraph.engine.cpu.recorder import Recorder
from cgraph.engine.cpu.rows import TableRows
from cgraph.engine.instance import Share
from cgraph.ir.work import Part
from cgraph.kernels.callback import callback_call
from cgraph.kernels.kernel import ARENA, End, Pointer, Repeat, contiguous, marker_call
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import host_target
from cgraph.record import replace
from tests.support.planned import planned

X = cg.Var((6, 4), name="x")
PLAN = planned(X + 1)
DONE = np.zeros(1, np.int64)


def row(base, offset):
    return contiguous(Pointer(base, offset), (4,), "f4")


def copy(to, source):
    return copy_calls(host_target(), row(ARENA, to), row(X, source))


def recorded(*steps):
    """The shares of a run on this thread, and what the run leaves."""
    code = replace(code_of([*steps, []], PLAN), first_write=len(steps))  # none of them writes a Var
    run = CpuEngine(threads=1).program(code).instance()
    run.bind({X: np.arange(24, dtype="f4").reshape(6, 4)}, {}, DONE)
    shares = run.recorded()
    return shares, run.read(PLAN.outputs[0])


def test_each_share_has_the_step_of_its_row_in_order():
    log = []
    call = callback_call(lambda outs, xs: log.append(xs[0].tolist()), (), (row(ARENA, 16),))
    steps = [Part("a", copy(0, 80))], [Part("b", copy(16, 0)), Part("b", [call])], [], [Part("d", copy(32, 16))]
    shares, value = recorded(*steps)
    assert [x.step for x in shares] == [0, 1, 1, 3]
    assert [(x.first, x.last) for x in shares] == [(0, 1)] * 4 and {x.thread for x in shares} == {0}
    times = [t for x in shares for t in (x.begin, x.end)]
    assert times == sorted(times)
    assert log == [[0, 1, 2, 3]] and value[:3].tolist() == [[20, 21, 22, 23], [0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_recorded_run_leaves_the_program_as_it_was():
    log = []
    call = callback_call(lambda outs, xs: log.append(threading.get_ident()), (), (row(ARENA, 0),))
    run = CpuEngine(threads=1).program(code_of([[Part("a", [*copy(0, 0), call])], []], PLAN)).instance()
    run.bind({X: np.ones((6, 4), "f4")}, {}, DONE)
    before = run.table.copy()
    assert len(run.recorded()) == len(run.recorded()) == 2
    assert np.array_equal(run.table, before)
    run.run()
    assert log == [threading.get_ident()] * 3


def test_the_tasks_of_every_thread_are_recorded_once():
    x, engine = cg.Var((64, 1024)), CpuEngine(threads=3)
    compiled = planned(cg.exp(x) + 1)
    code = engine.code(None, compiled)
    run = engine.program(code).instance()
    run.bind({x: np.zeros((64, 1024), "f4")}, {}, DONE)
    shares = run.recorded()
    tasks = Counter((s.step, i) for s in shares for i in range(s.first, s.last))
    want = {
        (int(np.searchsorted(code.first_row, at, "right")) - 1, i): 1
        for at, count in enumerate(code.table[:, 2].tolist())
        for i in range(count)
    }
    assert tasks == want and max(count for _, _, count, _ in code.table) > 1
    assert all(s.begin <= s.end and 0 <= s.thread < 3 for s in shares)


@pytest.mark.parametrize("most, entries", [(1000, 12), (5, 5)])
def test_rounds_of_a_loop_are_recorded_up_to_the_most_entries(monkeypatch, most, entries):
    monkeypatch.setattr(recorder_module, "MOST_ENTRIES", most)
    to, source = object(), object()
    loop = Repeat(6, (to, source), (16, 16))
    calls = 2 * copy_calls(host_target(), row(to, 0), row(source, 0))
    parts = [
        Part("loop", [marker_call(loop, Pointer(ARENA), Pointer(X))]),
        Part("copy", calls),
        Part("loop", [marker_call(End(loop))]),
    ]
    shares, value = recorded(parts)
    assert len(shares) == entries and {x.step for x in shares} == {0}
    assert np.array_equal(value, np.arange(24).reshape(6, 4))


def test_shares_have_the_rows_of_the_whole_program_and_the_calling_thread_is_0():
    """The rows that ran are the fifth, the sixth and the second; another thread was the first to run one."""
    table = np.array([[0, 8 * i, 1, 1] for i in range(3)], np.int64)
    recorder = Recorder(TableRows(table, 3, np.array([4, 5, 1])), (), host_target())
    own, other = threading.get_ident(), threading.get_ident() + 1
    recorder._python = [(2, 0, 1, 30, 31, other), (1, 0, 2, 20, 22, own), (0, 3, 4, 10, 11, other)]
    shares = recorder.shares(np.array([0, 2, 5, 6, 6]))
    assert shares == (Share(1, 1, 3, 4, 10, 11), Share(2, 0, 0, 2, 20, 22), Share(0, 1, 0, 1, 30, 31))
