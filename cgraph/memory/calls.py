"""Kernel calls of a plan's steps; steps that differ only in addresses share them.

An op's device facet may depend on addresses in two ways: which operands begin at one address, and where in the result
an operand begins, to omit copies of a value onto itself. So calls are written for slots: one for the result, and one
for each address outside it at which operands begin. Steps of the same work on views of equal shapes, strides and slots
share them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from cgraph.ir.work import Part, PlacedStep
from cgraph.kernels.kernel import Call, Pointer, Slot, View
from cgraph.record import replace

Where = tuple[int, int]  # the number of a slot, and bytes from its beginning


class CallsOfSteps:
    """Kernel calls of one step after the other. Changes: caches calls written for slots.

    Fields
        poison: the calls that overwrite dead bytes; None if nothing does
    """

    def __init__(self, poison: Callable[[View], list[Call]] | None = None) -> None:
        self.poison = poison
        self.templates: dict[tuple, list[Part]] = {}

    def parts(self, step: PlacedStep) -> list[Part]:
        """Return the step's kernel calls. Only a result of several values has no slot."""
        views = (step.out, *step.xs) if step.workspace is None else (step.out, *step.xs, step.workspace)
        if any(isinstance(view, tuple) for view in views):
            return self.poisoned(step.parts())
        where, places = slots_of(views, step.node.nbytes)
        key = (step.work, *[(*at, v.shape, v.strides, v.dtype) for at, v in zip(where, views)])
        template = self.templates.get(key)
        if template is None:
            template = self.templates[key] = self.poisoned(over_slots(step, views, where))
        label = step.label
        located = [Part(part.label or label, part.calls, (), places, part.times) for part in template]
        return located + self.poisoned([Part(label, [], step.dead())]) if self.poison else located

    def poisoned(self, parts: Iterable[Part]) -> list[Part]:
        """Return the parts, each followed by calls that overwrite the bytes that are dead after it."""
        if self.poison is None:
            return list(parts)
        return [
            replace(p, calls=[*p.calls, *(c for view in p.dead for c in self.poison(view))], dead=()) for p in parts
        ]


def slots_of(views: Sequence[View], nbytes: int) -> tuple[list[Where], list[Pointer]]:
    """Return the beginning of each view by slots, and the slots' addresses; the first view is the result, of
    `nbytes`.
    """
    first = views[0].at
    places, where = [first], []
    for view in views:
        at = view.at
        inside = at.offset - first.offset if at.base is first.base else -1
        if 0 <= inside < nbytes:
            where.append((0, inside))
            continue
        if at not in places:
            places.append(at)
        where.append((places.index(at), 0))
    return where, places


def over_slots(step: PlacedStep, views: Sequence[View], where: Sequence[Where]) -> Iterator[Part]:
    """Return the step's calls with slots instead of addresses."""
    slots = [Slot(i) for i in range(len(views))]
    out, *rest = (replace(view, at=Pointer(slots[i], offset)) for view, (i, offset) in zip(views, where))
    workspace = None if step.workspace is None else rest.pop()
    return step.work.parts("", out, rest, workspace)
