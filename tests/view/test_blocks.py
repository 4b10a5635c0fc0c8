import re
import xml.etree.ElementTree as xml

import pytest

from cgraph.errors import bytes_text
from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import Problem, ProblemOperand, UsageInterval, problem_of
from cgraph.memory.strategies.greedy_by_size import greedy_by_size
from cgraph.memory.strategies.greedy_by_size_blocks import greedy_by_size_blocks
from cgraph.memory.strategies.one_each import one_each
from cgraph.record import replace
from cgraph.view.blocks import (
    BOTTOM,
    HEIGHT,
    LEFT,
    LETTER,
    LINE,
    RIGHT,
    TICKS,
    TOP,
    WIDTH,
    _round_step,
    about,
    fit_name,
    label,
    memory_svg,
    plan_svg,
)
from cgraph.view.boxes import WORKSPACE, Box, blocks_of, memory_of_plan, memory_with
from tests.support.problems import random_problem
from tests.support.tolerance import near

SVG = "{http://www.w3.org/2000/svg}"


def parts(svg, kind):
    """The elements of the picture with this class."""
    return [x for x in xml.fromstring(svg).iter() if kind in x.get("class", "").split()]


def rectangles(problem, strategy=greedy_by_size):
    return parts(plan_svg(problem, strategy(problem)), "operand")


def title(element):
    return element.find(f"{SVG}title").text


def test_every_operand_with_bytes_is_a_rectangle_that_tells_about_itself():
    problem = Problem(
        (ProblemOperand(4096, UsageInterval(2, 5), "conv <1> & relu"), ProblemOperand(0, UsageInterval(2, 5), "none"))
    )
    (rectangle,) = rectangles(problem)
    assert title(rectangle) == "conv <1> & relu\n4 KiB at [0, 4096)\nsteps 2..5"


def test_rectangles_are_as_wide_as_usage_and_as_high_as_bytes():
    narrow, wide = rectangles(problem_of([(100, 0, 0), (300, 1, 3)]))
    assert float(wide.get("width")) == near(3 * float(narrow.get("width")), "pixels of a drawing")
    assert float(wide.get("height")) == near(3 * float(narrow.get("height")), "pixels of a drawing")


@pytest.mark.parametrize("seed", range(5))
def test_rectangles_of_a_sound_plan_do_not_overlap(seed):
    boxes = [[float(x.get(key)) for key in ("x", "y", "width", "height")] for x in rectangles(random_problem(seed, 40))]
    assert len(boxes) == 40
    for i, (x, y, width, height) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[:i]:
            across = min(x + width, x2 + width2) - max(x, x2)
            upwards = min(y + height, y2 + height2) - max(y, y2)
            assert min(across, upwards) < 0.05


@pytest.mark.parametrize(
    ("rows", "titles", "size"),
    [
        ([], [], "0 values in 0 B (0 bytes)"),
        ([(0, 0, 0)], [], "1 values in 0 B (0 bytes)"),
        (
            [(2**60, 10**17, 10**18)],
            [f"1073741824 GiB at [0, {2**60})\nsteps {10**17}..{10**18}"],
            f"1 values in 1073741824 GiB ({2**60} bytes)",
        ),
        ([(1, 7, 7)], ["1 B at [0, 1)\nsteps 7..7"], "1 values in 1 B (1 bytes)"),
    ],
)
def test_extreme_plans_are_drawn(rows, titles, size):
    problem = problem_of(rows)
    text = plan_svg(problem, greedy_by_size(problem))
    boxes = parts(text, "operand")
    assert [title(x).split("\n", 1)[1] for x in boxes] == titles and size in text
    for box in boxes:
        x, y, width, height = (float(box.get(key)) for key in ("x", "y", "width", "height"))
        assert LEFT <= x < x + width <= WIDTH - RIGHT and TOP <= y < y + height <= HEIGHT - BOTTOM


@pytest.mark.parametrize("name", ["a\x00b\x1b</title><script>", "]]>&amp;\"'", "\ud800\u202e\ufffe", "x" * 10**6])
def test_names_cannot_break_the_picture(name):
    problem = problem_of([(8, 0, 1)])
    problem = replace(problem, operands=(replace(problem.operands[0], name=name),))
    text = plan_svg(problem, greedy_by_size(problem), title=name)
    (rectangle,) = parts(text, "operand")
    assert len(title(rectangle)) < 300
    assert not list(xml.fromstring(text).iter(f"{SVG}script"))
    assert text.encode().decode() == text


def test_the_summary_and_the_bound_are_those_of_the_plan():
    problem = random_problem(3, 40)
    plan = one_each(problem)
    text = plan_svg(problem, plan)
    assert f"40 values in {bytes_text(plan.nbytes)} ({plan.nbytes} bytes)" in text
    assert f"{plan.nbytes / lower_bound(problem):.4f} × the lower bound" in text
    most, peak = bytes_text(lower_bound(problem)), memory_of_plan(problem, plan).peak
    assert f"lower bound {most}; most in use {most}, at step {peak}" in text


def test_bytes_in_use_are_the_sums_of_the_boxes_at_every_step():
    problem = random_problem(2, 60)
    memory = memory_of_plan(problem, greedy_by_size(problem))
    for step, nbytes in zip(memory.changes, memory.in_use):
        assert nbytes == sum(memory.boxes[i].nbytes for i in memory.alive(step))
    assert sum(memory.boxes[i].nbytes for i in memory.alive(memory.peak)) == memory.peak_nbytes


def test_operands_of_one_block_have_one_colour():
    problem = random_problem(0, 12)
    plan = greedy_by_size_blocks(problem)
    blocks = blocks_of(problem, plan)
    assert len(set(blocks)) == len(set(plan.offsets)) > 1
    for at, block in zip(plan.offsets, blocks):
        assert block == blocks[plan.offsets.index(at)]


def test_operands_that_share_some_bytes_only_have_colours_of_their_own():
    problem = problem_of([(100, 0, 1), (60, 2, 3), (60, 2, 3)])
    plan = greedy_by_size(problem)
    assert plan.nbytes == 120
    assert blocks_of(problem, plan) == [0, 1, 2]


def test_overwriting_views_workspaces_and_shared_bytes_are_visible():
    problem = problem_of([(64, 0, 3), (64, 1, 1)])
    plan = greedy_by_size(problem)
    boxes = [
        Box("conv", "float32[16]", "a.py:1", 64, 0, 0, 1, 0, 0, views=("reshape float32[4,4] at a.py:2",)),
        Box("relu", "float32[16]", "a.py:3", 64, 0, 1, 3, 0, 0, over=0),
        Box("conv workspace", "", "a.py:1", 64, 64, 1, 1, 1, 1, kind=WORKSPACE),
    ]
    text = memory_svg(memory_with(problem, plan, boxes, [Box("conv", "", "", 64, 0, 0, 3, 0, 0)]))
    assert [title(x).split("\n")[0] for x in parts(text, "operand")] == ["conv float32[16]", "relu float32[16]"]
    assert [title(x).split("\n")[-1] for x in parts(text, "viewed")] == ["view: reshape float32[4,4] at a.py:2"]
    assert "takes the bytes of conv (step 0)" in title(parts(text, "operand")[1])
    assert len(parts(text, "over")) == len(parts(text, "reserved")) == len(parts(text, "workspace")) == 1


def test_a_plan_of_four_thousand_values_is_a_small_file():
    problem = random_problem(1, 4000)
    text = plan_svg(problem, greedy_by_size(problem))
    assert len(parts(text, "operand")) == 4000
    assert len(text) < 1_200_000


@pytest.mark.parametrize(
    ("letters", "shown"), [(20, "stage/conv_1/relu"), (16, "conv_1/relu"), (4, "relu"), (3, ""), (0, "")]
)
def test_names_are_cut_to_the_room_there_is(letters, shown):
    assert fit_name("stage/conv_1/relu", letters) == shown


@pytest.mark.parametrize(
    ("letters", "shown"),
    [(21, "parts.4.conv (stream)"), (20, "parts.4.conv"), (11, "4.conv"), (5, "conv"), (3, "")],
)
def test_the_kind_goes_first_then_the_beginning_of_the_path(letters, shown):
    assert fit_name("parts.4.conv (stream)", letters) == shown


def test_of_a_path_whose_parts_are_all_too_long_the_last_one_is_cut():
    assert fit_name("first_part/second_part/last_of_all (relu)", 9) == "last_of_…"
    assert fit_name("first_part.second_part", 10) == "second_pa…"


def test_a_workspace_is_named_without_its_kind():
    assert fit_name("parts.4 (winograd4) workspace", 18) == "parts.4 workspace"


def test_a_number_alone_is_not_a_name():
    assert fit_name("parts.4 (relu)", 3) == "" and fit_name("parts.12 (relu)", 7) == ""


@pytest.mark.parametrize(
    ("width", "height", "shown", "upright"),
    [
        (6 + 16 * LETTER, LINE, "stage/conv_1/relu"[6:], False),
        (6 + 17 * LETTER, LINE, "stage/conv_1/relu", False),
        (500, 500, "stage/conv_1/relu", False),
        (500, LINE - 1, "", False),
        (LINE, 6 + 17 * LETTER, "stage/conv_1/relu", True),
        (LINE, 6 + 11 * LETTER, "conv_1/relu", True),
        (LINE, 6 + 4 * LETTER, "relu", True),
        (LINE - 1, 500, "", True),
        (LINE, LINE, "", True),
    ],
)
def test_a_name_stands_across_a_rectangle_or_upright_as_far_as_there_is_room(width, height, shown, upright):
    text = label("stage/conv_1/relu", 100, 200, width + 0.01, height + 0.01)
    assert re.sub("<[^>]*>", "", text) == shown
    if shown:
        place = f'transform="translate(109 {height + 196.01:.6g}) rotate(-90)"' if upright else 'x="104" y="211"'
        assert place in text and text.count("<text") == 1


def level_at(x, path):
    """The height of a path of ``H`` and ``V`` steps at a place between two of them."""
    height = float(re.match(r"M[\d.]+ ([\d.]+)", path)[1])
    for across, down in re.findall(r"H([-\d.e+]+)V([-\d.e+]+)", path):
        if float(across) > x:
            break
        height = float(down)
    return height


@pytest.mark.parametrize("seed", range(4))
def test_the_curve_has_the_bytes_in_use_at_each_step(seed):
    """Summed up from the operands, at a place within each step; the path is one level after another."""
    problem = random_problem(seed, 12)
    svg = plan_svg(problem, greedy_by_size(problem))
    (curve,) = parts(svg, "used")
    assert re.fullmatch(r"M[\d.]+ [\d.]+(H[\d.]+V[\d.]+)+", curve.get("d"))
    boxes, steps = parts(svg, "operand"), range(int(problem.first.min()), int(problem.last.max()) + 1)
    left, right = (f(float(x.get("x")) + (f is max) * float(x.get("width")) for x in boxes) for f in (min, max))
    wide = (right - left) / len(steps)
    used = [int(problem.nbytes[(problem.first <= t) & (t <= problem.last)].sum()) for t in steps]
    base = level_at(left - 1e9, curve.get("d"))
    heights = [base - level_at(left + (i + 0.5) * wide, curve.get("d")) for i in range(len(steps))]
    scale = max(heights) / max(used)
    assert heights == near([n * scale for n in used], "pixels of a drawing")


@pytest.mark.parametrize(("steps", "base"), [((1, 2, 5, 10), 10), ((1, 2, 4, 8, 16), 16)])
def test_ticks_are_the_smallest_round_numbers_that_are_few_enough(steps, base):
    round_numbers = sorted({step * base**k for step in steps for k in range(8)})
    for span in (
        *range(1, 2000),
        *(step * TICKS * base**k + more for step in steps for k in (3, 5) for more in (-1, 0, 1)),
    ):
        want = next(step for step in round_numbers if span <= TICKS * step)
        assert _round_step(span, steps, base) == want, span
    assert _round_step(700, (1, 2, 5, 10)) == 100


@pytest.mark.parametrize(("count", "last"), [(0, "a.py:1"), (1, "view: v0"), (8, "view: v7"), (9, "and 1 more views")])
def test_at_most_eight_views_of_a_value_are_told(count, last):
    box = Box("x", "float32[8]", "a.py:1", 32, 0, 2, 5, 0, 0, views=tuple(f"v{i}" for i in range(count)))
    lines = about(box, (box,)).splitlines()
    assert lines[-1] == last and len(lines) == 4 + min(count, 9)


@pytest.mark.parametrize(("link", "text"), [("over", "takes the bytes of"), ("inside", "made inside")])
@pytest.mark.parametrize("at", [0, 1])
def test_a_value_names_the_one_whose_bytes_it_has_and_its_first_step(link, text, at):
    boxes = Box("a", "", "", 8, 0, 3, 5, 0, 0), Box("b", "", "", 8, 0, 4, 6, 0, 0)
    box = Box("c", "", "", 8, 0, 7, 9, 0, 0, **{link: at})
    assert about(box, boxes).splitlines() == [
        "c", "8 B at [0, 8)", "steps 7..9", f"{text} {boxes[at].name} (step {boxes[at].first})"
    ]  # fmt: skip


@pytest.mark.parametrize(("letters", "shown"), [(7, ""), (8, "convolu…"), (9, "convolut…"), (16, "convolution_name")])
def test_a_name_is_shortened_to_eight_letters_or_more(letters, shown):
    assert fit_name("convolution_name", letters) == shown


@pytest.mark.parametrize(("steps", "is_marked"), [(150, True), (181, True), (183, False), (300, False)])
def test_a_value_that_takes_over_bytes_is_marked_if_it_is_wider_than_six_pixels(steps, is_marked):
    """The plan is 1092 pixels wide."""
    problem = problem_of([(8, 0, steps - 1)])
    boxes = [Box("a", "", "", 8, 0, 0, steps - 1, 0, 0), Box("b", "", "", 8, 0, 1, 1, 0, 0, over=0)]
    svg = memory_svg(memory_with(problem, greedy_by_size(problem), boxes, []))
    assert len(parts(svg, "over")) == is_marked


@pytest.mark.parametrize(("steps", "nbytes", "is_thin"), [(1, 1000, False), (1, 1, True), (900, 1000, True)])
def test_a_rectangle_that_is_narrow_or_low_has_no_edge(steps, nbytes, is_thin):
    problem = problem_of([(nbytes, 0, 0), (1000, 0, steps - 1)])
    small, _ = parts(plan_svg(problem, greedy_by_size(problem)), "operand")
    assert ("thin" in small.get("class").split()) == is_thin


@pytest.mark.parametrize(
    ("nbytes", "ticks"),
    [
        (10_000, ["0 KiB", "2 KiB", "4 KiB", "6 KiB", "8 KiB"]),
        (1023, ["0 B", "128 B", "256 B", "384 B", "512 B", "640 B", "768 B", "896 B"]),
        (
            1024,
            ["0 KiB", "0.125 KiB", "0.25 KiB", "0.375 KiB", "0.5 KiB", "0.625 KiB", "0.75 KiB", "0.875 KiB", "1 KiB"],
        ),
        (5 << 20, ["0 MiB", "1 MiB", "2 MiB", "3 MiB", "4 MiB", "5 MiB"]),
    ],
)
def test_ticks_upwards_are_powers_of_two_in_the_largest_unit(nbytes, ticks):
    problem = problem_of([(nbytes, 7, 36)])
    svg = plan_svg(problem, greedy_by_size(problem))
    assert re.findall(r">([\d.]+ (?:[KM]i)?B)<", svg) == ticks
    assert re.findall(r'class="middle"[^>]*>(\d+)<', svg) == ["10", "15", "20", "25", "30", "35"]
