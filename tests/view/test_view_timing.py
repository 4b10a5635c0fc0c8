"""Times of steps: what does not count, the shortest run that is recorded, and what cannot be timed."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.instance import Share
from cgraph.errors import GraphError
from cgraph.view import timing
from cgraph.view.timing import program_size, record_run, run_nanoseconds, step_seconds

X = np.ones((4, 4), "float32")


def chain(**options):
    x = cg.Var((4, 4), name="x")
    return cg.compile(cg.sort(np.sin(x), 1), x, **options)


def test_a_run_lasts_from_the_first_beginning_to_the_last_end():
    shares = [Share(0, 0, 0, 1, 50, 70), Share(1, 1, 0, 1, 40, 45), Share(1, 0, 1, 2, 60, 90)]
    for order in permutations(shares):
        assert run_nanoseconds(order) == 50
    assert run_nanoseconds([]) == 0


class Clocked:
    """An instance whose runs last 5 seconds, of which it waits so many. Changes: the time, and what it ran."""

    def __init__(self, waits: float) -> None:
        self.waits, self.waited, self.now, self.calls = waits, 100.0, 1000.0, []

    def run(self, steps=None, write=True) -> None:
        self.calls.append((steps, write))
        self.now += 5.0
        self.waited += self.waits


@pytest.mark.parametrize(("waits", "seconds"), [(0.0, 5.0), (2.0, 3.0), (7.0, 0.0)])
def test_waiting_for_weights_does_not_count_and_no_time_is_negative(waits, seconds, monkeypatch):
    instance = Clocked(waits)
    monkeypatch.setattr(timing, "perf_counter", lambda: instance.now)
    assert timing._seconds(instance, 3) == seconds
    assert instance.calls == [((3,), False)]


def test_every_step_is_timed_and_no_update_is_written():
    x, count = cg.Var((4, 4), name="x"), cg.Var((), "int64", "count").assign(0)
    function = cg.compile(np.sin(x), [x], {count: count + 1})
    seconds = step_seconds(function, (X,), {}, 2)
    assert len(seconds) == len(function.compiled.layout.steps) and min(seconds) >= 0
    record_run(function, (), {"x": X})
    assert int(count.value) == 0


@pytest.mark.parametrize("repeats", [0, -1])
def test_at_least_one_run_counts(repeats):
    with pytest.raises(GraphError) as error:
        step_seconds(chain(), (X,), {}, repeats)
    assert str(error.value) == (f"a timed report repeats at least once, not {repeats} times. Pass repeats=1 or more")


def test_streamed_rows_arrive_once_and_are_not_timed():
    x = cg.Var((1, 2, 8, 8), name="x")
    function = cg.compile(cg.relu(x), x, rows=[x])
    with pytest.raises(
        GraphError, match="timing runs the steps 3 times, but streamed rows arrive once. Compile without"
    ):
        step_seconds(function, (), {}, 3)


def test_the_shortest_of_the_recorded_runs_is_returned():
    """Of three runs after one that warms up."""
    records = iter([(Share(0, 0, 0, 1, 0, 30),), (Share(0, 0, 0, 1, 100, 110),), (Share(0, 0, 0, 1, 0, 20),)])
    runs = []
    instance = SimpleNamespace(run=lambda write: runs.append(write), recorded=lambda: next(records))

    class Room:
        def __enter__(self):
            return instance

        def __exit__(self, *error):
            return None

    function = SimpleNamespace(instance_for=lambda args, named: Room())
    assert record_run(function, (), {}) == (Share(0, 0, 0, 1, 100, 110),)
    assert runs == [False] and next(records, None) is None


def test_a_program_has_kernels_and_calls_and_the_reference_engine_none():
    kernels, calls = program_size(chain())
    assert 1 <= kernels <= calls and calls >= 2
    assert program_size(chain(engine="reference")) is None


def test_kernels_are_counted_once_and_calls_each_time():
    code = SimpleNamespace(compiled_kernels=["a", "b"], table=[0] * 5)
    assert program_size(SimpleNamespace(compiled="a plan", program=SimpleNamespace(code=code))) == (2, 5)


def test_of_each_step_the_shortest_time_counts_but_not_that_of_the_first_run(monkeypatch):
    function, times = chain(), [[0.5, 0.25], [8.0, 2.0], [4.0, 6.0], [5.0, 3.0]]
    taken, steps = iter(sum(times, [])), []
    monkeypatch.setattr(timing, "_seconds", lambda instance, t: steps.append(t) or next(taken))
    assert step_seconds(function, (X,), {}, 3) == [4.0, 2.0] and steps == [0, 1] * 4
    taken = iter([1.0, 2.0, 3.0, 4.0])
    assert step_seconds(function, (X,), {}, 1) == [3.0, 4.0]
