"""Planned loops: the steps of one round with their places, repeated for every row."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cgraph.ir.graph import Op
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Part, PlacedStep, Work
from cgraph.kernels.expression import code_of
from cgraph.kernels.kernel import ARENA, Call, Pointer, View, contiguous
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.ops.leaf import Var
from cgraph.ops.loop import Loop
from cgraph.record import Record

Places = Mapping[int, Pointer]


class Round(Record, eq=False):
    """One planned round of a loop.

    Addresses are relative to the body's Vars, and to the arena of its plan, which is the loop's workspace.

    Fields
        steps: in running order
        nbytes: size of the arena
        ys: places of the rows of stacked results at the end of a round
        updates: for each Var of the state that changes, the place of its next value; its own if a step wrote it there
        plan: schedule, plan and places, for reports and pictures
    """

    steps: tuple[PlacedStep, ...]
    nbytes: int
    ys: tuple[View, ...]
    updates: tuple[tuple[Var, View], ...]
    plan: Any


class RowSlot:
    """A placeholder for the current row of a stacked result."""


class Rounds(Op):
    """A loop with a planned body: one step with inner steps.

    Fields
        loop: the computation
        round: its planned round
    """

    takes_complex = True

    loop: Loop
    round: Round

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

        return Work(parts, self.round.nbytes, inner=self.round.plan)

    def parts(
        self, target: Target, out: tuple[View, ...], operands: Sequence[View], workspace: View | None
    ) -> Iterator[Part]:
        """Yield the initial state, then the parts of every round."""
        loop, body = self.loop, self.loop.body
        carry, xs, shared = loop.parts(operands)
        states, stacked = out[: len(carry)], out[len(carry) :]
        slots = [RowSlot() for _ in stacked]
        fixed = {id(x): view.at for x, view in zip((*body.carry, *body.shared), (*states, *shared))}
        if workspace is not None:
            fixed[id(ARENA)] = workspace.at
        moving: list[tuple[Any, View]] = [*zip(body.xs, xs), *zip(slots, stacked)]
        one_round = list(self.one_round(target, slots))
        yield Part("state of the loop", [call for to, x in zip(states, carry) for call in copy_calls(target, to, x)])
        for i in loop.rounds:
            places = fixed | {id(key): row(view, i, loop.length) for key, view in moving}
            for part in one_round:
                dead = [view_at(view, places) for view in part.dead]
                yield Part(part.label, [call_at(call, places) for call in part.calls], dead)

    def one_round(self, target: Target, slots: Sequence[RowSlot]) -> Iterator[Part]:
        """Yield copies of the initial state (if an output), the steps, and copies of result rows and final state."""
        body, count = self.loop.body, len(self.loop.body.ys)
        before = [(place_of(slot, x.spec), place_of(x, x.spec)) for slot, x in zip(slots[count:], body.carry)]
        after = [(place_of(slot, y.spec), view) for slot, y, view in zip(slots, body.ys, self.round.ys)]
        after += [(place_of(x, x.spec), view) for x, view in self.round.updates if view != place_of(x, x.spec)]
        yield Part("states of the loop", copies(target, before))
        for step in self.round.steps:
            yield from step.parts()
        yield Part("results of a round", copies(target, after))


def copies(target: Target, pairs: Sequence[tuple[View, View]]) -> list[Call]:
    """Return the calls that copy views to others."""
    return [call for to, x in pairs for call in copy_calls(target, to, x)]


def place_of(base: object, spec: Spec | Bundle) -> View:
    """Return the view of a value in C order at a base."""
    return contiguous(Pointer(base), spec.shape, code_of(spec.dtype))  # type: ignore[union-attr]


def row(view: View, i: int, length: int) -> Pointer:
    """Return the address of row i of a sequence."""
    return view.at + i * (view.size // length) * view.itemsize


def call_at(call: Call, places: Places) -> Call:
    """Return a call of one round with its addresses resolved."""
    args = tuple(pointer_at(a, places) if isinstance(a, Pointer) else a for a in call.args)
    return Call(call.kernel, args, call.tasks, call.chunk)


def view_at(view: View, places: Places) -> View:
    """Return a view with its address resolved."""
    return View(pointer_at(view.at, places), view.shape, view.strides, view.dtype)


def pointer_at(at: Pointer, places: Places) -> Pointer:
    """Resolve a pointer whose base is a slot."""
    return places[id(at.base)] + at.offset if id(at.base) in places else at
