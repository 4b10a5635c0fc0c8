"""A call happened or it did not: an exception at any line, or any allocation, of it leaves nothing in between.

Afterwards the Vars hold what they held, or all that the call gives them; the Function and others that share the Vars
give what the reference gives for that; and no core, thread or turn is lost.
"""

import gc
import sys
import threading
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import cgraph as cg
from cgraph.record import Record
from cgraph.storage.cell import CellValue
from cgraph.system.files import replace_file
from nn.files import remove_others
from tests.support.injection import Lines, events, first_events, no_memory
from tests.support.transactions import SAMPLED, Scenario, check_lines, in_time, var

# -- scenarios: each makes Vars of its own -----------------------------------------------------------------------------


def plain_run() -> Scenario:
    x, y = cg.Var((50,), "float64", "x"), var(50, 2.0)
    f = cg.compile([cg.sin(x) * y, cg.sum(y)], [x])
    return Scenario(lambda: f(np.ones(50)), {y: y}, [y * 3])


def incremental_run() -> Scenario:
    held = [var(50, float(i)) for i in range(3)]
    y = held[0]
    for v in held[1:]:
        y = cg.sort(y * 2 + v)[::-1]
    f = cg.compile([y, cg.sum(held[0])], changing=[held[2]])
    values = iter(range(10**6))

    def act() -> None:
        held[2].assign(np.linspace(0, next(values), 50))
        held[1].assign(np.linspace(next(values), 0, 50))
        f()

    return Scenario(act, {}, [y, cg.sum(held[0])], f)


def copied_updates(engine: str = "cpu") -> Scenario:
    held = [var(40, float(i)) for i in range(4)]
    updates = dict(zip(held, (*held[1:], held[0] + 0.5)))
    return Scenario(cg.compile(held, updates=updates, engine=engine), updates, [cg.sum(cg.stack(held)), held[1] * 2])


def reference_updates() -> Scenario:
    return copied_updates("reference")


def device_updates() -> Scenario:
    return copied_updates("cuda-sim")


def device_updates_in_place() -> Scenario:
    return updates_in_place("cuda-sim")


def updates_in_place(engine: str = "cpu") -> Scenario:
    x, slot, g = var(64, 1.0), var(64, 0.0), var(64, 3.0)
    moved = slot * 0.5 + g
    updates = {slot: moved, x: x - moved * 0.125, g: g + 1}
    step = cg.compile([cg.sum(x)], updates=updates, engine=engine)
    assert step.program.code.first_write < len(step.compiled.layout.steps)
    return Scenario(step, updates, [x + slot, g * 2])


def first_device_value() -> Scenario:
    return first_value("cuda-sim")


def first_value(engine: str = "cpu") -> Scenario:
    x, y = cg.Var((30,), "float64"), var(30, 4.0)
    updates = {x: y * 2, y: y + 1}
    step = cg.compile(cg.sum(y), updates=updates, engine=engine)

    made = Scenario(step, updates, [x + y])

    def outcomes() -> tuple[list[Any], list[Any]]:
        x.cell.value = CellValue()  # as if it had never had one
        return [None, y.value], [y.value * 2, y.value + 1]

    made.outcomes = outcomes  # type: ignore[method-assign]
    return made


def shared_bytes() -> Scenario:
    given = np.arange(30.0)
    x, y = cg.Var((30,), "float64").assign(given, copy=False), var(30, 1.0)
    frozen = cg.compile(x * 1, freeze=[x])
    updates = {x: x + 2, y: x + y}
    step = cg.compile([], updates=updates)

    def act() -> None:
        x.cell.share()
        step()

    return Scenario(act, updates, [x - y], kept=lambda: (given == np.arange(30.0)).all() and (frozen() == given).all())


def assignment() -> Scenario:
    x, new = var(80, 1.0), np.linspace(0, 1, 80)
    return Scenario(lambda: x.assign(new), {x: new}, [cg.cumsum(x)])


def python_functions() -> Scenario:
    x = var(20, 2.0)
    y = cg.delay(lambda v: v + 1, x * 2)
    updates = {x: cg.delay(np.sqrt, y) + x}
    return Scenario(cg.compile(cg.sum(y), updates=updates), updates, [cg.delay(np.negative, x)])


def loops() -> Scenario:
    x, y = var(6, 1.0), var(6, 2.0)
    summed, rows = cg.scan(lambda s, row: (s + row, 9 - row), np.float64(0), x)
    grown = cg.while_loop(lambda s: cg.sum(s) < 90, lambda s: s * 2, y)
    updates = {x: rows, y: cg.cond(summed > 20, lambda: grown / 8, lambda: grown)}
    return Scenario(cg.compile(cg.sum(y), updates=updates), updates, [x * y, grown])


def linear_algebra() -> Scenario:
    x = cg.Var((9, 9), "float64").assign(np.eye(9) * 2)
    updates = {x: cg.inv(x) + np.eye(9)}
    step = cg.compile([], updates=updates)  # loads SciPy's LAPACK
    threads = blas_threads()
    return Scenario(step, updates, [cg.inv(x + np.eye(9))], kept=lambda: blas_threads() == threads)


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


SCENARIOS = [
    plain_run,
    incremental_run,
    copied_updates,
    reference_updates,
    device_updates,
    updates_in_place,
    device_updates_in_place,
    first_value,
    first_device_value,
    shared_bytes,
    assignment,
    python_functions,
    loops,
    linear_algebra,
]
every_scenario = pytest.mark.parametrize("make", SCENARIOS, ids=lambda make: make.__name__)


@every_scenario
def test_an_exception_at_a_line_leaves_nothing_in_between(make):
    check_lines(make, SAMPLED)


@pytest.mark.slow
@every_scenario
def test_an_exception_at_any_line_leaves_nothing_in_between(make):
    check_lines(make, 1)


@every_scenario
def test_an_allocation_that_fails_leaves_nothing_in_between(make, monkeypatch):
    whole_one = make()
    whole_one.outcomes()
    with no_memory(monkeypatch, 0) as counted:
        whole_one.act()
    # Kernels of the simulated device allocate hundreds of times in two lines: every 7th of those, others each.
    for at in (i for i, name in enumerate(counted, 1) if "simulator" not in name or i % 7 == 0):
        scenario = make()
        outcomes = scenario.outcomes()
        with no_memory(monkeypatch, at) as made, suppress(MemoryError):
            scenario.act()
            assert len(made) < at, "an allocation failed, and no exception said so"  # some acts need fewer than others
        scenario.check(outcomes)
        _, whole = scenario.outcomes()
        scenario.act()
        scenario.check((whole, whole))


def test_threads_are_not_lost():
    x = cg.Var((200, 200), name="x")
    f = cg.compile(cg.tanh(x @ x), [x])
    a = np.ones((200, 200), "float32")
    f(a)
    before = [t for t in threading.enumerate() if t.name.startswith("cgraph-")]
    for at in range(1, len(events(lambda: f(a))) + 1):
        Lines(at).during(lambda: f(a))
    assert [t for t in threading.enumerate() if t.name.startswith("cgraph-")] == before


def test_arenas_are_not_lost():
    x = var(1000, 1.0)
    f = cg.compile(cg.sort(x))
    for at in range(1, len(events(f)) + 1):
        Lines(at).during(f)
        f()
    gc.collect()
    assert len(f._idle) == 1


def compiled_graph() -> Any:
    x, w = cg.Var((3, 8), name="x"), var(8, 0.5, "float32")
    return cg.compile(cg.sum(cg.tanh(x * w)), [x], updates={w: w * 0.9})


def planned_exactly() -> Any:
    x = cg.Var((64,), name="x")
    y = x
    for i in range(6):
        y = cg.sort(y)[: 60 - 8 * i] if i % 2 else cg.stack([y, y * 2])[0]
    return cg.compile(y, [x], memory="exact")


def evaluated() -> Any:
    x = var(20, 3.0)
    return (cg.exp(x) - 1).eval()


@pytest.mark.parametrize("make", [compiled_graph, planned_exactly, evaluated])
@pytest.mark.parametrize("each", [97, pytest.param(11, marks=pytest.mark.slow)])
def test_an_exception_while_compiling_leaves_later_compiles_as_they_were(make, each):
    make()
    for at in first_events(make)[::each]:
        Lines(at).during(make)
        in_time(make)


def test_a_file_that_is_written_is_the_old_one_or_the_new_one(tmp_path):
    path = tmp_path / "checkpoint"
    for at in range(1, len(events(lambda: replace_file(path, [b"old"]))) + 1):
        replace_file(path, [b"old"])
        Lines(at).during(lambda: replace_file(path, [b"new"]))
        assert path.read_bytes() in (b"old", b"new")
        remove_others(tmp_path, "checkpoint", "checkpoint")
        assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]


class Key(Record):
    n: int


class Closing:
    """Runs lines of this project when it goes."""

    def __del__(self) -> None:
        hash(Key(2))


def test_none_is_injected_where_python_would_forget_it(monkeypatch):
    """The test of the tests: an entry of a table goes with its value, which asks for its key's hash; and finalisers."""
    table: weakref.WeakValueDictionary[Key, Closing] = weakref.WeakValueDictionary()
    forgotten: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", forgotten.append)

    def act() -> None:
        value = Closing()
        table[Key(1)] = value
        weakref.finalize(value, Key, 3)
        del value
        hash(Key(4))

    for at in range(1, len(events(act)) + 1):
        assert Lines(at).during(act)
    assert not forgotten and not table
