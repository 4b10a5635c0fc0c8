"""The lowest line takes the longest operand between its walls, by hand."""

from cgraph.memory.problem import problem_of
from cgraph.memory.strategies.strip_packing import strip_packing


def test_the_longest_operand_comes_first_and_the_earliest_of_equals():
    """At the bottom the longest, above it the two short ones side by side, in columns of starting steps."""
    assert strip_packing(problem_of([(2, 0, 0), (3, 0, 1), (4, 1, 1)])).offsets == (3, 0, 3)
    assert strip_packing(problem_of([(2, 0, 1), (3, 0, 1)])).offsets == (0, 2)


def test_a_line_in_which_nothing_fits_rises_to_its_lower_neighbour():
    """Columns 0, 1 and 2: after the bottom is full, an operand over all columns lies above the highest."""
    plan = strip_packing(problem_of([(5, 0, 0), (1, 1, 1), (3, 2, 2), (2, 0, 2)]))
    assert plan.offsets == (2, 2, 2, 0) and plan.nbytes == 7
    plan = strip_packing(problem_of([(5, 0, 3), (1, 4, 5), (2, 3, 4)]))
    assert plan.offsets == (0, 0, 5) and plan.nbytes == 7 and plan.strategy == "strip_packing"


def test_operands_of_no_bytes_take_no_line():
    plan = strip_packing(problem_of([(0, 0, 9), (4, 1, 1), (0, 2, 2)]))
    assert plan.offsets == (0, 0, 0) and plan.nbytes == 4
    assert strip_packing(problem_of([])).nbytes == 0 == strip_packing(problem_of([(0, 3, 3)])).nbytes
