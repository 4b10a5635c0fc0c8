"""Steps that differ in nothing but addresses share their kernel calls; the calls are those of each step by itself."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.ir.graph import Node
from cgraph.ir.work import Part, PlacedStep, Work
from cgraph.kernels.kernel import ARENA, Callback, Marker, Pointer, Slot, View
from cgraph.memory.calls import CallsOfSteps, slots_of
from cgraph.ops.physical.rounds import RowSlot
from cgraph.planning.compiled import Compiled
from cgraph.record import replace
from tests.support.graphs import graphs


def compiled(*outputs: Node, **options) -> Compiled:
    return cg.compile(outputs, **options).compiled


def different_calls(plan: Compiled) -> int:
    """How many lists of calls all steps have together."""
    maker = CallsOfSteps()
    return len({id(part.calls) for parts in [maker.parts(step) for step in plan.steps] for part in parts})


def memory_of(arg: object, places: object) -> object:
    """An argument with its address, which two arrays of the same bytes share."""
    if not isinstance(arg, Pointer):
        return arg
    if isinstance(arg.base, Slot):
        arg = places[arg.base.number] + arg.offset
    if isinstance(arg.base, RowSlot):
        return RowSlot, arg.offset
    return (arg.base.tobytes(), arg.offset) if isinstance(arg.base, np.ndarray) else arg


def described(parts: list[Part]) -> list:
    """The calls as values that can be compared; of a Python function its views."""
    return [
        (
            (call.kernel.results, [v.shape for v in call.kernel.views])
            if isinstance(call.kernel, Callback)
            else type(call.kernel)
            if isinstance(call.kernel, Marker)
            else call.kernel,
            [memory_of(arg, part.places) for arg in call.args],
            call.tasks,
            call.chunk,
        )
        for part in parts
        for call in part.calls
    ]


@settings(max_examples=60)
@given(drawn=graphs(impure=True))
def test_a_step_has_the_calls_that_it_would_have_by_itself(drawn):
    for plan in (compiled(*drawn.outputs, memory=memory) for memory in ("auto", "one_each")):
        maker = CallsOfSteps()
        for step in plan.steps:
            assert described(maker.parts(step)) == described(list(step.parts()))


def test_the_same_holds_of_training_and_loops():
    x, w = cg.Var((8, 8), name="x"), cg.Var((8, 8), name="w")
    loss = cg.sum(cg.square(cg.tanh(x @ w) @ w))
    step = cg.compile(loss, x, {w: w - 0.1 * cg.gradient(loss, w)})
    loop = cg.compile(
        cg.scan(lambda state, row: (state + row, cg.cumsum(state, 0)), w[0], cg.Var((40, 8), name="rows"))
    )
    for function in (step, loop):
        maker = CallsOfSteps()
        for one in function.compiled.steps:
            assert described(maker.parts(one)) == described(list(one.parts()))


def test_equal_steps_share_their_calls_wherever_they_lie():
    y = x = cg.Var((6, 6), name="x")
    for _ in range(6):
        y = y @ x
    assert different_calls(compiled(y, cg.Var((6, 6), name="z") @ x, passes=False)) == 2  # the first one is x @ x


def test_what_overwrites_its_operand_has_other_calls_than_what_does_not():
    y = cg.Var((4, 6), name="x")
    for _ in range(6):
        y = cg.cumsum(y, 0)
    assert different_calls(compiled(y)) == 2  # the first one reads the Var


@pytest.mark.parametrize(
    "other",
    [
        lambda x: cg.cumsum(x, 1),
        lambda x: cg.cumprod(x, 0),
        lambda x: cg.cumsum(x[:3], 0),
        lambda x: cg.cumsum(cg.transpose(x), 0),
        lambda x: cg.cumsum(cg.Var(x.shape, "float64"), 0),
    ],
)
def test_another_op_shape_stride_or_dtype_has_calls_of_its_own(other: Callable[[Node], Node]):
    x = cg.Var((6, 6), name="x")
    assert different_calls(compiled(cg.cumsum(x, 0), other(x))) == 2


def test_one_operand_read_twice_has_other_calls_than_two():
    x, y = cg.Var((6, 6), name="x"), cg.Var((6, 6), name="y")
    assert different_calls(compiled(cg.matmul(x, x), cg.matmul(x, y), cg.matmul(y, x))) == 2


def test_parts_that_are_made_in_place_are_not_copied_and_others_are():
    x, y = cg.Var((4, 6), name="x"), cg.Var((4, 6), name="y")
    inside, outside = cg.concat([cg.cumsum(x, 0), cg.cumsum(y, 0)], 0), cg.concat([x, y], 0)
    for node, copies in ((inside, 0), (outside, 2)):
        plan = compiled(node, passes=False)
        maker = CallsOfSteps()
        parts = [maker.parts(step) for step in plan.steps][-1]
        assert sum(len(part.calls) for part in parts) == copies


def test_dead_bytes_are_overwritten_where_each_step_left_them():
    y = cg.Var((6, 6), name="x")
    for i in range(4):
        y = cg.cumsum(y, i % 2)
    plan = compiled(y @ y, passes=False)
    seen: list = []

    def poison(view):
        seen.append(view.at.offset)
        return []

    maker = CallsOfSteps(poison)
    for step in plan.steps:
        maker.parts(step)
    assert seen == [view.at.offset for step in plan.steps for view in step.dead()] and seen


def item(offset: int, base: object = ARENA) -> View:
    return View(Pointer(base, offset), (1,), (1,), "u1")


def test_views_inside_the_result_are_in_its_slot_and_others_in_one_for_each_address():
    """A result of 16 bytes: its last byte is inside, the one behind it and the one before it are not."""
    out, other = View(Pointer(ARENA, 100), (4,), (4,), "f4"), object()
    views = [out, item(100), item(115), item(116), item(99), item(116), item(100, other)]
    where, places = slots_of(views, 16)
    assert where == [(0, 0), (0, 0), (0, 15), (1, 0), (2, 0), (1, 0), (3, 0)]
    assert places == [Pointer(ARENA, 100), Pointer(ARENA, 116), Pointer(ARENA, 99), Pointer(other, 100)]


def placed(work: Work, at: int, dead: tuple = ()) -> PlacedStep:
    return PlacedStep(cg.sin(cg.Var((4,))), work, View(Pointer(ARENA, at), (4,), (4,), "f4"), (), None, lambda: dead)


def test_parts_keep_their_labels_and_numbers_of_runs_and_others_have_the_label_of_their_step():
    calls: list = []
    work, maker = Work(lambda out: (Part("own", calls, (), (), 3), Part("", []))), CallsOfSteps()
    one, other = placed(work, 64), placed(work, 128)
    for step in (one, other, one):
        parts = maker.parts(step)
        assert [(part.label, part.times) for part in parts] == [("own", 3), (step.label, 1)]
        assert [part.places for part in parts] == [[step.out.at]] * 2
    assert maker.parts(one)[0].calls is maker.parts(other)[0].calls, "made once"


def test_what_is_dead_behind_a_part_is_overwritten_there_and_what_is_dead_behind_a_step_at_its_end():
    work = Work(lambda out: (Part("first", ["a"], (item(3), item(5))), Part("second", ["b"])))
    maker = CallsOfSteps(lambda view: [view.at.offset, "fill"])
    parts = maker.parts(placed(work, 64, (item(9),)))
    assert [part.calls for part in parts] == [["a", 3, "fill", 5, "fill"], ["b"], [9, "fill"]]
    assert not any(part.dead for part in parts)
    assert [part.calls for part in CallsOfSteps().parts(placed(work, 64, (item(9),)))] == [["a"], ["b"]]


def test_what_is_dead_behind_a_result_of_several_values_is_overwritten_too():
    step = placed(Work(lambda *views: (Part("own", ["a"], (item(3),)),)), 64, (item(9),))
    parts = CallsOfSteps(lambda view: [view.at.offset]).parts(replace(step, out=(step.out, item(0))))
    assert [part.calls for part in parts] == [["a", 3], [9]]
