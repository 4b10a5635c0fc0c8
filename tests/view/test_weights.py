"""What reports say of weights that are read from a file during each run."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.view.figures import PieceRow, WeightFigures
from cgraph.view.report import report, timed_report
from cgraph.view.weights import row_seconds, time_weights
from tests.function.test_streamed_weights import chain, streamed
from tests.support.tolerance import near


def test_a_report_says_what_goes_through_the_ring(tmp_path):
    function, _, _ = streamed(tmp_path, ring=1 << 20, winograd=False)
    weights, ring = report(function).weights, function.program.code.ring
    assert [x.nbytes for x in weights.pieces] == [p.nbytes for p in ring.pieces]
    assert (weights.path, weights.ring) == (str(tmp_path / "w"), ring.nbytes)
    assert weights.measured is None and weights.pieces[0].read is None
    text = str(report(function))
    assert f"in {len(ring.pieces)} pieces from {tmp_path / 'w'} through a ring of 1 MiB" in text
    assert "pieces through a ring" in report(function).html()


def test_a_timed_report_has_what_a_run_waits_for_predicted_and_measured(tmp_path):
    function, value, want = streamed(tmp_path, ring=300 << 10, winograd=False)
    found = timed_report(function, value)
    weights = found.weights
    assert weights.kernels == near(found.seconds, "float64 through float32")
    waits = [(x.predicted, x.measured) for x in weights.pieces]
    assert all(x.read > 0 for x in weights.pieces)
    assert weights.predicted == near(weights.kernels + sum(p for p, _ in waits), "float64 through float32")
    assert weights.measured >= sum(m for _, m in waits) >= 0
    assert all(p >= 0 and m >= 0 for p, m in waits)
    fields = json.loads(found.json())["weights"]
    assert fields["ring"] == weights.ring and fields["pieces"][0]["nbytes"] == weights.pieces[0].nbytes
    lines = found.text(most=3).splitlines()
    assert f"({len(waits) - 3} of {len(waits)} pieces with less waiting are left out)" in lines
    assert (function(value) == want).all()


def test_weights_in_memory_have_no_part_of_a_report():
    x, y, value = chain(1)
    found = timed_report(cg.compile(y, x), value)
    assert found.weights is None and "through a ring" not in str(found)
    assert json.loads(found.json())["weights"] is None


@pytest.mark.parametrize("seconds", [(9.0, 3.0, 2.0, 4.0), (1.0, 2.0, 3.0, 4.0), (9.0, 4.0, 3.0, 2.0)], ids=str)
def test_of_the_runs_after_the_first_the_shortest_counts_with_its_waits(seconds, monkeypatch):
    runs = iter([(x, np.array([x, 10 * x])) for x in seconds])
    pieces = PieceRow("a", 8), PieceRow("b", 16)
    code = SimpleNamespace(ring=SimpleNamespace(pieces=["first", "second"]))
    instance = SimpleNamespace(whole="whole")
    function = SimpleNamespace(program=SimpleNamespace(code=code), instance_for=lambda *args: nullcontext(instance))
    patches = {
        "weights_of": lambda function: WeightFigures("w", 100, pieces), "StreamedInstance": SimpleNamespace,
        "read_seconds": lambda instance, piece: {"first": 0.5, "second": 0.25}[piece],
        "time_run": lambda instance: next(runs), "row_seconds": lambda code, steps: sum(steps),
        "waits_of": lambda whole, rows, reads: ([rows, 2 * rows], 7.0) if reads == [0.5, 0.25] else None,
    }  # fmt: skip
    for name, value in patches.items():
        monkeypatch.setattr(f"cgraph.view.weights.{name}", value)
    found, least = time_weights(function, (), {}, [1.0, 2.0], 3), min(seconds[1:])
    assert (found.kernels, found.predicted, found.measured) == (3.0, 7.0, least) and next(runs, None) is None
    assert found.pieces == (PieceRow("a", 8, 0.5, 3.0, least), PieceRow("b", 16, 0.25, 6.0, 10 * least))


def test_the_seconds_of_a_step_are_divided_among_its_rows_by_their_tasks():
    """Two rows of three tasks and one, a step without rows, one row, and a step whose rows have no tasks."""
    table = np.zeros((6, 4), np.int64)
    table[:, 2] = 3, 1, 7, 0, 0, 9
    code = SimpleNamespace(table=table, first_row=np.array([0, 2, 2, 3, 5, 6]))
    assert row_seconds(code, [8.0, 1.0, 2.0, 4.0]).tolist() == [6.0, 2.0, 2.0, 0.0, 0.0, 0.0]
