"""A report as HTML: its rows and cells, the peak's row, the bars, and names that are no markup."""

import re
import xml.etree.ElementTree as xml

import pytest

from cgraph.planning.mixed_precision import LayerPrecision, MixedPrecision
from cgraph.record import replace
from cgraph.view.figures import Alive, Kernels
from cgraph.view.report_html import STYLE, cell, number, report_html, table
from tests.view.test_figures import PLAIN, REGION, STEPS, WEIGHTS


def cells_of(figures, which):
    """Texts of the cells of a table."""
    page = xml.fromstring(report_html(figures).replace(f"<style>{STYLE}</style>", ""))
    found = list(page.iter("table"))[which]
    return [[x.text or "" for x in row] for row in found.iter("tr") if len(row)]


def test_the_facts_are_those_of_the_text():
    assert cells_of(PLAIN, 0) == [
        ["arena", "30 B", "30 bytes", "by greedy, not proved the smallest; order depth_first"],
        ["lower bound", "24 B", "24 bytes", "the arena is 1.2500 × that; 32 B if nothing overwrote"],
        ["unshared", "40 B", "40 bytes", "sharing saves 25.0 %"],
        ["Vars", "16 B", "16 bytes", "outside the arena"],
        ["Consts", "4 B", "4 bytes", "outside the arena"],
    ]


def test_times_weights_and_kernels_are_rows_where_they_are_known():
    timed = replace(PLAIN, steps=(replace(STEPS[0], seconds=0.5), replace(STEPS[1], seconds=0.25)))
    assert cells_of(timed, 0)[5:] == [["time", "750 ms", "", "steps one by one"]]
    assert cells_of(replace(PLAIN, weights=WEIGHTS), 0)[5:] == [
        ["weights", "80 B", "from disk", "in 2 pieces through a ring of 100 B"]
    ]
    assert cells_of(replace(PLAIN, kernels=Kernels(1, 2, 3, 4, 0.5)), 0)[5:] == [
        ["kernels", "1", "", "2 calls; this process loaded 3 and compiled 4 in 0.50 s"]
    ]
    assert cells_of(replace(PLAIN, on_host=(("sort<", 7), ("lapack", 2048))), 0)[5:] == [
        ["on the host", "7 B", "", "sort<, carried"],
        ["on the host", "2 KiB", "", "lapack, carried"],
    ]


@pytest.mark.parametrize("is_timed", [False, True])
def test_steps_have_a_row_each_with_a_time_where_it_was_measured(is_timed):
    steps = tuple(replace(x, seconds=0.25) for x in STEPS) if is_timed else STEPS
    time, seconds = (["time"], ["250 ms"]) if is_timed else ([], [])
    assert cells_of(replace(PLAIN, steps=steps), 2) == [
        ["step", "op", "result", "writes", "in use", *time, "where"],
        ["0", "exp", "float32[2]", "8 B", "24 B", *seconds, "a.py:1"],
        ["1", "sum", "float32[]", "4 B", "12 B", *seconds, "a.py:2"],
    ]


def test_bars_are_shares_of_the_most_and_the_peak_has_a_class():
    page = report_html(replace(PLAIN, peak=1))
    assert re.findall(r"background-size:([\d.]+)%", page) == ["100.0", "50.0"]
    assert page.count("<tr class='peak'>") == 1 and "<tr class='peak'><td class=\"n\">1</td>" in page
    assert "<b>In use at the peak, step 1</b>" in page and "<summary>2 steps</summary>" in page
    nothing = tuple(replace(x, in_use=0) for x in STEPS)
    assert re.findall(r"background-size:([\d.]+)%", report_html(replace(PLAIN, steps=nothing))) == ["0.0", "0.0"]
    assert "0 steps" in report_html(replace(PLAIN, steps=()))


def test_values_at_the_peak_have_bytes_name_and_line():
    alive = Alive(2048, "a<b>", 'c"d'), Alive(8, "x", "")
    assert cells_of(replace(PLAIN, alive=alive), 1) == [["2 KiB", "a<b>", 'c"d'], ["8 B", "x", ""]]
    assert "<b>" not in report_html(replace(PLAIN, alive=alive)).split("</b>", 1)[1]


def test_regions_and_inner_plans_are_folded():
    page = report_html(replace(PLAIN, regions=(REGION,), inner=(("loop <1>", PLAIN),)))
    assert "<summary>step 1, conv2d: 3 values in 5 bands" in page and "<summary>inside loop &lt;1&gt;</summary>" in page
    assert cells_of(replace(PLAIN, regions=(REGION,)), 3) == [
        ["rows at once", "whole", "value"],
        ["10 B", "100 B", "x"],
        ["20 B", "300 B", "y"],
    ]
    assert report_html(PLAIN) in page


def test_cells_of_a_table():
    assert cell("a&b") == "<td>a&amp;b</td>" and number("1") == '<td class="n">1</td>'
    assert table(("a",), [(cell("1"),), (cell("2"),)], 0) == (
        "<table>\n<tr><th>a</th></tr>\n<tr class='peak'><td>1</td></tr>\n<tr><td>2</td></tr>\n</table>"
    )
    assert table((), []) == "<table>\n\n</table>"


def test_a_step_that_took_no_time_has_a_cell_like_the_others():
    timed = replace(PLAIN, steps=(replace(STEPS[0], seconds=0.0), replace(STEPS[1], seconds=0.25)))
    head, first, second = cells_of(timed, 2)
    assert len(head) == len(first) == len(second) and head[5] == "time"
    assert (first[5], second[5]) == ("0 µs", "250 ms") and (first[-1], second[-1]) == ("a.py:1", "a.py:2")


def test_precision_has_a_row_for_each_line_of_its_summary():
    layers = LayerPrecision("<one>", "bf16", 30), LayerPrecision("two", "float32", 10, "no tiles")
    precision = MixedPrecision(layers, 0.5, (("y<", 0.25),), "no tiles")
    assert cells_of(replace(PLAIN, precision=precision), 0)[5:] == [
        ["precision", "", "", "1 of 2 layers in bf16, 75.0% of their multiply-adds"],
        ["precision", "", "", "float32: no tiles"],
        ["precision", "", "", "measured error of y< 0.25; accepted 0.5"],
    ]
