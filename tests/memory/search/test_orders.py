"""Orders of a search: ranks by falling measures, the fixed rules, mixtures, and which method comes when."""

import numpy as np
import pytest

from cgraph.memory.problem import problem_of
from cgraph.memory.search.instance import instance_of
from cgraph.memory.search.orders import METHODS, falling, measures_of, mixture, orders
from cgraph.memory.search.state import FEWEST, LOWEST, TIGHTEST
from tests.support.tolerance import assert_near

# sections: {0, 1}, {0, 2}, {0, 3}: totals 12, 7, 5
ROWS = [(4, 0, 9), (8, 0, 1), (3, 3, 4), (1, 6, 6)]
INSTANCE = instance_of(problem_of(ROWS), np.arange(4), 1)


def test_ranks_fall_by_the_first_measure_then_by_the_next_then_by_position():
    assert falling(np.array([1, 3, 2])).tolist() == [2, 0, 1]
    assert falling(np.array([1, 1, 2, 1]), np.array([5, 7, 0, 5])).tolist() == [2, 1, 0, 3]
    assert falling(np.zeros(0)).tolist() == []


def test_measures_are_sections_bytes_their_product_and_the_largest_total_met():
    measures = {name: x.tolist() for name, x in measures_of(INSTANCE).items()}
    assert measures == {
        "length": [3, 1, 1, 1], "size": [4, 8, 3, 1], "area": [12, 8, 3, 1], "total": [12, 12, 7, 5],
    }  # fmt: skip


def test_an_area_beyond_int64_is_still_the_larger():
    rows = [(2**60, 0, 19), *((1, i, i) for i in range(0, 20, 2)), (2**60, 20, 20)]
    measures = measures_of(instance_of(problem_of(rows), np.arange(len(rows)), 1))
    assert measures["length"][0] == 10 and measures["area"][0] == 10 * 2.0**60 and measures["area"].argmax() == 0


def test_the_four_rules_come_first_and_in_every_round():
    ranks = [x.rank.tolist() for x in orders(INSTANCE, 4, 0)]
    assert ranks == [[0, 1, 2, 3]] * 4
    rows = [(8, 0, 1), (3, 0, 3), (2, 3, 5), (2, 5, 5)]  # sections {0, 1}, {1, 2}, {2, 3}
    instance = instance_of(problem_of(rows), np.arange(4), 1)
    measures = {name: x.tolist() for name, x in measures_of(instance).items()}
    assert measures["length"] == [1, 2, 2, 1] and measures["total"] == [11, 11, 5, 4]
    assert measures["area"] == [8, 6, 4, 2]
    want = [[1, 0, 2, 3], [0, 1, 2, 3], [2, 0, 1, 3], [0, 1, 2, 3]]
    for turn in (0, 3):
        assert [x.rank.tolist() for x in orders(instance, 4, turn)] == want


def test_methods_rotate_by_one_from_round_to_round():
    assert METHODS == ((LOWEST, False), (FEWEST, False), (TIGHTEST, False), (FEWEST, True), (TIGHTEST, True))
    for turn in (0, 1, 7):
        found = [(x.method, x.learned) for x in orders(INSTANCE, 6, turn)]
        assert found == [METHODS[(turn + k) % 5] for k in range(6)]
    assert list(orders(INSTANCE, 0, 0)) == []


def test_mixtures_are_the_same_each_time_and_others_in_another_round():
    instance = instance_of(problem_of([(1 + i * 7 % 31, i, i + i * 5 % 17) for i in range(30)]), np.arange(30), 1)

    def ranks(turn):
        return np.array([x.rank for x in orders(instance, 10, turn)])

    first, again, other = ranks(1), ranks(1), ranks(2)
    assert (first == again).all() and (np.sort(first, 1) == np.arange(30)).all()
    assert (first[:4] == other[:4]).all() and len(np.unique(np.concatenate([first[4:], other[4:]]), axis=0)) == 12


@pytest.mark.parametrize("seed", [0, 1])
def test_a_mixture_is_the_logarithm_of_a_product_of_powers(seed):
    length, size, total = np.random.default_rng(seed).uniform(-0.3, 1.7, 3)
    got = np.exp(mixture(measures_of(INSTANCE), np.random.default_rng(seed)))
    want = [a**length * b**size * c ** (3 * total) for a, b, c in [(3, 4, 12), (1, 8, 12), (1, 3, 7), (1, 1, 5)]]
    assert_near(got, want, "float64 formulas")
