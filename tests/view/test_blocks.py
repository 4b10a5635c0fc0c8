import xml.etree.ElementTree as xml
from dataclasses import replace

import pytest

from cgraph.memory.problem import Operand, Problem, UsageInterval, problem_of
from cgraph.memory.strategies.greedy_by_size import greedy_by_size
from cgraph.view.blocks import plan_svg
from tests.support.problems import random_problem

SVG = "{http://www.w3.org/2000/svg}"


def rectangles(problem):
    picture = xml.fromstring(plan_svg(problem, greedy_by_size(problem)))
    return [x for x in picture.iter(f"{SVG}rect") if x.get("class") == "operand"]


def test_every_operand_with_bytes_is_a_rectangle_that_tells_about_itself():
    problem = Problem((Operand(4096, UsageInterval(2, 5), "conv <1> & relu"), Operand(0, UsageInterval(2, 5), "none")))
    (rectangle,) = rectangles(problem)
    assert rectangle.find(f"{SVG}title").text == "conv <1> & relu\n4 KiB at [0, 4096)\nsteps 2..5"


def test_rectangles_are_as_wide_as_usage_and_as_high_as_bytes():
    narrow, wide = rectangles(problem_of([(100, 0, 0), (300, 1, 3)]))
    assert float(wide.get("width")) == pytest.approx(3 * float(narrow.get("width")), abs=0.1)
    assert float(wide.get("height")) == pytest.approx(3 * float(narrow.get("height")), abs=0.1)


def test_rectangles_of_a_sound_plan_do_not_overlap():
    boxes = [[float(x.get(key)) for key in ("x", "y", "width", "height")] for x in rectangles(random_problem(3, 40))]
    for i, (x, y, width, height) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[:i]:
            across = min(x + width, x2 + width2) - max(x, x2)
            upwards = min(y + height, y2 + height2) - max(y, y2)
            assert min(across, upwards) < 0.05


@pytest.mark.parametrize("rows", [[], [(0, 0, 0)], [(2**60, 10**17, 10**18)], [(1, 7, 7)]])
def test_extreme_plans_are_drawn(rows):
    problem = problem_of(rows)
    xml.fromstring(plan_svg(problem, greedy_by_size(problem)))


def test_names_cannot_break_the_picture():
    name = "a\x00b\x1b</title><script>"
    problem = problem_of([(8, 0, 1)])
    problem = replace(problem, operands=(replace(problem.operands[0], name=name),))
    (rectangle,) = rectangles(problem)
    assert rectangle.find(f"{SVG}title").text.startswith("a?b?</title><script>")
