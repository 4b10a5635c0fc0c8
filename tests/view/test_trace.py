"""Traces: events as the Trace Event Format wants them, steps in order inside one bar, the counter that of the plan."""

import json
from itertools import pairwise

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.instance import Share
from cgraph.errors import GraphError, InputError, PositionError
from cgraph.record import replace
from cgraph.view.figures import StepRow
from cgraph.view.report import report, timed_report
from cgraph.view.timing import record_run
from cgraph.view.trace import trace_json
from tests.support.tolerance import assert_near
from tests.view.test_figures import PLAIN

ONES = np.ones((16, 16), "float32")


@pytest.fixture
def function():
    """Views, overwriting, a concat and an update edge."""
    x, state = cg.Var((16, 16), name="x"), cg.Var((16, 16), name="state")
    state.assign(ONES)
    turned = np.tanh((np.sin(x) + state).T)
    return cg.compile([np.exp(cg.concat([turned, np.cos(x)], 0)), cg.softmax(x @ turned)], [x], {state: turned})


def traced(function, tmp_path, *args, process=1, **named):
    """The events of a process of a trace by phase, each with its times in whole nanoseconds."""
    path = tmp_path / "trace.json"
    function.trace(path, *args, **named)
    found = {"M": [], "X": [], "C": []}
    for event in json.loads(path.read_text())["traceEvents"]:
        if event["pid"] == process:
            times = {key: round(event[key] * 1000) for key in ("ts", "dur") if key in event}
            found[event["ph"]].append(event | times)
    return found


@pytest.mark.parametrize("process", [1, 2])
def test_every_event_has_the_fields_of_its_phase(function, tmp_path, process):
    found = traced(function, tmp_path, ONES, process=process)
    for phase, fields in (("M", ()), ("X", ("ts", "dur", "cat")), ("C", ("ts",))):
        for event in found[phase]:
            assert event.keys() == {"ph", "name", "pid", "tid", "args", *fields}
    assert [x["name"] for x in found["M"]][:2] == ["process_name", "thread_name"]
    assert {x["tid"] for x in found["X"]} == {x["tid"] for x in found["M"] if x["name"] == "thread_name"}
    assert all(type(x["args"]["arena"]) is int for x in found["C"])


def test_steps_follow_one_another_inside_one_bar(function, tmp_path):
    whole, *steps = traced(function, tmp_path, ONES)["X"]
    assert [x["name"] for x in steps] == [node.title for node in function.compiled.layout.steps]
    assert [x["args"]["line"] for x in steps] == [node.place for node in function.compiled.layout.steps]
    assert any("test_trace.py:" in x["args"]["line"] for x in steps)
    assert [x["args"]["nbytes"] for x in steps] == [node.nbytes for node in function.compiled.layout.steps]
    assert whole["ts"] == steps[0]["ts"] == 0
    assert all(a["ts"] + a["dur"] == b["ts"] for a, b in pairwise(steps))
    assert all(x["dur"] > 0 for x in steps)
    assert whole["dur"] == steps[-1]["ts"] + steps[-1]["dur"]


def test_the_counter_is_the_bytes_of_the_operands_alive_at_each_step(function, tmp_path):
    found = traced(function, tmp_path, ONES)
    problem = function.compiled.usage.problem
    alive = [
        sum(n for x, n in zip(problem.operands, problem.nbytes.tolist()) if x.interval.first <= t <= x.interval.last)
        for t in range(len(function.compiled.layout.steps))
    ]
    assert [x["args"]["arena"] for x in found["C"]] == alive
    assert max(alive) == function.compiled.peak_nbytes == found["X"][0]["args"]["peak"]
    assert [x["ts"] for x in found["C"]] == [x["ts"] for x in found["X"][1:]]


def test_times_are_those_of_the_report(function):
    found = timed_report(function, ONES)
    _, *steps = [x for x in json.loads(trace_json(found))["traceEvents"] if x["ph"] == "X"]
    assert_near([x["dur"] for x in steps], [row.seconds * 1e6 for row in found.steps], "microseconds of a trace")


def test_a_whole_number_of_nanoseconds_is_that_number_in_the_trace(function):
    """The next number of seconds below or above is rounded to it, too."""
    figures = timed_report(function, ONES)
    rng, rows = np.random.default_rng(0), figures.steps
    for near in (0.0, None, np.inf):
        for _ in range(20):
            want = rng.integers(1, 10**7, len(rows)).tolist()
            seconds = [n / 1e9 if near is None else float(np.nextafter(n / 1e9, near)) for n in want]
            timed = replace(figures, steps=tuple(replace(row, seconds=x) for row, x in zip(rows, seconds)))
            events = json.loads(trace_json(timed))["traceEvents"]
            assert [round(1000 * e["dur"]) for e in events if e["ph"] == "X"] == [sum(want), *want]


def test_a_loop_is_one_step(tmp_path):
    rows = cg.Var((40, 8), name="rows")
    last, sums = cg.scan(lambda h, row: (np.tanh(h + row), cg.sum(h)), cg.zeros(8), rows)
    function = cg.compile([last, sums], [rows])
    found = traced(function, tmp_path, np.ones((40, 8), "float32"))
    assert function.compiled.inner
    assert len(found["X"]) == 1 + len(function.compiled.layout.steps)
    assert max(x["args"]["arena"] for x in found["C"]) == function.compiled.peak_nbytes


def test_tracing_writes_no_update_edge(function, tmp_path):
    (state,) = function.updates
    traced(function, tmp_path, x=ONES)
    np.testing.assert_array_equal(state.value, ONES)


LARGE = np.ones((1 << 10, 1 << 10), "float32")


def large(threads=0, **options):
    """Steps of many shares: pointwise, a product, a sort of rows."""
    x = cg.Var(LARGE.shape, name="x")
    y = np.sin(x) + np.cos(x) @ x
    return cg.compile(cg.sum(cg.sort(y, 1)), x, threads=threads, **options)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_recorded_run_has_every_task_once_on_the_threads_that_ran_it(threads):
    function = large(threads)
    shares = record_run(function, (LARGE,), {})
    assert 0 in {x.thread for x in shares} and {x.thread for x in shares} <= set(range(threads))
    by_step = {t: [x for x in shares if x.step == t] for t in range(len(function.compiled.layout.steps))}
    for found in by_step.values():
        tasks = sum(x.last - x.first for x in found)
        assert found and tasks == sum(rows[2] for rows in rows_of(function, found[0].step))
    ends = [max(x.end for x in found) for found in by_step.values()]
    assert all(end <= x.begin for end, found in zip(ends, list(by_step.values())[1:]) for x in found)
    for thread in {x.thread for x in shares}:
        own = [x for x in shares if x.thread == thread]
        assert all(a.begin <= a.end <= b.begin for a, b in pairwise(own))


def rows_of(function, step):
    code = function.program.code
    return code.table[code.first_row[step] : code.first_row[step + 1]].tolist()


def test_a_recorded_run_gives_the_bits_of_a_run_and_leaves_none_behind(tmp_path):
    function = large()
    before = function(LARGE)
    function.trace(tmp_path / "trace.json", LARGE)
    assert function(LARGE).tobytes() == before.tobytes()


def test_a_run_on_threads_and_its_counter(tmp_path):
    function = large(2)
    found = traced(function, tmp_path, LARGE, process=2)
    steps = [x["args"]["step"] for x in found["X"]]
    assert min(x["ts"] for x in found["X"]) == 0 and set(steps) == set(range(len(function.compiled.layout.steps)))
    assert len(found["C"]) == len(set(steps))
    assert max(x["args"]["arena"] for x in found["C"]) == function.compiled.peak_nbytes


def test_python_functions_are_recorded_on_the_thread_that_calls():
    x = cg.Var((8,), name="x")
    function = cg.compile(np.exp(cg.delay(np.sort, np.sin(x))), x)
    shares = record_run(function, (np.ones(8, "float32"),), {})
    assert [x.step for x in shares] == list(range(len(function.compiled.layout.steps)))
    assert {x.thread for x in shares} == {0}


def test_weights_from_disk_are_recorded(tmp_path):
    rng = np.random.default_rng(0)
    x = y = cg.Var((64, 256), name="x")
    for _ in range(3):
        y = np.tanh(y @ rng.standard_normal((256, 256), "float32"))
    value = rng.standard_normal((64, 256), "float32")
    function = cg.compile(y, x, weights=cg.StreamedWeights(tmp_path / "weights"))
    want = function(value)
    found = record_run(function, (value,), {})
    assert {x.step for x in found} == set(range(len(function.compiled.layout.steps)))
    assert function(value).tobytes() == want.tobytes()


def test_what_raises_in_a_recorded_run_is_raised_and_forgotten():
    x = cg.Var((8,), name="x")
    bad = cg.compile(cg.take(np.sin(x), cg.astype(x, "int64")), x)
    with pytest.raises(PositionError):
        record_run(bad, (np.full(8, 9, "float32"),), {})
    assert_near(bad(np.ones(8, "float32")), np.sin(np.ones(8)), "float32 formulas")


def test_engines_that_know_no_times_record_nothing():
    x = cg.Var((8,), name="x")
    for engine in ("reference", "cuda-sim"):
        assert record_run(cg.compile(np.sin(x), x, engine=engine), (np.ones(8, "float32"),), {}) == ()


def test_a_title_of_any_characters_is_data(function):
    title = '"]} \ud800 \n</script>'
    events = json.loads(trace_json(timed_report(function, ONES), title=title))["traceEvents"]
    assert events[0]["args"]["name"] == f"{title}: steps one by one"


def test_a_function_without_steps_has_a_trace(tmp_path):
    x = cg.Var((4,), name="x")
    found = traced(cg.compile([x], [x]), tmp_path, np.ones(4, "float32"))
    assert [(x["ts"], x["dur"]) for x in found["X"]] == [(0, 0)] and not found["C"]


def test_what_cannot_be_traced_writes_nothing(function, tmp_path):
    path = tmp_path / "trace.json"
    with pytest.raises(InputError):
        function.trace(path)
    with pytest.raises(GraphError, match="no memory plan"):
        cg.compile(np.sin(cg.Var((4,), name="y")), engine="reference").trace(path)
    with pytest.raises(GraphError, match="a timed report has"):
        trace_json(report(function))
    assert not path.exists()


def test_only_threads_that_ran_something_have_a_track():
    """A thread in between may have found nothing left to do."""
    steps = StepRow(0, "sin", "", "", 4, 8, 0.5), StepRow(1, "cos", "", "", 4, 8, 0.5)
    shares = Share(0, 2, 0, 3, 10, 20), Share(0, 0, 3, 4, 12, 18), Share(1, 5, 0, 1, 30, 40)
    events = json.loads(trace_json(replace(PLAIN, steps=steps), shares))["traceEvents"]
    tracks = {x["tid"]: x["args"]["name"] for x in events if x["name"] == "thread_name" and x["pid"] == 2}
    assert tracks == {1: "thread 0", 3: "thread 2", 6: "thread 5"}
    assert {x["tid"] for x in events if x["ph"] == "X" and x["pid"] == 2} == set(tracks)
