"""Every number of a report, a picture or a page stands where its label says, in the unit that it names.

The records hold numbers of which no two are alike, so a number at another's place changes the text.
"""

import re

from cgraph.memory.problem import Plan, Problem, ProblemOperand, UsageInterval
from cgraph.view.blocks import about, memory_svg
from cgraph.view.boxes import Box, MemoryPicture, last_drawn_steps, memory_of_plan
from cgraph.view.curve import Point, cheapest, curve_svg
from cgraph.view.diagram import CONST, OP, VIEW, Diagram, DiagramItem
from cgraph.view.dot import diagram_dot
from cgraph.view.figures import Alive, Figures, Kernels, PieceRow, RegionRow, RingRow, StepRow, WeightFigures
from cgraph.view.page_data import page_data
from cgraph.view.report_html import report_html
from cgraph.view.report_text import region_text, report_text, weights_lines

KIB = 1024
STEPS = (
    StepRow(0, "exp", "float32[2]", "net.py:11", 3 * KIB, 5 * KIB, 0.0021),
    StepRow(1, "conv2d", "float32[3]", "net.py:12", 2 * KIB, 20 * KIB, 0.0013),
    StepRow(2, "sum", "float32[4]", "net.py:13", 7 * KIB, 10 * KIB, 0.0032),
)
PIECES = (
    PieceRow("conv2d at net.py:12", 30 * KIB, 0.011, 0.0012, 0.0045),
    PieceRow("sum at net.py:13", 10 * KIB, 0.014, 0.0023, 0.0034),
    PieceRow("last at net.py:14", 20 * KIB, 0.015, 0.0035, 0.0056),
)
REGION = RegionRow(
    4, "stream at net.py:15", 6 * KIB, (RingRow("relu", 9 * KIB, 31 * KIB), RingRow("add", 8 * KIB, 11 * KIB)),
    17, 19, 13 * KIB, 0.0071,
)  # fmt: skip
WHOLE = Figures(
    STEPS, 1, 20 * KIB, (Alive(12 * KIB, "relu float32[9]", "net.py:16"), Alive(8 * KIB, "x", "net.py:17")),
    24 * KIB, 96 * KIB, 16 * KIB, 23 * KIB, 14 * KIB, 15 * KIB, "postorder", "best_fit", False,
    Kernels(18, 29, 37, 41, 4.3), on_host=(("callback", 21 * KIB),),
    weights=WeightFigures("w.bin", 40 * KIB, PIECES, 0.0181, 0.0262, 0.0293), regions=(REGION,),
)  # fmt: skip

TEXT = """\
arena     24 KiB (24576 bytes) by best_fit, not proved the smallest; order postorder
bound     16 KiB (16384 bytes); the arena is 1.5000 × that; 23 KiB if nothing overwrote
unshared  96 KiB (98304 bytes); sharing saves 75.0 %
outside   14 KiB in Vars, 15 KiB in Consts
kernels   18 in 29 calls; this process loaded 37 and compiled 41 in 4.30 s
on the host  callback, 21 KiB carried
time      6.6 ms in 3 steps

peak      at step 1 20 KiB are in use:
      12 KiB  relu float32[9]  net.py:16
       8 KiB  x  net.py:17

  step  op   result          writes      in use                    time  where
     0  exp  float32[2]       3 KiB       5 KiB  ███             2.1 ms  net.py:11
     2  sum  float32[4]       7 KiB      10 KiB  ██████          3.2 ms  net.py:13
(1 of 3 steps with less time are left out)

weights   60 KiB in 3 pieces from w.bin through a ring of 40 KiB
          kernels 18.1 ms, reading 40 ms (1.46 MiB a second), each alone
          a run 29.3 ms, of which 13.5 ms waiting; predicted 26.2 ms, of which 7 ms
       bytes      read  waits: predicted  measured  step
      30 KiB     11 ms            1.2 ms    4.5 ms  conv2d at net.py:12
      20 KiB     15 ms            3.5 ms    5.6 ms  last at net.py:14
(1 of 3 pieces with less waiting are left out)

region    step 4, stream at net.py:15: 3 values in 17 bands, 6 KiB in place of 42 KiB; 19 slides copy 13 KiB; calls take about 7.1 ms more
       9 KiB of     31 KiB  relu
       8 KiB of     11 KiB  add"""  # noqa: E501


def untimed() -> Figures:
    fields = {name: getattr(WHOLE, name) for name in WHOLE._fields}
    steps = tuple(StepRow(x.step, x.op, x.spec, x.where, x.nbytes, x.in_use) for x in STEPS)
    return Figures(**fields | {"steps": steps, "weights": None, "regions": (), "proved": True})


def test_every_number_of_a_report_stands_at_its_label():
    assert report_text(WHOLE, 2) == TEXT


def test_a_report_without_times_keeps_the_steps_with_most_in_use():
    text = report_text(untimed(), 2)
    assert [line.split()[:2] for line in text.splitlines()[-3:-1]] == [["1", "conv2d"], ["2", "sum"]]
    assert text.endswith("(1 of 3 steps with less bytes in use are left out)")
    assert "proved the smallest of its kind" in text and "time" not in text


def test_weights_without_times_are_one_line():
    assert weights_lines(WeightFigures("w.bin", 40 * KIB, PIECES), None) == TEXT.split("\n\n")[3].splitlines()[:1]


def cells(html: str) -> list[list[str]]:
    """The texts of all rows of all tables."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", html)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def test_every_number_of_a_report_as_a_page_stands_at_its_label():
    html = report_html(WHOLE)
    rows = cells(html)
    for row in (
        ["arena", "24 KiB", "24576 bytes", "by best_fit, not proved the smallest; order postorder"],
        ["lower bound", "16 KiB", "16384 bytes", "the arena is 1.5000 × that; 23 KiB if nothing overwrote"],
        ["unshared", "96 KiB", "98304 bytes", "sharing saves 75.0 %"],
        ["Vars", "14 KiB", "14336 bytes", "outside the arena"],
        ["Consts", "15 KiB", "15360 bytes", "outside the arena"],
        ["time", "6.6 ms", "", "steps one by one"],
        ["weights", "60 KiB", "from disk", "in 3 pieces through a ring of 40 KiB"],
        ["kernels", "18", "", "29 calls; this process loaded 37 and compiled 41 in 4.30 s"],
        ["12 KiB", "relu float32[9]", "net.py:16"],
        ["step", "op", "result", "writes", "in use", "time", "where"],
        ["0", "exp", "float32[2]", "3 KiB", "5 KiB", "2.1 ms", "net.py:11"],
        ["2", "sum", "float32[4]", "7 KiB", "10 KiB", "3.2 ms", "net.py:13"],
        ["rows at once", "whole", "value"],
        ["9 KiB", "31 KiB", "relu"],
    ):
        assert row in rows
    assert re.findall(r"background-size:([\d.]+)%", html) == ["25.0", "100.0", "50.0"]
    peak = re.search("<tr class='peak'>(.*?)</tr>", html)
    assert peak is not None and "conv2d" in peak[1] and html.count("class='peak'") == 1
    assert f"In use at the peak, step {WHOLE.peak}" in html and "<summary>3 steps</summary>" in html
    assert region_text(REGION) in html.replace("&#x27;", "'")


# -- pictures ----------------------------------------------------------------------------------------------------------

BOXES = (
    Box("first", "float32[8]", "net.py:1", 32, 64, 2, 5, 0, 0, views=tuple(f"view {i}" for i in range(11))),
    Box("over", "float32[8]", "net.py:2", 32, 64, 5, 9, 0, 0, over=0),
    Box("part", "float32[4]", "net.py:3", 16, 64, 3, 4, 0, 0, inside=1),
)


def test_everything_that_is_told_of_a_value_is_its_own():
    assert about(BOXES[0], BOXES).splitlines() == [
        "first float32[8]", "32 B at [64, 96)", "steps 2..5", "net.py:1", *(f"view: view {i}" for i in range(8)),
        "and 3 more views",
    ]  # fmt: skip
    assert about(BOXES[1], BOXES).splitlines()[-1] == "takes the bytes of first (step 2)"
    assert about(BOXES[2], BOXES).splitlines()[-1] == "made inside over (step 5)"
    assert "more views" not in about(BOXES[1], BOXES)


def test_a_value_is_drawn_until_another_has_its_bytes():
    assert last_drawn_steps(BOXES) == [4, 9, 4]
    assert last_drawn_steps((*BOXES[:1], Box("o", "", "", 32, 64, 2, 9, 0, 0, over=0))) == [
        2,
        9,
    ]  # at least its first step


def memory() -> MemoryPicture:
    sizes = ((10, 19, 1 << 20), (13, 15, 3 << 20), (20, 24, 2 << 20))
    operands = tuple(ProblemOperand(n, UsageInterval(a, b), f"value {a}") for a, b, n in sizes)
    return memory_of_plan(Problem(operands, 1), Plan((0, 1 << 20, 1 << 19), 5 << 20, "best_fit"))


def test_a_picture_of_memory_has_the_numbers_of_its_plan():
    """Steps and bytes at the ends of the axes, the peak, the bound, and the bytes in use to scale."""
    plan, svg = memory(), memory_svg(memory())
    assert (plan.first, plan.last, plan.peak, plan.peak_nbytes, plan.lower_bound) == (10, 24, 13, 4 << 20, 4 << 20)
    assert plan.ratio == 1.25 and [plan.alive(t) for t in (12, 13, 15, 16, 19, 20, 24)] == [
        [0], [1, 0], [1, 0], [0], [0], [2], [2],
    ]  # fmt: skip
    assert "lower bound 4 MiB; most in use 4 MiB, at step 13" in svg
    assert "3 values in 5 MiB (5242880 bytes), 1.2500 × the lower bound, by best_fit" in svg
    labels = re.findall(r'<text class="end" x="76" y="([\d.]+)">([\d.]+) (\w+)</text>', svg)
    assert [(float(n), unit) for _, n, unit in labels] == [(float(i), "MiB") for i in range(6)]
    heights = [float(y) for y, _, _ in labels]
    assert all(abs((heights[0] - y) / (heights[0] - heights[5]) - i / 5) < 0.01 for i, y in enumerate(heights))
    assert re.findall(r'<text class="middle" x="[\d.]+" y="[\d.]+">(\d+)</text>', svg) == [
        str(i) for i in range(10, 25, 2)
    ]
    path = re.search(r'class="used" d="M84 (\d+)([^"]*)"', svg)
    assert path is not None
    levels = [float(path[1]) - float(y) for y in re.findall(r"V([\d.]+)", path[2])]
    assert [round(level / max(levels) * 4, 2) for level in levels] == [1, 4, 1, 2, 0]
    assert abs(max(levels) - 50 * 4 / 5) < 0.01  # of the strip's height, where the whole arena is all of it


POINTS = (
    Point(40 * KIB, "postorder", 0, 0, 0, 0.0, False),
    Point(30 * KIB, "in bands", 5, 7, 11, 0.002, True),
    Point(20 * KIB, "again", 3, 13, 17, 0.004, False),
)


def test_a_curve_has_the_numbers_of_its_plans():
    svg = curve_svg(POINTS, "net")
    assert re.findall(r">([\d.e+-]+)</text>", svg) == ["0", "0.8", "1.6", "2.4", "3.2", "4"]  # milliseconds
    for text in ("30720 bytes, 11 calls more, 7 steps again\nin bands", "20480 bytes, 17 calls more, 13 steps again"):
        assert text in svg
    asked = re.search(r'<circle class="asked"[^>]*><title>(\d+) bytes', svg)
    assert asked is not None and asked[1] == "30720" and svg.count('class="asked"') == 1


def test_of_plans_of_equal_bytes_the_dearer_one_is_not_on_the_line():
    cheap, dear = (Point(10, "x", 0, 0, 0, seconds, False) for seconds in (1.0, 2.0))
    assert cheapest([dear, cheap]) == cheapest([cheap, dear]) == [cheap]
    assert cheapest([Point(5, "y", 0, 0, 0, 1.0, False), cheap]) == [Point(5, "y", 0, 0, 0, 1.0, False)]


# -- graphs ------------------------------------------------------------------------------------------------------------


def item(
    name: str, kind: str, step: int, box: int, block: int, operands: tuple = (), output: bool = False
) -> DiagramItem:
    return DiagramItem(name, kind, "float32[2]", "net.py:1", "", 8, step, box, block, operands, output)


def test_a_page_has_places_with_and_without_what_is_folded():
    """A constant over a view over a node: without constants the node is in the first layer. Outputs always show."""
    items = (
        item("w", CONST, -1, -1, -1),
        item("v", VIEW, -1, -1, -1, (0,)),
        item("x", OP, 0, 0, 5, (1,)),
        item("c", CONST, -1, -1, -1, (), True),
    )
    data = page_data(memory(), Diagram(items, ((2, 0),)), "", 77, [0.5])
    assert [x.folded for x in data.items] == [True, True, False, False]
    assert [x.whole_layer for x in data.items][:3] == [0, 1, 2] and data.items[2].layer == 0
    assert (data.items[2].step, data.items[2].box, data.items[2].block, data.unshared) == (0, 0, 5, 77)
    assert [(x.source, x.target) for x in data.updates] == [(2, 0)] and data.seconds == [0.5]


def test_a_graph_as_text_names_the_step_of_each_node_the_first_too():
    dot = diagram_dot(
        Diagram((item("a", OP, 0, 3, 4), item("b", OP, 1, 5, 6, (0,)), item("v", VIEW, -1, 5, 6, (1,))), ())
    )
    labels = re.findall(r'label="([^"]*)"', dot)
    assert [label.split("\\n")[2] for label in labels] == ["8 B, step 0", "8 B, step 1", "view"]
