"""Traces: events as the Trace Event Format wants them, steps in order inside one bar, the counter that of the plan."""

import json
from itertools import pairwise

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import GraphError, InputError
from cgraph.view.report import report, timed_report
from cgraph.view.trace import trace_json

ONES = np.ones((16, 16), "float32")


@pytest.fixture
def function():
    """Views, overwriting, a concat and an update edge."""
    x, state = cg.Var((16, 16), name="x"), cg.Var((16, 16), name="state")
    state.assign(ONES)
    turned = np.tanh((np.sin(x) + state).T)
    return cg.compile([np.exp(cg.concat([turned, np.cos(x)], 0)), cg.softmax(x @ turned)], [x], {state: turned})


def traced(function, tmp_path, *args, **named):
    """The events of a trace by phase, each with its times in whole nanoseconds."""
    path = tmp_path / "trace.json"
    function.trace(path, *args, **named)
    found = {"M": [], "X": [], "C": []}
    for event in json.loads(path.read_text())["traceEvents"]:
        times = {key: round(event[key] * 1000) for key in ("ts", "dur") if key in event}
        found[event["ph"]].append(event | times)
    return found


def test_every_event_has_the_fields_of_its_phase(function, tmp_path):
    found = traced(function, tmp_path, ONES)
    for phase, fields in (("M", ()), ("X", ("ts", "dur", "cat")), ("C", ("ts",))):
        for event in found[phase]:
            assert event.keys() == {"ph", "name", "pid", "tid", "args", *fields}
            assert (event["pid"], event["tid"]) == (1, 1)
    assert [x["name"] for x in found["M"]] == ["process_name", "thread_name"]
    assert all(type(x["args"]["arena"]) is int for x in found["C"])


def test_steps_follow_one_another_inside_one_bar(function, tmp_path):
    whole, *steps = traced(function, tmp_path, ONES)["X"]
    assert [x["name"] for x in steps] == [node.name for node in function.compiled.layout.steps]
    assert [x["args"]["line"] for x in steps] == [node.where for node in function.compiled.layout.steps]
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
    np.testing.assert_allclose([x["dur"] for x in steps], [row.seconds * 1e6 for row in found.steps], atol=1e-3)


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


def test_a_title_of_any_characters_is_data(function):
    title = '"]} \ud800 \n</script>'
    events = json.loads(trace_json(timed_report(function, ONES), title))["traceEvents"]
    assert events[0]["args"]["name"] == title


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
