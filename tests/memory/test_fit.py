"""Sizes of blocks for operands: as trying every choice has it, and the limits of the search."""

from itertools import permutations
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.memory.fit import Limit, OutOfNodesError, choose_sizes

FOREVER = float("inf")


def fits(sizes: list[int], rows: list[tuple[int, int, int]]) -> bool:
    """Try every way to hand out the blocks in running order: equal blocks are interchangeable."""

    def place(i: int, busy: tuple[int, ...]) -> bool:
        if i == len(rows):
            return True
        first, last, nbytes = rows[i]
        free = [b for b, until in enumerate(busy) if until < first and sizes[b] >= nbytes]
        return any(place(i + 1, (*busy[:b], last, *busy[b + 1 :])) for b in free)

    return place(0, (-1,) * len(sizes))


@given(
    sizes=st.lists(st.integers(1, 4), max_size=4),
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 4)), max_size=6),
)
def test_sizes_are_chosen_exactly_where_the_operands_fit(sizes, rows):
    rows = sorted((first, first + length, nbytes) for first, length, nbytes in rows)
    choice = choose_sizes(sizes, rows, Limit(10**6, FOREVER))
    assert (choice is not None) == fits(sizes, rows)
    if choice is None:
        return
    assert all(size >= nbytes and size in sizes for size, (_, _, nbytes) in zip(choice, rows, strict=True))
    for step in range(10):
        used = [size for size, (first, last, _) in zip(choice, rows) if first <= step <= last]
        assert all(used.count(size) <= sizes.count(size) for size in used)


def test_a_block_is_free_from_the_step_after_its_operand_on():
    assert choose_sizes([4], [(0, 1, 4), (2, 2, 3)], Limit(9, FOREVER)) == [4, 4]
    assert choose_sizes([4], [(0, 2, 4), (2, 2, 3)], Limit(9, FOREVER)) is None
    assert choose_sizes([4, 2], [(0, 2, 2), (1, 2, 4)], Limit(9, FOREVER)) == [2, 4]
    assert choose_sizes([], [], Limit(0, FOREVER)) == []


@pytest.mark.parametrize("order", list(permutations([1, 2, 3])))
def test_sizes_may_be_listed_in_any_order(order):
    assert choose_sizes(list(order), [(0, 9, 3), (0, 9, 2), (0, 9, 1)], Limit(99, FOREVER)) == [3, 2, 1]


def test_the_last_node_of_a_limit_may_be_visited_and_time_ends_it_too():
    limit = Limit(3, FOREVER)
    limit.take(3)
    assert limit.nodes == 0
    with pytest.raises(OutOfNodesError):
        limit.take(1)
    with pytest.raises(OutOfNodesError):
        Limit(9, monotonic() - 1).take(1)
    rows = [(0, 0, 1), (1, 1, 1)]  # two sizes are looked at for each
    assert choose_sizes([1, 2], rows, Limit(4, FOREVER)) is not None
    with pytest.raises(OutOfNodesError):
        choose_sizes([1, 2], rows, Limit(3, FOREVER))
