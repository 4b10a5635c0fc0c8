"""Planned bodies: the steps of a sub-graph with their places, which ops with such a body run as inner steps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cgraph.dtypes.convert import code_of
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Part, PlacedStep
from cgraph.kernels.kernel import ARENA, Call, Pointer, View, contiguous
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.ops.leaf import Var
from cgraph.record import Record


class PlannedBody(Record, eq=False):
    """The planned steps of a body.

    Addresses are relative to the body's Vars, and to the arena of its plan, which is the workspace of the op.

    Fields
        steps: in running order
        nbytes: size of the arena
        ys: places of the results at the end
        updates: for each Var of the state that changes, the place of its next value; its own if a step wrote it there
        plan: schedule, plan and places, for reports and pictures
    """

    steps: tuple[PlacedStep, ...]
    nbytes: int
    ys: tuple[View, ...]
    updates: tuple[tuple[Var, View], ...]
    plan: Any

    def parts(self) -> Iterator[Part]:
        """Yield the kernel calls of all steps."""
        for step in self.steps:
            yield from step.parts()

    def state_calls(self, target: Target) -> list[Call]:
        """Return the calls that copy the next state over the present one, where no step wrote it there."""
        return copies(target, [(place_of(x, x.spec), view) for x, view in self.updates if view != place_of(x, x.spec)])


class BodyPlaces(Record, eq=False):
    """Where the bases of a body's addresses are, by their identity."""

    by_base: Mapping[int, Pointer]

    @classmethod
    def of(cls, workspace: View | None, views: Iterable[tuple[Var, View]]) -> "BodyPlaces":
        """Return the places of a body's Vars, and of its arena in the workspace."""
        arena = {} if workspace is None else {id(ARENA): workspace.at}
        return cls({id(x): view.at for x, view in views} | arena)

    def pointer(self, at: Pointer) -> Pointer:
        """Return the address outside that an address of the body stands for; any other address unchanged."""
        base = self.by_base.get(id(at.base))
        return at if base is None else base + at.offset

    def call(self, call: Call) -> Call:
        args = tuple(self.pointer(a) if isinstance(a, Pointer) else a for a in call.args)
        return Call(call.kernel, args, call.tasks, call.chunk)

    def view(self, view: View) -> View:
        return View(self.pointer(view.at), view.shape, view.strides, view.dtype)


def placed(parts: Iterable[Part], places: BodyPlaces) -> Iterator[Part]:
    """Yield parts of a body with the addresses outside it."""
    for part in parts:
        yield Part(part.label, [places.call(c) for c in part.calls], [places.view(v) for v in part.dead])


def copies(target: Target, pairs: Sequence[tuple[View, View]]) -> list[Call]:
    """Return the calls that copy views to others."""
    return [call for to, x in pairs for call in copy_calls(target, to, x)]


def place_of(base: object, spec: Spec | Bundle) -> View:
    """Return the view of a value in C order at a base."""
    return contiguous(Pointer(base), spec.shape, code_of(spec.dtype))  # type: ignore[union-attr]
