"""Planned loops and branches: markers around the steps of their bodies."""

from collections.abc import Iterator, Sequence
from typing import Any

from cgraph.ir.work import Part
from cgraph.kernels.kernel import End, Pointer, Repeat, Skip, View, marker_call
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.ops.conditional import Conditional
from cgraph.ops.loop import Loop
from cgraph.ops.physical.planned_body import BodyPlaces, copies, place_of, placed
from cgraph.ops.physical.structured import PlannedOp
from cgraph.ops.while_loop import WhileLoop
from cgraph.record import Record

ENDLESS = (1 << 63) - 1  # rounds


class RowSlot(Record, eq=False):
    """The base of the current row of a stacked result."""


class Rounds(PlannedOp):
    """A loop over rows with a planned body."""

    inner_names = ("a round",)
    op: Loop

    @property
    def copied(self) -> int:
        return len(self.op.body.carry)

    def parts(
        self, target: Target, out: tuple[View, ...], operands: Sequence[View], workspace: View | None
    ) -> Iterator[Part]:
        """Yield the initial state, then the parts of one round between the markers of a loop."""
        body = self.op.body
        carry, xs, shared = self.op.parts(operands)
        states, stacked = out[: len(carry)], out[len(carry) :]
        slots = [RowSlot() for _ in stacked]
        places = BodyPlaces.of(workspace, zip((*body.carry, *body.shared), (*states, *shared)))
        begin, starts = self.begin([*body.xs, *slots], [*xs, *stacked])
        yield Part("state of the loop", [call for to, x in zip(states, carry) for call in copy_calls(target, to, x)])
        yield Part("rounds of the loop", [marker_call(begin, *starts)])
        yield from placed(self.one_round(target, slots), places)
        yield Part("rounds of the loop", [marker_call(End(begin))])

    def begin(self, moving: Sequence[Any], views: Sequence[View]) -> tuple[Repeat, list[Pointer]]:
        """Return the marker of the loop's beginning, and the addresses of the rows of the first round."""
        length = self.op.length
        strides = [view.size // max(length, 1) * view.itemsize for view in views]
        if not self.op.backward:
            return Repeat(length, tuple(moving), tuple(strides)), [view.at for view in views]
        starts = [view.at + max(length - 1, 0) * stride for view, stride in zip(views, strides)]
        return Repeat(length, tuple(moving), tuple(-stride for stride in strides)), starts

    def one_round(self, target: Target, slots: Sequence[RowSlot]) -> Iterator[Part]:
        """Yield copies of the initial state (if an output), the steps, and copies of result rows and final state."""
        body, count = self.op.body, len(self.op.body.ys)
        before = [(place_of(slot, x.spec), place_of(x, x.spec)) for slot, x in zip(slots[count:], body.carry)]
        rows = [(place_of(slot, y.spec), view) for slot, y, view in zip(slots, body.ys, self.plans[0].ys)]
        yield Part("states of the loop", copies(target, before))
        yield from self.plans[0].parts()
        yield Part("results of a round", [*copies(target, rows), *self.plans[0].state_calls(target)])


class WhileRounds(PlannedOp):
    """A loop that a condition ends, with planned bodies."""

    inner_names = ("the condition", "a round")
    op: WhileLoop

    @property
    def copied(self) -> int:
        return len(self.op.body.carry)

    def parts(
        self, target: Target, out: tuple[View, ...], operands: Sequence[View], workspace: View | None
    ) -> Iterator[Part]:
        """Yield the initial state, then the condition and one round between the markers of a loop."""
        body, (condition, one_round) = self.op.body, self.plans
        carry, shared = operands[: len(out)], operands[len(out) :]
        places = BodyPlaces.of(workspace, zip((*body.carry, *body.shared), (*out, *shared)))
        begin, leave = Repeat(ENDLESS if self.op.maximum is None else self.op.maximum), Skip(1)
        yield Part("state of the loop", copies(target, list(zip(out, carry))))
        yield Part("rounds of the loop", [marker_call(begin)])
        yield from placed(condition.parts(), places)
        yield Part("condition of the loop", [marker_call(leave, places.pointer(condition.ys[0].at))])
        yield from placed(one_round.parts(), places)
        yield from placed([Part("results of a round", one_round.state_calls(target))], places)
        yield Part("rounds of the loop", [marker_call(End(begin)), marker_call(End(leave))])


class PlannedConditional(PlannedOp):
    """A choice between planned bodies."""

    inner_names = ("the first function", "the other function")
    op: Conditional

    def parts(
        self, target: Target, out: tuple[View, ...], operands: Sequence[View], workspace: View | None
    ) -> Iterator[Part]:
        """Yield the steps of both bodies, each with what it returns; the condition decides which are skipped."""
        p, *shared = operands
        for value, body, plan in zip((1, 0), self.op.bodies, self.plans):
            places, skip = BodyPlaces.of(workspace, zip(body.shared, shared)), Skip(value)
            yield Part("choice", [marker_call(skip, p.at)])
            yield from placed(plan.parts(), places)
            yield Part("results of a choice", copies(target, [(to, places.view(y)) for to, y in zip(out, plan.ys)]))
            yield Part("choice", [marker_call(End(skip))])
