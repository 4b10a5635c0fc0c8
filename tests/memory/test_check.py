import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.errors import PlanError
from cgraph.memory.check import check_plan
from cgraph.memory.problem import Plan, Problem, ProblemOperand, Tie, UsageInterval, problem_of
from cgraph.record import replace
from tests.support.problems import problems


def test_an_overlap_is_refused_with_names_bytes_and_step():
    conv1 = ProblemOperand(4096, UsageInterval(0, 2), "conv1")
    conv2 = ProblemOperand(4096, UsageInterval(2, 3), "conv2")
    with pytest.raises(PlanError) as refused:
        check_plan(Problem((conv1, conv2)), Plan((0, 0), 4096))
    assert str(refused.value) == ("conv1 [0, 4096) and conv2 [0, 4096) share bytes, but both are in use at step 2")


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        (Plan((0,), 64), "1 offsets for 2 operands"),
        (Plan((0, 64, 128), 192), "3 offsets for 2 operands"),
        (Plan((-64, 0), 64), "begins before the arena"),
        (Plan((0, 32), 96), r"operand 1 \[32, 96\) is not aligned to 64 bytes"),
        (Plan((0, 64), 127), r"operand 1 \[64, 128\) leaves the arena of 127 bytes"),
        (Plan((0, 0), -1), "the arena has -1 bytes"),
    ],
)
def test_a_plan_outside_its_arena_is_refused(plan, complaint):
    with pytest.raises(PlanError, match=complaint):
        check_plan(problem_of([(64, 0, 1), (64, 1, 2)], alignment=64), plan)


@pytest.mark.parametrize("nbytes", [0, 64])
@pytest.mark.parametrize(
    ("at", "complaint"),
    [(-64, "begins before the arena"), (32, "is not aligned to 64"), (192, "leaves the arena of 128")],
)
def test_each_operand_lies_in_the_arena_even_one_of_no_bytes(nbytes, at, complaint):
    """Results without elements have addresses, too, which kernels may align."""
    problem = problem_of([(64, 0, 1), (nbytes, 1, 2)], alignment=64)
    check_plan(problem, Plan((0, 64), 128))
    with pytest.raises(PlanError, match=complaint):
        check_plan(problem, Plan((0, at), 128))


def test_operands_may_share_when_never_in_use_together():
    check_plan(problem_of([(8, 0, 1), (8, 2, 3)]), Plan((0, 0), 8))


def test_an_operand_of_no_bytes_shares_nothing():
    check_plan(problem_of([(8, 0, 3), (0, 1, 2), (0, 1, 2)]), Plan((0, 4, 4), 8))


@given(problem=problems(), data=st.data())
def test_checker_agrees_with_comparing_all_pairs(problem, data):
    unit = problem.alignment
    count = len(problem.operands)
    places = data.draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    offsets = [unit * place for place in places]
    plan = Plan(tuple(offsets), 2**50)
    if _some_pair_collides(problem, offsets):
        with pytest.raises(PlanError, match="share bytes"):
            check_plan(problem, plan)
    else:
        check_plan(problem, plan)


def _some_pair_collides(problem, offsets):
    ends = [at + x.nbytes for x, at in zip(problem.operands, offsets)]
    return any(
        x.interval.meets(y.interval) and max(offsets[i], offsets[k]) < min(ends[i], ends[k])
        for i, x in enumerate(problem.operands)
        for k, y in enumerate(problem.operands)
        if i < k
    )


def test_impossible_problems_are_refused():
    with pytest.raises(PlanError, match="first <= last"):
        problem_of([(1, 2, 1)])
    with pytest.raises(PlanError, match="negative size"):
        problem_of([(-1, 0, 0)])
    with pytest.raises(PlanError, match="at least 1 byte"):
        problem_of([], alignment=0)
    with pytest.raises(PlanError, match="together"):
        _ = problem_of([(2**62, 0, 0), (1, 5, 5)]).nbytes


@pytest.mark.parametrize("alignment", [1, 3, 64, 256])
def test_offsets_are_multiples_of_any_alignment(alignment):
    problem = problem_of([(5, 0, 1)], alignment)
    check_plan(problem, Plan((alignment,), 600))
    if alignment > 1:
        with pytest.raises(PlanError, match=f"not aligned to {alignment} bytes"):
            check_plan(problem, Plan((alignment // 2,), 600))


def test_each_group_of_tied_operands_keeps_its_distances():
    ties = ((Tie(0, 0), Tie(1, 8)), (Tie(2, 4), Tie(3, 0)))
    problem = replace(problem_of([(4, i, i) for i in range(4)]), ties=ties)
    check_plan(problem, Plan((2, 10, 4, 0), 20))
    for offsets in ((2, 11, 4, 0), (2, 10, 3, 0)):
        with pytest.raises(PlanError, match="do not keep their distances"):
            check_plan(problem, Plan(offsets, 20))
