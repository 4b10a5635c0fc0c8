"""A timed report as a trace that Perfetto and Chrome open: steps along time, and the bytes alive under them.

What `cgraph.view.timing` measured, no more: each step was run alone on all threads of its Function, and the shortest of
several times is laid end to end with those of its neighbours. So a trace is no recording of one run, and its length is
the sum of the steps. A loop is one step. What each thread did meanwhile is not known: the interpreter keeps no times.

Source: Trace Event Format, Google 2016: JSON objects with phases ``X`` (complete), ``C`` (counter) and ``M`` (names of
tracks); times are microseconds.
"""

import json
import os
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from cgraph.errors import GraphError
from cgraph.function import Function
from cgraph.view.figures import Figures, StepRow
from cgraph.view.report import timed_report

TRACK = {"pid": 1, "tid": 1}
Event = dict[str, Any]


def write_trace(function: Function, path: str | os.PathLike, args: tuple, named: Mapping[str, Any]) -> None:
    """Time the steps of a Function for these inputs, and write them as a trace. No update edge is written."""
    Path(path).write_text(trace_json(timed_report(function, *args, **named)), encoding="utf-8")


def trace_json(figures: Figures, title: str = "cgraph") -> str:
    """The trace of a timed report, as JSON text. GraphError when its steps have no times."""
    durations = [_nanoseconds(row) for row in figures.steps]
    begins = list(accumulate(durations, initial=0))
    whole = {"arena": figures.nbytes, "peak": figures.peak_nbytes, "strategy": figures.strategy}
    events = [_named("process_name", title), _named("thread_name", "steps, one by one")]
    events.append(_complete("all steps", 0, begins[-1], whole))
    for row, begin, duration in zip(figures.steps, begins, durations):
        said = {"step": row.step, "line": row.where, "value": row.spec, "nbytes": row.nbytes, "in use": row.in_use}
        events.append(_complete(row.op, begin, duration, said))
        events.append({"ph": "C", "name": "bytes in use", **TRACK, "ts": begin / 1000, "args": {"arena": row.in_use}})
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events})


def _nanoseconds(row: StepRow) -> int:
    """Whole numbers add up exactly, so that steps neither overlap nor end after what encloses them."""
    if row.seconds is None:
        raise GraphError("a trace needs the times of steps, which a timed report has")
    return round(row.seconds * 1e9)


def _named(what: str, name: str) -> Event:
    return {"ph": "M", "name": what, **TRACK, "args": {"name": name}}


def _complete(name: str, begin: int, duration: int, said: dict[str, Any]) -> Event:
    """An event from `begin` for `duration`, both in nanoseconds."""
    return {"ph": "X", "name": name, "cat": "step", **TRACK, "ts": begin / 1000, "dur": duration / 1000, "args": said}
