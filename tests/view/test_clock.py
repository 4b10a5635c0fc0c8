"""Times in reports and traces, by clocks that tests set: what counts, what does not, and which of them is reported."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.instance import Share
from cgraph.view import timing, weights
from cgraph.view.frames import region_row, regions_of
from cgraph.view.report import report, timed_report
from cgraph.view.trace import trace_json
from tests.function.test_streamed_weights import streamed
from tests.support.tolerance import near

ONES = np.ones((4, 4), "float32")


def chain() -> cg.Function:
    x = cg.Var((4, 4), name="x")
    return cg.compile(cg.softmax(cg.sort(np.sin(x) @ ONES, 1)), x)


def test_the_run_that_warms_up_is_not_counted(monkeypatch):
    """Of steps that a clock makes quickest in the first run, the shortest of the others is reported."""
    function = chain()
    count = len(function.compiled.layout.steps)
    runs = [1e-9] * count, [5.0 + t for t in range(count)], [3.0 + t for t in range(count)], [9.0] * count
    seconds = iter(np.concatenate(runs).tolist())
    monkeypatch.setattr(timing, "_seconds", lambda instance, step: next(seconds))
    assert timed_report(function, ONES).steps[0].seconds == 3.0
    assert next(seconds, None) is None  # three that count, and one that does not


def test_each_step_has_its_own_time(monkeypatch):
    monkeypatch.setattr(timing, "_seconds", lambda instance, step: float(step + 1))
    figures = timed_report(chain(), ONES, repeats=1)
    assert [x.seconds for x in figures.steps] == [float(t + 1) for t in range(len(figures.steps))]
    assert figures.seconds == sum(range(len(figures.steps) + 1))


def test_what_a_run_waits_for_is_that_of_the_shortest_run_that_counts(monkeypatch, tmp_path):
    """Every number of weights from disk is of its own clock: reading, predicted and measured, whole and by piece."""
    function, value, _ = streamed(tmp_path, ring=300 << 10, winograd=False)
    count = len(function.program.code.ring.pieces)
    runs = iter([(0.001, np.full(count, 99.0)), (0.5, np.full(count, 98.0)), (0.4, np.arange(count) + 70.0)])
    reads = iter(np.arange(count) + 10.0)
    monkeypatch.setattr(weights, "time_run", lambda instance: next(runs))
    monkeypatch.setattr(weights, "read_seconds", lambda instance, piece: next(reads))
    monkeypatch.setattr(weights, "waits_of", lambda whole, rows, times: (np.arange(count) + 40.0, 0.77))
    steps = [0.25 + t for t in range(len(function.compiled.layout.steps))]
    monkeypatch.setattr(timing, "_seconds", lambda instance, step: steps[step])
    found = timed_report(function, value, repeats=2).weights
    assert (found.kernels, found.predicted, found.measured) == (sum(steps), 0.77, 0.4)
    assert [x.read for x in found.pieces] == [10.0 + i for i in range(count)]
    assert [x.predicted for x in found.pieces] == [40.0 + i for i in range(count)]
    assert [x.measured for x in found.pieces] == [70.0 + i for i in range(count)]


def test_a_steps_time_goes_to_its_rows_by_their_tasks():
    code = SimpleNamespace(table=np.array([[0, 0, n, 0] for n in (3, 1, 5, 0, 7)]), first_row=np.array([0, 2, 3, 4, 5]))
    np.testing.assert_array_equal(weights.row_seconds(code, [4.0, 2.0, 1.0]), [3.0, 1.0, 2.0, 0.0, 0.0])


def share(step: int, begin: int, end: int, thread: int = 0) -> Share:
    return Share(step, thread, 3 * step, 3 * step + 2, begin, end)


def test_the_shortest_recorded_run_is_reported():
    """From its first begin to its last end, whatever thread that was on."""
    runs = [(share(0, 10, 20), share(1, 12, 90, 1)), (share(0, 50, 60), share(1, 61, 70)), (share(0, 0, 30),)]
    assert [timing.run_nanoseconds(x) for x in (*runs, ())] == [80, 20, 30, 0]
    shares = iter(runs)
    instance = SimpleNamespace(run=lambda write: None, recorded=lambda: next(shares))

    @contextmanager
    def instance_for(args, named):
        yield instance

    assert timing.record_run(SimpleNamespace(instance_for=instance_for), (), {}) == runs[1]


def test_a_trace_has_each_share_on_its_thread_with_its_tasks_and_each_steps_bytes():
    """Times are microseconds; the counter changes with every step, in both processes."""
    function = chain()
    figures = timed_report(function, ONES)
    assert len({(x.nbytes, x.in_use) for x in figures.steps}) > 1
    pairs = [(t, i) for t in range(len(figures.steps)) for i in (0, 1)]
    shares = [share(t, 1000 + 7000 * t + 100 * i, 5000 + 7000 * t, i) for t, i in pairs]
    events = json.loads(trace_json(figures, shares))["traceEvents"]
    for process in (1, 2):
        counters = [x["args"]["arena"] for x in events if x["ph"] == "C" and x["pid"] == process]
        assert counters == [x.in_use for x in figures.steps]
    bars = [x for x in events if x["ph"] == "X" and x["pid"] == 2]
    for bar, one in zip(bars, shares, strict=True):
        assert bar["tid"] == one.thread + 1 and bar["args"]["tasks"] == f"{one.first} to {one.last}"
        assert (bar["ts"], bar["dur"]) == ((one.begin - 1000) / 1000, (one.end - one.begin) / 1000)
        assert bar["args"]["step"] == one.step and bar["args"]["in use"] == figures.steps[one.step].in_use


def test_bytes_of_a_report_are_those_of_vars_constants_and_values_in_their_places():
    """Of a graph whose Vars, constants, bounds and values differ in bytes; the line of bytes is the last value's."""
    x, w = cg.Var((8, 64), name="x"), cg.Var((64, 16), name="w").assign(np.ones((64, 16), "f4"))
    y = cg.exp(cg.sin(x @ w))
    z = cg.sort(y + np.ones((8, 16), "float32"), 1)
    function = cg.compile([z, y], [x])
    found, compiled = report(function), function.compiled
    leaves = compiled.layout.views
    sizes = {kind: sum(n.nbytes for n in leaves if type(n.op).__name__ == kind) for kind in ("VarOp", "ConstOp")}
    assert (found.var_nbytes, found.const_nbytes) == (sizes["VarOp"], sizes["ConstOp"]) and len({*sizes.values()}) == 2
    assert (found.nbytes, found.unshared_nbytes) == (compiled.nbytes, compiled.unshared_nbytes)
    assert (found.lower_bound, found.plain_lower_bound) == (compiled.lower_bound, compiled.plain_lower_bound)
    where = {(x.op, x.spec): x.where for x in found.steps}
    for row in found.alive:
        op, spec = row.name.split(", ")[-1].rsplit(" ", 1)
        assert row.where == where.get((op, spec), row.where)


@pytest.fixture(scope="module")
def bands() -> cg.Function:
    rng = np.random.default_rng(0)
    image = y = cg.Var((1, 3, 40, 36), name="image")
    for _ in range(3):
        y = cg.relu(cg.conv2d(y, rng.standard_normal((16, y.shape[1], 3, 3)).astype("float32"), pad=1))
    return cg.compile(cg.mean(y, (2, 3)), [image], bands=1)


def test_bytes_slid_count_slides_alone(bands, monkeypatch):
    """Of a region without slides they are 0, of one without bands they stay; and calls are those beyond one of each."""
    from cgraph.budget.bands.regions import CALL_NS
    from cgraph.view import frames

    step, node = regions_of(bands)[0]
    row, whole = region_row(step, node), frames.runs_of
    assert row.slides > 0 and row.bands > 0
    values = len(row.rings) + 1
    assert row.seconds == near((row.bands + row.slides - values) * CALL_NS / 1e9, "float64 through float32")
    for slides, want in ((False, 0), (True, row.slid_nbytes)):
        with monkeypatch.context() as patch:
            patch.setattr(frames, "runs_of", lambda frame, s=slides: [x for x in whole(frame) if x.slides == s])
            other = region_row(step, node)
        assert other.slid_nbytes == want
        assert (other.bands, other.slides) == ((0, row.slides) if slides else (row.bands, 0))


def test_boxes_of_a_frame_have_the_number_of_their_value(bands):
    """By which they have one colour, and by which rings are added up."""
    from cgraph.view.frames import boxes_of

    for _, node in regions_of(bands):
        names = {(x.block, x.name.removeprefix("workspace of ")) for x in boxes_of(node)}
        assert len(names) == len({block for block, _ in names}) <= len(node.op.inner)
