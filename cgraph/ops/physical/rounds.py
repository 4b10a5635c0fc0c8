"""Planned loops: the steps of one round with their places, run once for every row."""

from collections.abc import Iterator, Sequence
from typing import Any

from cgraph.ir.graph import Op
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Part, Work
from cgraph.kernels.kernel import End, Pointer, Repeat, View, marker_call
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.ops.loop import Loop
from cgraph.ops.physical.planned_body import BodyPlaces, PlannedBody, copies, place_of, placed
from cgraph.record import Record


class RowSlot(Record, eq=False):
    """The base of the current row of a stacked result."""


class Rounds(Op):
    """A loop with a planned body: one step with inner steps.

    Fields
        loop: the computation
        round: its planned body
    """

    takes_complex = True

    loop: Loop
    round: PlannedBody

    @property
    def name(self) -> str:
        return self.loop.name

    @property
    def pure(self) -> bool:  # type: ignore[override]
        return self.loop.pure

    @property
    def can_fail(self) -> bool:  # type: ignore[override]
        return self.loop.can_fail

    def infer(self, *specs: Spec) -> Bundle:
        return self.loop.infer(*specs)

    def meaning(self, *xs: Any) -> Any:
        return self.loop.meaning(*xs)

    def work(self, target: Target, *specs: Spec) -> Work:
        def parts(out: tuple[View, ...], *operands: View, workspace: View | None = None) -> Iterator[Part]:
            return self.parts(target, out, operands, workspace)

        return Work(parts, self.round.nbytes, inner={"a round": self.round.plan})

    def parts(
        self, target: Target, out: tuple[View, ...], operands: Sequence[View], workspace: View | None
    ) -> Iterator[Part]:
        """Yield the initial state, then the parts of one round between the markers of a loop."""
        body = self.loop.body
        carry, xs, shared = self.loop.parts(operands)
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
        length = self.loop.length
        strides = [view.size // max(length, 1) * view.itemsize for view in views]
        if not self.loop.backward:
            return Repeat(length, tuple(moving), tuple(strides)), [view.at for view in views]
        starts = [view.at + max(length - 1, 0) * stride for view, stride in zip(views, strides)]
        return Repeat(length, tuple(moving), tuple(-stride for stride in strides)), starts

    def one_round(self, target: Target, slots: Sequence[RowSlot]) -> Iterator[Part]:
        """Yield copies of the initial state (if an output), the steps, and copies of result rows and final state."""
        body, count = self.loop.body, len(self.loop.body.ys)
        before = [(place_of(slot, x.spec), place_of(x, x.spec)) for slot, x in zip(slots[count:], body.carry)]
        rows = [(place_of(slot, y.spec), view) for slot, y, view in zip(slots, body.ys, self.round.ys)]
        yield Part("states of the loop", copies(target, before))
        yield from self.round.parts()
        yield Part("results of a round", [*copies(target, rows), *self.round.state_calls(target)])
