"""Traces of steps over time for Perfetto and Chrome, with the bytes in use.

The trace has two processes. The first has the times of `cgraph.view.timing`: each step was run separately on all
threads of its Function, and the shortest times follow each other; its length is the sum of the steps. The second is a
recording of one run, the shortest of several: it has a track for each thread, with a bar for every share of a step's
tasks that the thread ran, so gaps are waiting. A loop is one step in both.

Source: Trace Event Format, Google 2016: JSON objects with phases ``X`` (complete), ``C`` (counter) and ``M`` (names of
tracks); times are microseconds.
"""

import json
import os
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from cgraph.engine.instance import Share
from cgraph.errors import GraphError
from cgraph.function import Function
from cgraph.view.figures import Figures, StepRow
from cgraph.view.report import timed_report
from cgraph.view.timing import record_run

STEPS, RUN = 1, 2
"""Numbers of the processes."""
Event = dict[str, Any]


def write_trace(function: Function, path: str | os.PathLike, args: tuple, named: Mapping[str, Any]) -> None:
    """Time the steps of a Function for these inputs, and write them as a trace. No update edge is written."""
    figures = timed_report(function, *args, **named)
    Path(path).write_text(trace_json(figures, record_run(function, args, named)), encoding="utf-8")


def trace_json(figures: Figures, shares: Sequence[Share] = (), title: str = "cgraph") -> str:
    """Return the trace of a timed report and of a run, as JSON text. GraphError if its steps have no times."""
    events = [*_events_of_steps(figures, title), *(_events_of_run(figures, shares, title) if shares else ())]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events})


def _events_of_steps(figures: Figures, title: str) -> list[Event]:
    """Return the events of the steps, one after another."""
    durations = [_nanoseconds(row) for row in figures.steps]
    begins = list(accumulate(durations, initial=0))
    whole = {"arena": figures.nbytes, "peak": figures.peak_nbytes, "strategy": figures.strategy}
    events = [_named("process_name", f"{title}: steps one by one", STEPS, 1), _named("thread_name", "steps", STEPS, 1)]
    events.append(_complete("all steps", 0, begins[-1], STEPS, 1, whole))
    for row, begin, duration in zip(figures.steps, begins, durations):
        events.append(_complete(row.op, begin, duration, STEPS, 1, _said(row)))
        events.append(_in_use(row, begin, STEPS))
    return events


def _events_of_run(figures: Figures, shares: Sequence[Share], title: str) -> list[Event]:
    """Return the events of one run, by thread."""
    start, last_step = shares[0].begin, -1
    events = [_named("process_name", f"{title}: one run", RUN, 1)]
    events += [_named("thread_name", f"thread {i}", RUN, i + 1) for i in sorted({x.thread for x in shares})]
    for share in shares:
        row, begin = figures.steps[share.step], share.begin - start
        if share.step > last_step:
            last_step = share.step
            events.append(_in_use(row, begin, RUN))
        said = _said(row) | {"tasks": f"{share.first} to {share.last}"}
        events.append(_complete(row.op, begin, share.end - share.begin, RUN, share.thread + 1, said))
    return events


def _said(row: StepRow) -> dict[str, Any]:
    return {"step": row.step, "line": row.where, "value": row.spec, "nbytes": row.nbytes, "in use": row.in_use}


def _in_use(row: StepRow, begin: int, process: int) -> Event:
    return {
        "ph": "C",
        "name": "bytes in use",
        "pid": process,
        "tid": 1,
        "ts": begin / 1000,
        "args": {"arena": row.in_use},
    }


def _nanoseconds(row: StepRow) -> int:
    """Return integer nanoseconds, which add up exactly: steps neither overlap nor exceed the event that encloses
    them.
    """
    if row.seconds is None:
        raise GraphError(
            "a trace needs the times of steps, which a timed report has. Pass cg.timed_report(function, ...)"
        )
    return round(row.seconds * 1e9)


def _named(what: str, name: str, process: int, track: int) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": name}}


def _complete(name: str, begin: int, duration: int, process: int, track: int, said: dict[str, Any]) -> Event:
    """Return an event from `begin` for `duration`, both in nanoseconds."""
    times = {"ts": begin / 1000, "dur": duration / 1000}
    return {"ph": "X", "name": name, "cat": "step", "pid": process, "tid": track, **times, "args": said}
