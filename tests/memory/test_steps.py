"""Steps with their addresses: bytes that nobody reads after a step, and those that go on in a tied operand."""

from types import SimpleNamespace

import cgraph as cg
from cgraph.kernels.kernel import ARENA
from cgraph.memory.problem import Plan, Problem, ProblemOperand, Tie, UsageInterval
from cgraph.memory.steps import bytes_at, continuations, steps_of


def problem(rows: list[tuple[int, int, int]], *ties: tuple[int, ...]) -> Problem:
    operands = tuple(ProblemOperand(nbytes, UsageInterval(first, last)) for nbytes, first, last in rows)
    return Problem(operands, 1, tuple(tuple(Tie(i, 0) for i in tied) for tied in ties))


def test_a_tied_operand_goes_on_in_those_that_begin_right_after_it():
    rows = [(10, 0, 1), (4, 2, 3), (8, 2, 2), (4, 3, 4), (9, 2, 2)]
    plan = Plan((100, 102, 106, 100, 100), 200)
    spans = continuations(problem(rows, (0, 1, 2, 3)), plan)
    assert spans[0] == [(102, 106), (106, 110)]
    assert spans[2] == [] == spans[1] and set(spans) == {0, 1, 2, 3}
    assert continuations(problem(rows), plan) == {}
    beside = continuations(problem(rows[:2], (0, 1)), Plan((100, 110), 200))
    assert beside == {0: [], 1: []}


def test_bytes_of_the_arena_are_views_of_bytes():
    one, other = bytes_at([(8, 3), (64, 1)])
    assert (one.at.base, one.at.offset, one.shape, one.strides, one.dtype) == (ARENA, 8, (3,), (1,), "u1")
    assert (other.at.offset, other.shape) == (64, (1,)) and bytes_at(()) == []


def test_a_step_has_its_views_and_the_bytes_that_end_with_it():
    """Operand 0 goes on in operand 1, operand 2 ends with its step, and operand 3 lasts."""
    x = cg.Var(())
    y = x + x
    layout = SimpleNamespace(
        values=[SimpleNamespace(lasting=i == 3) for i in range(4)],
        steps=[x, y],
        works={x: "wx", y: "wy"},
        workspace=lambda node, usage, plan: ("space", node, plan),
    )
    tied = problem([(10, 0, 0), (4, 1, 1), (2, 0, 0), (5, 0, 1)], (0, 1))
    usage, plan = SimpleNamespace(operand_of=[0, 1, 2, 3], problem=tied), Plan((0, 3, 20, 30), 40)
    first, second = steps_of(layout, usage, plan, {x: "vx", y: "vy"})
    assert (first.node, first.work, first.out, first.xs) == (x, "wx", "vx", ())
    assert (second.node, second.work, second.out, second.xs) == (y, "wy", "vy", ("vx", "vx"))
    assert second.workspace == ("space", y, plan)
    dead = [[(view.at.offset, *view.shape) for view in step.dead()] for step in (first, second)]
    assert dead == [[(0, 3), (7, 3), (20, 2)], [(3, 4)]]
