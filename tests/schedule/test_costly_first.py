"""The operand that needs most bytes beyond those of its value runs first."""

import random
from itertools import permutations, product

import pytest

from cgraph.schedule.costly_first import costly_first
from cgraph.schedule.dag import Dag, peak
from cgraph.schedule.depth_first import depth_first
from tests.schedule.test_peaks import tree


def test_costly_branches_run_first():
    """Branches of one large and one small value: the large ones should run while few small ones wait."""
    dag = Dag((20, 5, 80, 5, 50, 5, 1), ((), (0,), (), (2,), (), (4,), (1, 3, 5)))
    assert costly_first(dag) == (2, 3, 4, 5, 0, 1, 6)
    assert peak(dag, costly_first(dag)) == 85
    assert peak(dag, depth_first(dag)) == 90


@pytest.mark.parametrize("seed", range(40))
def test_costly_first_is_the_best_of_the_orders_that_compute_each_subtree_of_a_tree_without_a_break(seed):
    rng = random.Random(seed)
    operands = tree(rng, 8)
    scratch = tuple(rng.choice((0, 0, 3, 30)) for _ in operands)
    dag = Dag(tuple(rng.choice((0, 1, 2, 5, 9, 20)) for _ in operands), tuple(operands), frozenset(), scratch)
    assert peak(dag, costly_first(dag)) == min(peak(dag, order) for order in orders_of(operands, len(operands) - 1))


def orders_of(operands, root):
    """Every order of a tree, its operands in any order, each computed to its end before the next begins."""
    for read in permutations(operands[root]):
        for parts in product(*(list(orders_of(operands, x)) for x in read)):
            yield [*(x for part in parts for x in part), root]


def test_equal_operands_and_last_nodes_stay_in_input_order():
    assert costly_first(Dag((3, 3, 1, 3, 1), ((), (), (0, 1), (), (3,)))) == (0, 1, 2, 3, 4)
    assert costly_first(Dag((1, 9, 1, 1), ((), (), (1,), (0,)))) == (1, 2, 0, 3)
