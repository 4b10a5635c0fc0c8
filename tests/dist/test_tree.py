"""The tree of shards: which sums are neighbours, and how many shards each member has."""

import numpy as np
import pytest

from cgraph.dist.sums import is_even
from cgraph.dist.tree import add_neighbours, are_neighbours, check_shards, deal_shards, parts_of
from cgraph.errors import InputError


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        ([0, 0, 0], [2, 3, 3]),
        ([1, 1.2, 1, 1], [2, 2, 2, 2]),
        ([1, 1, 1, 9], [3, 2, 2, 1]),
        ([4, 1], [1, 7]),
        ([1] * 8, [1] * 8),
    ],
)
def test_slow_members_get_fewer_shards(seconds, want):
    assert deal_shards(8, seconds) == want


def test_parts_are_whole_subtrees():
    assert parts_of(0, 8) == [(0, 8)]
    assert parts_of(3, 4) == [(3, 1), (4, 2), (6, 1)]
    assert is_even([2, 2]) and not is_even([3, 1]) and not is_even([2, 2, 2])


@pytest.mark.parametrize(("shards", "rows"), [(3, 9), (0, 4), (8, 12)])
def test_shards_are_a_power_of_two_and_equal(shards, rows):
    with pytest.raises(InputError, match="shards"):
        check_shards(shards, rows)


def test_neighbours_are_halves_of_a_larger_part():
    assert are_neighbours((0, 1), (1, 1)) and are_neighbours((4, 2), (6, 2)) and are_neighbours((8, 4), (12, 4))
    assert not are_neighbours((1, 1), (2, 1)), "they are of two pairs"
    assert (
        not are_neighbours((0, 1), (2, 1)) and not are_neighbours((0, 2), (2, 1)) and not are_neighbours((2, 2), (4, 2))
    )


def test_sums_go_into_the_left_arrays_in_the_order_of_the_tree():
    x = [np.array([n], "f4") for n in (1, 2**24, 1, 1)]
    ((part, total),) = add_neighbours(((i, 1), a.copy()) for i, a in enumerate(x))
    assert part == (0, 4) and total[0] == np.float32((x[0] + x[1]) + (x[2] + x[3]))[0] == 2**24 + 2
    left = np.array([1.0], "f4")
    ((_, total),) = add_neighbours([((2, 1), left), ((3, 1), np.array([5.0], "f4"))])
    assert total is left and left[0] == 6
    assert add_neighbours([]) == [] and [p for p, _ in add_neighbours([((1, 1), left), ((2, 2), left)])] == [
        (1, 1),
        (2, 2),
    ]


def test_every_shard_is_dealt_and_nobody_is_left_without():
    for seconds in ([1, 1000, 1000], [5, 1, 1, 1], [0, 9], [1.0, 1.31], [1.0, 1.3], [3]):
        counts = deal_shards(8, seconds)
        assert sum(counts) == 8 and min(counts) >= 1 and len(counts) == len(seconds)
    assert deal_shards(8, [1.0, 1.3]) == [4, 4] and deal_shards(16, [1.0, 1.31]) == [9, 7]


@pytest.mark.parametrize(("shards", "following"), [(3, 4), (5, 8), (6, 8), (12, 16), (0, 2), (-3, 2)])
def test_a_refusal_names_the_next_power_of_two(shards, following):
    with pytest.raises(InputError, match=f"^{shards} shards; .* Pass shards={following}$"):
        check_shards(shards, 12)


def test_a_batch_is_cut_into_equal_shards():
    with pytest.raises(InputError, match="12 samples cannot be cut into 8 equal shards"):
        check_shards(8, 12)
    check_shards(1, 7)
    check_shards(8, 0)


@pytest.mark.parametrize(
    ("seconds", "want"),
    [([0, 9], [4, 4]), ([9, 0], [4, 4]), ([0, 1, 9], [2, 3, 3]), ([2, 2, 4], [4, 3, 1]), ([9, 1, 1], [1, 4, 3])],
)
def test_a_member_of_unknown_time_counts_as_the_others_and_of_equal_ones_the_first_has_more(seconds, want):
    assert deal_shards(8, seconds) == want
