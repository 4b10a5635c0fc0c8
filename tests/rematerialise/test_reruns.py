"""Orders with reruns, by hand: what is in use at each place, runs that nobody needs, nodes that may run again."""

from cgraph.rematerialise.reruns import OrderIndex, Reruns, rerun_positions
from cgraph.schedule.dag import Dag


def chain(until: tuple[int, ...] = (5, 5, 5, 5, 4), firm: tuple[int, ...] = (), **fields) -> Reruns:
    """0 → 1 → 2 → 3 → 4, where 4 reads 0 as well and stays; values of 10, 20, 30, 40 and 5 bytes."""
    dag = Dag((10, 20, 30, 40, 5), ((), (0,), (1,), (2,), (3, 0)), frozenset((4,)), **fields)
    return Reruns(dag, (1, 2, 4, 8, 16), until, frozenset(firm))


PLAIN, AGAIN = [0, 1, 2, 3, 4], [0, 1, 2, 3, 0, 4]


def test_places_of_reruns_are_those_behind_the_first():
    assert rerun_positions([0, 1, 0, 2, 0, 1]) == [2, 4, 5] and rerun_positions([]) == [] == rerun_positions([3, 1, 2])


def test_a_value_is_in_use_up_to_the_last_read_before_its_next_run():
    problem = chain()
    assert problem.breadths(PLAIN) == [10, 30, 60, 80, 55] and problem.peak(PLAIN) == 80
    assert problem.breadths(AGAIN) == [10, 30, 50, 70, 50, 55] and problem.peak(AGAIN) == 70
    assert chain(scratch=(0, 0, 7, 0, 9)).breadths(PLAIN) == [10, 30, 67, 80, 64]
    assert chain(takes=((), (), (1,), (2,), (3,))).breadths(PLAIN) == [10, 30, 40, 50, 50]
    assert problem.breadths([]) == [] and problem.peak([]) == 0


def test_a_value_that_stays_is_in_use_to_the_end():
    dag = Dag((3, 4, 5), ((), (0,), (1,)), frozenset((0, 2)))
    assert Reruns(dag, (1, 1, 1), (0, 3, 2)).breadths([0, 1, 2]) == [3, 7, 12]


def test_extra_work_is_what_runs_more_than_once():
    problem = chain()
    assert problem.own == 31 and problem.extra(PLAIN) == 0 and problem.extra([*AGAIN, 3]) == 1 + 8


def test_runs_whose_value_nobody_reads_are_left_out_unless_the_first_is_firm():
    problem, firm = chain(), chain(firm=(1,))
    assert problem.living(AGAIN) == AGAIN and problem.living([0, 1, 1, 2, 3, 4]) == PLAIN
    assert problem.living([0, 1, 2, 3, 4, 3]) == PLAIN, "its readers have run"
    assert firm.living([0, 1, 1, 2, 3, 4]) == [0, 1, 1, 2, 3, 4], "the first run may not be put off"
    assert firm.living([0, 1, 2, 1, 3, 4]) == PLAIN, "a rerun may be left out"
    assert problem.living([0, 1, 0, 1, 2, 3, 0, 4]) == [0, 1, 2, 3, 0, 4], "also what only such runs read"


def test_a_node_may_run_again_before_its_stop():
    index = OrderIndex(chain(until=(3, 5, 2, 5, 4)), PLAIN)
    assert [index.may_run(0, place) for place in range(5)] == [True, True, True, True, False]
    assert all(index.may_run(1, place) for place in range(5))
    assert not any(index.may_run(i, place) for i in (2, 4) for place in range(5))


def test_values_wait_between_reads_without_a_run():
    plain, again = OrderIndex(chain(), PLAIN), OrderIndex(chain(), AGAIN)
    assert (plain.runs[0], plain.reads[0]) == ([0], [1, 4]) and (again.runs[0], again.reads[0]) == ([0, 4], [1, 5])
    assert [list(plain.waiting(place)) for place in range(5)] == [[], [], [(0, 4)], [(0, 4)], []]
    assert [list(again.waiting(place)) for place in range(6)] == [[], [], [], [], [(3, 5)], []]


def test_what_else_runs_again_is_what_would_wait_for_it():
    index = OrderIndex(chain(), PLAIN)
    assert index.again([2], 4, 3, 9) == [1, 2], "0 is read at place 4 in any case"
    assert index.again([2], 4, 3, 0) == [2] and index.again([3], 4, 3, 9) == [3]
    assert OrderIndex(chain(until=(5, 1, 5, 5, 4)), PLAIN).again([2], 4, 3, 9) == [2], "1 may not run again"
    assert index.beside(4, 3) == [0] and index.beside(4, 0) == []
    assert OrderIndex(chain(until=(0, 5, 5, 5, 4)), PLAIN).beside(4, 3) == []
    assert not index.waits(4, 4, 3), "it stays"


def test_reads_are_followed_as_deep_as_asked_and_no_deeper():
    """0 → 1 → … → 6 → 8, where 7 runs between: of each only the next reads it."""
    dag = Dag((1,) * 9, ((), (0,), (1,), (2,), (3,), (4,), (5,), (), (6, 7)), frozenset((8,)))
    index = OrderIndex(Reruns(dag, (1,) * 9, (9,) * 9), list(range(9)))
    for depth in range(9):
        assert index.again([6], 8, 7, depth) == list(range(max(6 - depth, 0), 7)), depth
        assert index.again([6, 3], 8, 7, depth) == sorted({*range(max(6 - depth, 0), 7), *range(max(3 - depth, 0), 4)})
