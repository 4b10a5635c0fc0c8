"""What is computed again beside the optimum of Checkmate's mixed-integer program."""

import pytest

from benchmarks.checkmate import GRAPHS, budgets_of, compared
from benchmarks.checkmate_program import optimum
from tests.rematerialise.test_least_work import optimum as shortest
from tests.rematerialise.test_least_work import training
from tests.support.tolerance import near

NEAR = 1.1


@pytest.mark.parametrize("seed", [4, 10])
def test_the_program_finds_what_a_search_through_all_states_finds(seed):
    problem = training(seed)
    high, reached = problem.peak(range(len(problem.cost))), set()
    for most in range(high * 2 // 3, high + 1, high // 8):
        want, found = shortest(problem, most), optimum(problem, most, 60)
        if want is None:
            assert found.found is None
        else:
            assert found.is_proved and found.found == near(want, "solver's optimum")
            reached.add(want)
    assert len(reached) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MLP of 4 layers", "residual block", "mixing with layer norm", "LeNet"])
def test_extra_work_is_near_the_optimum(name):
    step = GRAPHS[name]()
    for found in compared(step, budgets_of(step, 4), 30):
        assert found.ratio <= NEAR
