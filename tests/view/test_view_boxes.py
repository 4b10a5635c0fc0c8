"""Boxes of a memory picture: blocks, the peak, what is in use at a step, and how long a box is drawn."""

import numpy as np
import pytest

from cgraph.memory.problem import Plan, Problem, ProblemOperand, UsageInterval
from cgraph.view.boxes import Box, blocks_of, last_drawn_steps, memory_of_plan, memory_with


def problem_of(*rows, alignment=1):
    """A problem of operands (bytes, first step, last step)."""
    return Problem(tuple(ProblemOperand(n, UsageInterval(a, b)) for n, a, b in rows), alignment)


def box(first, last, nbytes=8, **fields):
    return Box("x", "", "", nbytes, 0, first, last, 0, 0, **fields)


@pytest.mark.parametrize(
    ("sizes", "offsets", "want"),
    [
        ((8, 4, 8), (0, 8, 0), [0, 1, 0]),
        ((4, 8, 4), (8, 0, 8), [1, 0, 1]),
        ((8, 0, 8), (0, 4, 8), [0, 2, 1]),
        ((8, 0, 8), (0, 8, 8), [0, 2, 1]),
        ((8, 4), (0, 4), [0, 1]),
        ((4, 8, 4), (0, 0, 8), [0, 0, 1]),
        ((4, 9, 4), (0, 0, 8), [0, 1, 2]),
        ((), (), []),
    ],
)
def test_operands_that_begin_together_are_one_block_unless_blocks_overlap(sizes, offsets, want):
    """A value without bytes has the number behind the last block."""
    problem = problem_of(*((n, 0, 0) for n in sizes))
    assert blocks_of(problem, Plan(tuple(offsets), 99)) == want


def test_operands_are_boxes_with_their_names_bytes_and_steps():
    operands = ProblemOperand(8, UsageInterval(0, 2), "sum"), ProblemOperand(4, UsageInterval(1, 3))
    memory = memory_of_plan(Problem(operands, 1), Plan((4, 0), 12, "greedy", True))
    assert [(x.name, x.nbytes, x.offset, x.first, x.last, x.operand, x.block) for x in memory.boxes] == [
        ("sum", 8, 4, 0, 2, 0, 1),
        ("operand 1", 4, 0, 1, 3, 1, 0),
    ]
    assert (memory.nbytes, memory.strategy, memory.proved, memory.reserved) == (12, "greedy", True, ())
    assert memory_of_plan(Problem(operands, 1), Plan((4, 0), 12)).strategy == "plan"


def test_the_peak_is_the_first_step_with_the_most_bytes():
    """Of steps 2 to 9 there are 8, 12, 4, 4, 12, 12, 4, 4 bytes in use."""
    memory = memory_of_plan(problem_of((8, 2, 3), (4, 3, 9), (8, 6, 7)), Plan((0, 8, 0), 12))
    assert (memory.peak, memory.peak_nbytes, memory.lower_bound) == (3, 12, 12)
    assert (memory.first, memory.last) == (2, 9)
    assert memory.changes.tolist() == [2, 3, 4, 6, 8, 10] and memory.in_use.tolist() == [8, 12, 4, 12, 4, 0]
    assert memory.ratio == 1.0


def test_a_bound_of_the_caller_replaces_that_of_the_problem():
    problem = problem_of((8, 0, 0))
    memory = memory_with(problem, Plan((0,), 12), [box(0, 0)], [box(0, 5)], 6)
    assert (memory.lower_bound, memory.peak_nbytes, memory.ratio) == (6, 8, 2.0)
    assert len(memory.boxes) == len(memory.reserved) == 1 and memory.reserved[0].last == 5
    assert memory_with(problem, Plan((0,), 12), [], [], 0).ratio == 1.0


def test_nothing_at_all_is_a_picture_of_no_steps():
    memory = memory_of_plan(problem_of(), Plan((), 0))
    assert (memory.boxes, memory.nbytes, memory.peak, memory.peak_nbytes) == ((), 0, 0, 0)
    assert (memory.first, memory.last, memory.ratio) == (0, 0, 1.0) and memory.alive(0) == []


def test_boxes_in_use_at_a_step_come_by_size_and_then_in_order():
    boxes = [box(0, 3, 4), box(1, 2, 8), box(3, 5, 4), box(2, 3, 0), box(3, 3, 8)]
    memory = memory_with(problem_of((8, 0, 5)), Plan((0,), 8), boxes, [])
    assert [memory.alive(t) for t in range(7)] == [[0], [1, 0], [1, 0], [4, 0, 2], [2], [2], []]


def test_a_box_is_drawn_until_another_takes_over_its_bytes():
    boxes = [box(0, 9), box(4, 9, over=0), box(7, 8, over=1)]
    assert last_drawn_steps(boxes) == [3, 6, 8]
    assert last_drawn_steps([box(2, 9), box(2, 9, over=0)]) == [2, 9]
    several = [box(7, 9, over=1), box(0, 9), box(4, 9, over=1), box(6, 9, over=1)]
    assert last_drawn_steps(several) == [9, 3, 9, 9]  # the first of them


def test_a_box_inside_another_is_drawn_until_that_begins():
    boxes = [box(0, 9), box(1, 9, inside=2), box(5, 9)]
    assert last_drawn_steps(boxes) == [9, 4, 9]
    assert last_drawn_steps([box(5, 9, inside=1), box(3, 9)]) == [5, 9]
    assert last_drawn_steps([]) == []


def test_sizes_in_use_are_rounded_to_the_alignment():
    memory = memory_of_plan(problem_of((5, 0, 1), (64, 1, 1), alignment=64), Plan((0, 64), 128))
    assert memory.in_use.tolist() == [64, 128, 0] and memory.boxes[0].nbytes == 5
    np.testing.assert_array_equal(memory.changes, [0, 1, 2])
