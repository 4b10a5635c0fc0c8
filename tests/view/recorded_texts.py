"""Pictures, pages, reports and traces of records that are written by hand: of their numbers and names no two are alike.

``python -m tests.view.recorded_texts`` writes `recorded_texts.txt` anew. Read its difference: each line that changed is
a number, a name or a place of a picture.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cgraph.engine.instance import Share
from cgraph.memory.problem import Plan, Problem, ProblemOperand, UsageInterval
from cgraph.planning.mixed_precision import LayerPrecision, MixedPrecision
from cgraph.record import replace
from cgraph.view.blocks import memory_svg, plan_svg
from cgraph.view.boxes import WORKSPACE, Box, MemoryPicture, memory_with
from cgraph.view.curve import Point, curve_svg
from cgraph.view.diagram import CONST, OP, VAR, VIEW, Diagram, DiagramItem
from cgraph.view.dot import diagram_dot
from cgraph.view.figures import Alive, Figures, Kernels, PieceRow, RegionRow, RingRow, StepRow, WeightFigures
from cgraph.view.layered import layered
from cgraph.view.page_data import as_json, page_data
from cgraph.view.report_html import report_html
from cgraph.view.report_text import report_text
from cgraph.view.trace import trace_json
from tests.support.recorded_texts import write_sections

RECORD = Path(__file__).with_name("recorded_texts.txt")
KIB = 1024

STEPS = (
    StepRow(0, "exp", "float32[2]", "net.py:11", 3 * KIB, 5 * KIB, 0.0021),
    StepRow(1, "conv2d <a>", "float32[3]", "net.py:12", 2 * KIB, 20 * KIB, 0.0013),
    StepRow(2, "sum", "float32[4]", "net.py:13", 7 * KIB, 10 * KIB, 0.0032),
)
PIECES = (
    PieceRow("conv2d at net.py:12", 30 * KIB, 0.011, 0.0012, 0.0045),
    PieceRow("sum at net.py:13", 10 * KIB, 0.014, 0.0023, 0.0034),
    PieceRow("last at net.py:14", 20 * KIB, 0.015, 0.0035, 0.0056),
)
REGIONS = (
    RegionRow(
        4, "stream at net.py:15", 6 * KIB, (RingRow("relu", 9 * KIB, 31 * KIB), RingRow("add", 8 * KIB, 11 * KIB)),
        17, 19, 13 * KIB, 0.0071,
    ),
    RegionRow(6, "stream at net.py:18", 22 * KIB, (RingRow("exp", 26 * KIB, 33 * KIB),), 27, 0, 0, 0.0),
)  # fmt: skip
PRECISION = MixedPrecision(
    (LayerPrecision("first", "bf16", 300, "", 0.0021), LayerPrecision("second", "float32", 100, "inexact", 0.3)),
    0.01, (("scores", 0.004), ("boxes", 0.0051)), "no instruction",
)  # fmt: skip
SMALL = Figures(
    (StepRow(0, "tanh", "float32[6]", "net.py:21", 0, 0),), 0, 0, (), 0, 0, 0, 0, 0, 0, "given", "one_each", True, None
)
WHOLE = Figures(
    STEPS, 1, 20 * KIB, (Alive(12 * KIB, "relu float32[9]", "net.py:16"), Alive(8 * KIB, "x", "")),
    24 * KIB, 96 * KIB, 16 * KIB, 23 * KIB, 14 * KIB, 15 * KIB, "postorder", "best_fit", False,
    Kernels(18, 29, 37, 41, 4.3), (("scan of rows at net.py:19", SMALL),), (("callback", 21 * KIB),),
    WeightFigures("w.bin", 40 * KIB, PIECES, 0.0181, 0.0262, 0.0293), REGIONS, PRECISION,
)  # fmt: skip
UNTIMED = replace(
    WHOLE, steps=tuple(replace(x, seconds=None) for x in STEPS), kernels=None, proved=True, plain_lower_bound=16 * KIB,
    weights=replace(WHOLE.weights, predicted=None), regions=(), inner=(), on_host=(), precision=None,
)  # fmt: skip
SHARES = (
    Share(0, 0, 0, 3, 1_000_500, 1_004_700),
    Share(0, 2, 3, 8, 1_000_900, 1_003_100),
    Share(1, 0, 0, 1, 1_005_000, 1_009_000),
    Share(2, 1, 4, 6, 1_010_000, 1_011_250),
    Share(2, 0, 0, 4, 1_010_300, 1_013_000),
)

BOXES = (
    Box("first", "float32[8]", "net.py:1", 320, 640, 3, 7, 0, 0, views=tuple(f"view {i}" for i in range(10))),
    Box("over", "float32[4]", "net.py:2", 160, 640, 7, 12, 0, 0, over=0),
    Box("part <b>", "float32[2]", "net.py:3", 80, 720, 5, 6, 0, 0, inside=1),
    Box("parts.4.convolution", "float32[9]", "", 640, 0, 4, 9, 1, 20, views=("one view",)),
    Box("conv workspace", "", "net.py:4", 200, 1000, 8, 8, 2, 2, WORKSPACE),
    Box("nothing", "float32[0]", "net.py:5", 0, 0, 9, 9, 3, 3),
)
RESERVED = (Box("shared", "", "", 320, 640, 3, 12, 0, 0), Box("empty", "", "", 0, 0, 3, 12, 3, 3))
ITEMS = (
    DiagramItem("w", CONST, "float32[]", "net.py:1", "0.5", 4, -1, -1, -1, (), False),
    DiagramItem("v", VIEW, "float32[1]", "net.py:2", "", 4, -1, -1, -1, (0,), False),
    DiagramItem("x", VAR, "float32[7]", "net.py:3", "", 28, -1, -1, -1, (), False),
    DiagramItem('mul "a"', OP, "float32[7]", "net.py:4", "", 2800, 0, 3, 20, (2, 1), False),
    DiagramItem("view", VIEW, "float32[7,1]", "net.py:5", "", 28, -1, 3, 20, (3,), True),
    DiagramItem("sum", OP, "float32[]", "net.py:6", "", 4, 1, 4, 2, (3, 2, 4), True),
    DiagramItem("c", CONST, "int64[]", "net.py:7", "3", 8, -1, -1, -1, (), True),
)
POINTS = (
    Point(4000, "free <1>", 0, 0, 0, 0.0, False),
    Point(2500, "bands", 5, 7, 11, 0.0021, True),
    Point(2400, "bands, again", 13, 17, 19, 0.0034, False),
    Point(1500, "again", 23, 29, 31, 0.0033, False),
)


def problem_of(*rows: tuple[int, int, int]) -> Problem:
    """Return a problem of operands by bytes, first and last step; the first has no name."""
    named = [("" if i == 0 else f"value {i}", row) for i, row in enumerate(rows)]
    return Problem(tuple(ProblemOperand(n, UsageInterval(a, b), name) for name, (n, a, b) in named), 1)


def memory() -> MemoryPicture:
    problem = problem_of((320, 3, 12), (640, 4, 9), (200, 8, 8), (0, 9, 9))
    return memory_with(problem, Plan((640, 0, 1000, 0), 1200, "best_fit"), BOXES, RESERVED, 1100)


def page() -> str:
    data = as_json(page_data(memory(), Diagram(ITEMS, ((5, 2),)), "a line", 5000, [0.5, 0.25]))
    return "\n".join(f"{name}: {json.dumps(value)}".replace("], [", "],\n  [") for name, value in data.items())


def columns() -> str:
    """Return columns and layers of the nodes of random graphs."""
    rng = np.random.default_rng(0)
    lines = []
    for n in (1, 2, 5, 9, 17):
        operands = [sorted({*rng.integers(0, i, rng.integers(0, 3)).tolist()}) if i else [] for i in range(n)]
        places, layers = layered(operands)
        lines.append(f"{operands}: {[round(x, 3) for x in places]}, {layers}")
    return "\n".join(lines)


def large_plan() -> str:
    problem = problem_of((3 << 30, 10, 1200), (1 << 30, 200, 900), (2 << 30, 1201, 3499), (5 << 20, 12, 12))
    return plan_svg(problem, Plan((0, 3 << 30, 1 << 29, 4 << 30), 5 << 30, "best_fit", proved=True))


TEXTS: dict[str, Callable[[], str]] = {
    "report": lambda: report_text(WHOLE, None),
    "report of two steps": lambda: report_text(WHOLE, 2),
    "report without times": lambda: report_text(UNTIMED, 1),
    "report as a page": lambda: report_html(WHOLE),
    "report without times as a page": lambda: report_html(UNTIMED),
    "report as JSON": WHOLE.json,
    "trace": lambda: trace_json(WHOLE, SHARES, "net").replace('}, {"ph"', '},\n{"ph"'),
    "trace without a run": lambda: trace_json(WHOLE).replace('}, {"ph"', '},\n{"ph"'),
    "memory": lambda: memory_svg(memory(), "a <title>"),
    "memory of a plan": lambda: plan_svg(problem_of((7, 0, 0), (0, 0, 1), (9, 1, 1)), Plan((0, 0, 0), 9, "", True)),
    "memory of gibibytes": large_plan,
    "memory of nothing": lambda: plan_svg(problem_of((0, 0, 0)), Plan((0,), 0)),
    "curve": lambda: curve_svg(POINTS, "net <1>"),
    "curve of one plan": lambda: curve_svg(POINTS[:1], "one"),
    "graph": lambda: diagram_dot(Diagram(ITEMS, ((5, 2), (3, 2)))),
    "graph and memory of a page": page,
    "columns and layers": columns,
}


def text_of(name: str) -> str:
    """Return a text without styles, which have no numbers of a record."""
    return re.sub(r"<style>.*?</style>", "<style/>", TEXTS[name](), flags=re.DOTALL).rstrip("\n")


if __name__ == "__main__":
    write_sections(RECORD, {name: text_of(name) for name in TEXTS})
