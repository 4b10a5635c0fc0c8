"""Public functions ask for the trace of their context at each call."""

import cgraph as cg
from cgraph import slots
from cgraph.ir.tracing import TRACE, traceable


def test_a_function_runs_itself_without_a_trace_and_is_handed_on_with_one(monkeypatch):
    @traceable
    def scaled(x, by=2):
        """Return a product."""
        return x * by

    calls = []

    def traced(function, args, named):
        calls.append((function, args, named))
        return "traced"

    monkeypatch.setattr(slots, "traced_call", traced)
    assert scaled(3, by=5) == 15 and not calls
    token = TRACE.set(object())
    try:
        assert scaled(3, by=5) == "traced"
    finally:
        TRACE.reset(token)
    assert calls == [(scaled, (3,), {"by": 5})]  # the function itself, so that it is called again without the trace
    assert scaled(3) == 6
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Return a product.")


def test_functions_of_the_library_are_handed_on_too(monkeypatch):
    x = cg.Var((2,), name="x")
    monkeypatch.setattr(slots, "traced_call", lambda function, args, named: (function, args, named))
    token = TRACE.set(object())
    try:
        called = cg.sum(x, axis=0)
    finally:
        TRACE.reset(token)
    assert called == (cg.sum, (x,), {"axis": 0})
