import json
import xml.etree.ElementTree as xml
from base64 import b64decode
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import GraphError, InputError, UnassignedError
from cgraph.memory.auto import auto
from cgraph.memory.problem import Plan, Problem, ProblemOperand, UsageInterval
from cgraph.memory.strategies.one_each import one_each
from cgraph.memory.strategies.vandenhove import vandenhove
from cgraph.view.boxes import Box, last_drawn_steps, memory_with
from cgraph.view.figures import Alive, Kernels
from cgraph.view.notebook import MOST_ITEMS, node_html
from cgraph.view.planned import function_svg, memory_of
from cgraph.view.report import _alive, report, timed_report
from cgraph.view.report_html import STYLE
from tests.support.emulated import PairsEngine
from tests.support.planned import planned

ONES = np.ones((16, 16), "float32")


def graph():
    """Outputs, inputs and updates of a small graph with views, overwriting, a concat and an update edge."""
    x, state = cg.Var((16, 16), name="x<&>"), cg.Var((16, 16), name="state")
    wave = np.sin(x) + state
    turned = np.tanh(wave.T)
    joined = cg.concat([turned, np.cos(x)], 0)
    return (np.exp(joined), wave), (x,), {state: turned}


def compiled_graph(strategy=auto):
    outputs, _, updates = graph()
    return planned(*outputs, updates=updates, strategy=strategy)


@pytest.mark.parametrize("strategy", [auto, one_each, vandenhove])
def test_figures_are_those_of_the_plan(strategy):
    compiled = compiled_graph(strategy)
    found = report(compiled)
    assert (found.nbytes, found.lower_bound) == (compiled.nbytes, compiled.lower_bound)
    assert found.plain_lower_bound == compiled.plain_lower_bound
    assert found.unshared_nbytes == compiled.unshared_nbytes
    assert found.peak_nbytes == max(row.in_use for row in found.steps) == compiled.peak_nbytes
    assert found.ratio == compiled.nbytes / compiled.lower_bound
    assert (found.strategy, found.order) == (compiled.plan.strategy, compiled.order)
    assert found.var_nbytes == 2 * 16 * 16 * 4
    assert [row.op for row in found.steps] == [node.title for node in compiled.layout.steps]
    assert [row.nbytes for row in found.steps] == [node.nbytes for node in compiled.layout.steps]


def test_the_text_shows_the_bound_without_overwriting_where_it_is_another():
    x = cg.Var((64,))
    assert "if nothing overwrote" not in str(report(planned(cg.sin(x))))
    found = report(planned(cg.exp(cg.sin(x))))
    assert (found.lower_bound, found.plain_lower_bound) == (256, 512)
    assert "; 512 B if nothing overwrote" in str(found)


def test_bytes_in_use_are_those_of_the_operands_alive_at_each_step():
    compiled = compiled_graph()
    problem = compiled.usage.problem
    for row in report(compiled).steps:
        alive = [n for x, n in zip(problem.operands, problem.nbytes) if x.interval.first <= row.step <= x.interval.last]
        assert row.in_use == sum(alive)


def test_what_is_alive_at_the_peak_adds_up_to_the_bytes_in_use():
    found = report(compiled_graph())
    assert sum(x.nbytes for x in found.alive) == found.peak_nbytes == found.steps[found.peak].in_use
    assert [x.nbytes for x in found.alive] == sorted((x.nbytes for x in found.alive), reverse=True)
    assert all(x.name for x in found.alive)


def test_a_value_that_overwrites_another_is_shown_as_such():
    memory = memory_of(compiled_graph())
    compiled = compiled_graph()
    for i, box in enumerate(memory.boxes):
        assert (box.over, box.inside) == (compiled.usage.shared[i], compiled.usage.inside[i])
    assert any(box.over >= 0 for box in memory.boxes) or any(box.inside >= 0 for box in memory.boxes)
    for box in memory.boxes:
        if box.over >= 0:
            assert (box.offset, box.nbytes) == (memory.boxes[box.over].offset, memory.boxes[box.over].nbytes)


def test_the_picture_of_a_function_has_a_rectangle_for_every_value():
    compiled = compiled_graph()
    picture = xml.fromstring(function_svg(compiled, "the <title>"))
    drawn = [x for x in picture.iter() if x.get("class", "").split()[:1] in (["operand"], ["workspace"])]
    assert len(drawn) == sum(1 for v in compiled.layout.values if v.nbytes)
    assert any(x.text == "the <title>" for x in picture.iter())


@pytest.mark.parametrize("strategy", [auto, one_each, vandenhove])
def test_no_byte_is_drawn_twice_at_a_step(strategy):
    boxes = memory_of(compiled_graph(strategy)).boxes
    drawn = [(x.first, until, x.offset, x.offset + x.nbytes) for x, until in zip(boxes, last_drawn_steps(boxes))]
    for i, (first, until, low, high) in enumerate(drawn):
        for other_first, other_until, other_low, other_high in drawn[:i]:
            together = first <= other_until and other_first <= until
            assert not (together and low < other_high and other_low < high)
    assert any(until < x.last for x, (_, until, _, _) in zip(boxes, drawn))


def test_text_and_json_say_the_same():
    found = report(compiled_graph())
    fields = json.loads(found.json())
    assert fields == json.loads(json.dumps(found.as_dict()))
    assert fields["nbytes"] == found.nbytes and len(fields["steps"]) == len(found.steps)
    text = str(found)
    assert f"({found.nbytes} bytes) by {found.strategy}" in text
    assert sum(line.lstrip().split(" ")[0].isdigit() for line in text.splitlines()) >= len(found.steps)


def test_a_long_table_keeps_the_steps_that_need_most():
    node = cg.Var((4,), name="x")
    for i in range(80):
        node = cg.concat([node, np.sin(node)]) if i == 40 else np.sin(node)
    found = report(planned(node, strategy=one_each))
    text = found.text(most=10)
    assert f"({len(found.steps) - 10} of {len(found.steps)} steps with less bytes in use are left out)" in text
    assert "concat" in text
    assert len(found.text(most=None).splitlines()) > len(found.steps)


def test_names_are_escaped_in_a_page():
    x = cg.Var((4,), name="</table><script>alert(1)</script>")
    outputs = (cg.concat([np.sin(x)], 0),)
    page = report(planned(*outputs, strategy=one_each)).html()
    assert "<script>" not in page
    xml.fromstring(page)


def test_a_function_reports_and_shows_itself():
    outputs, inputs, updates = graph()
    function = cg.compile(outputs, inputs, updates)
    found = function.report()
    assert found.nbytes == function.nbytes
    assert found.kernels.calls >= len(found.steps) - 1 and found.kernels.kernels >= 1
    assert function._repr_svg_() == function_svg(function)
    assert function_svg(function)[:50] in function._repr_html_() and found.html()[:20] in function._repr_html_()


def test_a_timed_report_has_a_time_for_every_step_and_changes_nothing():
    outputs, inputs, updates = graph()
    function = cg.compile(outputs, inputs, updates)
    (state,) = updates
    state.assign(ONES)
    found = timed_report(function, ONES)
    assert all(row.seconds >= 0 for row in found.steps)
    assert found.seconds == sum(row.seconds for row in found.steps)
    assert "time" in str(found) and "time" in found.html()
    np.testing.assert_array_equal(state.value, ONES)
    want = cg.compile(outputs, inputs)(ONES)
    for a, b in zip(function(ONES), want):
        np.testing.assert_array_equal(a, b)


def test_a_timed_report_wants_the_inputs():
    outputs, inputs, updates = graph()
    function = cg.compile(outputs, inputs, updates)
    with pytest.raises(InputError):
        timed_report(function)
    with pytest.raises(UnassignedError):
        timed_report(function, ONES)
    with pytest.raises(GraphError, match="at least once"):
        timed_report(function, ONES, repeats=0)


def test_the_reference_engine_has_no_plan_to_show():
    function = cg.compile(np.sin(cg.Var((4,))), engine="reference")
    assert function._repr_html_() is None and function._repr_svg_() is None
    with pytest.raises(GraphError, match="no memory plan"):
        function.report()


def test_a_function_without_steps_has_a_report():
    x = cg.Var((4,), name="x")
    found = cg.compile([x], [x]).report()
    assert found.ratio >= 1 and str(found) and found.html()


def test_a_function_of_four_thousand_nodes_has_a_report_and_a_picture():
    node = cg.Var((64,), name="x")
    for i in range(4000):
        node = np.sin(node) if i % 2 else np.cos(node)
    compiled = planned(node, strategy=vandenhove)
    found = report(compiled)
    assert len(found.steps) == 4000 and len(str(found).splitlines()) < 80
    assert function_svg(compiled).count("<title>") >= 4000


def test_pictures_pages_and_nodes_show_themselves():
    outputs, inputs, updates = graph()
    function = cg.compile(outputs, inputs, updates)
    picture, page = cg.function_svg(function), cg.page_html(function)
    assert picture._repr_svg_() == picture and picture.startswith("<svg ") and "prefers-color-scheme:dark" in picture
    frame = xml.fromstring(page._repr_html_())
    kind, _, data = frame.get("src").partition(",")
    assert b64decode(data).decode() == page and kind == "data:text/html;charset=utf-8;base64"
    assert frame.get("sandbox") == "allow-scripts"


def test_a_node_shows_the_last_nodes_that_it_is_made_of():
    x = cg.Var((4,), name="<x>")
    y = x * 2.5
    found = xml.fromstring(y._repr_html_().replace(f"<style>{STYLE}</style>", ""))
    rows = [[cell.text or "" for cell in row] for row in found.iter("tr")]
    assert [row[1] for row in rows] == ["op", "<x>", "const = 2.5", "y (broadcast_to)", "y (multiply)"]
    assert rows[-1][2:4] == ["0 2", "float32[4]"]
    for _ in range(40):
        y = np.sin(y)
    text = y._repr_html_()
    assert text.count("<tr>") == MOST_ITEMS + 1 and "14 nodes before these" in text


def test_a_report_says_how_each_layer_is_computed():
    x, sample = cg.Var((8, 32), name="x"), np.ones((8, 32), "f4")
    w = cg.Const(np.random.default_rng(0).standard_normal((32, 32)), "float32", name="weights")
    function = cg.compile(x @ w, x, engine=PairsEngine(), precision=cg.Tolerance(0.1, [sample]))
    shown = function.report()
    lines = str(shown).splitlines()
    start = lines.index("precision 1 of 1 layers in bf16, 100.0% of their multiply-adds")
    assert lines[start + 1].startswith("          measured error of output0") and lines[start + 3].endswith("weights")
    assert json.loads(shown.json())["precision"] == json.loads(json.dumps(function.precision.facts()))
    assert "1 of 1 layers in bf16" in shown.html()
    plain = cg.compile(x @ w, x).report()
    assert "precision" not in str(plain) and plain.precision is None


def test_kernels_are_those_of_the_function_and_of_the_store(monkeypatch):
    outputs, inputs, updates = graph()
    function = cg.compile(outputs, inputs, updates)
    monkeypatch.setattr("cgraph.view.report.store", lambda: SimpleNamespace(loaded=11, misses=7, compile_seconds=0.5))
    monkeypatch.setattr("cgraph.view.report.program_size", lambda shown: (3, 5))
    found = report(function)
    assert found.kernels == Kernels(kernels=3, calls=5, loaded=11, compiled=7, compile_seconds=0.5)
    assert "kernels   3 in 5 calls; this process loaded 11 and compiled 7 in 0.50 s" in str(found)
    assert report(function.compiled).kernels is None


@pytest.mark.parametrize(("count", "before"), [(1, 0), (29, 0), (30, 0), (31, 1), (45, 15)])
def test_of_many_nodes_the_last_thirty_are_rows_and_operands_before_them_are_marked(count, before):
    node = cg.Var((4,), name="x")
    for _ in range(count - 1):
        node = np.sin(node)
    text = node_html(node)
    rows = [
        [cell.text or "" for cell in row]
        for row in xml.fromstring(text.replace(f"<style>{STYLE}</style>", "")).iter("tr")
    ]
    assert rows[0] == ["", "op", "of", "result", "bytes", "where"]
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(before, count)]
    operands = [f"{before - 1}…" if before else "", *(str(i) for i in range(before, count - 1))]
    assert [row[2] for row in rows[1:]] == operands
    assert (f"<p>{before} nodes before these</p>" in text) == (before > 0) and {row[4] for row in rows[1:]} == {"16 B"}


def test_values_of_one_operand_are_named_in_the_order_of_their_steps():
    operands = ProblemOperand(16, UsageInterval(0, 3), "shared"), ProblemOperand(8, UsageInterval(0, 3), "reserve")
    problem = Problem(operands, 1)
    boxes = [Box(name, "f[2]", f"{name}.py:1", n, 0, 0, 3, 0, 0) for name, n in (("small", 8), ("large", 16))]
    memory = memory_with(problem, Plan((0, 16), 24), boxes, [])
    compiled = SimpleNamespace(usage=SimpleNamespace(problem=problem))
    assert _alive(compiled, memory) == (
        Alive(16, "small f[2], large f[2]", "large.py:1"), Alive(8, "reserved for reserve", "")
    )  # fmt: skip
