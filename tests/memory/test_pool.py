"""Blocks that are taken and returned as a schedule runs: when one is free, which are offered, how they grow."""

from cgraph.memory.pool import run_in_order
from cgraph.memory.problem import problem_of


def offers(rows, choose=lambda free, nbytes: 0):
    """The plan's offsets and bytes, and what was offered to each choice."""
    told = []

    def spy(free, nbytes):
        told.append((tuple(free), nbytes))
        return choose(free, nbytes)

    plan = run_in_order(problem_of(rows), spy, "own")
    assert plan.strategy == "own"
    return plan.offsets, plan.nbytes, told


def test_a_block_is_free_after_the_last_step_of_its_operand_and_not_before():
    assert offers([(4, 0, 2), (4, 2, 3)]) == ((0, 4), 8, [])
    assert offers([(4, 0, 2), (4, 3, 3)]) == ((0, 0), 4, [(((4, 0),), 4)])


def test_operands_come_by_first_step_and_those_of_one_step_in_their_order():
    offsets, nbytes, _ = offers([(1, 5, 5), (2, 0, 9), (4, 0, 9), (8, 0, 9)])
    assert offsets == (14, 0, 2, 6) and nbytes == 15


def test_free_blocks_are_offered_by_size_and_then_by_number():
    rows = [(8, 0, 0), (2, 0, 0), (8, 0, 0), (4, 0, 0), (3, 1, 1)]
    offsets, _, told = offers(rows, lambda free, nbytes: 2)
    assert told == [(((2, 1), (4, 3), (8, 0), (8, 2)), 3)] and offsets[4] == offsets[0]


def test_blocks_that_end_at_different_steps_are_returned_at_theirs():
    rows = [(2, 0, 5), (4, 0, 1), (8, 0, 3), (1, 2, 2), (1, 4, 4), (1, 6, 6)]
    _, _, told = offers(rows)
    assert [free for free, _ in told] == [((4, 1),), ((4, 1), (8, 2)), ((2, 0), (4, 1), (8, 2))]


def test_a_block_grows_to_its_largest_operand_never_shrinks_and_is_offered_with_its_new_size():
    rows = [(2, 0, 0), (9, 1, 1), (3, 2, 2), (1, 3, 9)]
    offsets, nbytes, told = offers(rows)
    assert offsets == (0, 0, 0, 0) and nbytes == 9
    assert told == [(((2, 0),), 9), (((9, 0),), 3), (((9, 0),), 1)]


def test_operands_of_no_bytes_take_no_block_and_sizes_are_multiples_of_the_alignment():
    assert offers([(0, 0, 9), (3, 1, 1), (0, 2, 2), (3, 2, 2)]) == ((0, 0, 0, 0), 3, [(((3, 0),), 3)])
    assert offers([]) == ((), 0, [])
    plan = run_in_order(problem_of([(3, 0, 1), (65, 1, 1)], 64), lambda free, nbytes: 0, "own")
    assert plan.offsets == (0, 64) and plan.nbytes == 192
