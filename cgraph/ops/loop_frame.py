"""The bytes and kernel calls of one round of a loop, with addresses that are filled in for each round.

Idea: a small plan of its own, since a body is short: values in running order, each at the lowest place that is free
while it is in use. Addresses are relative to the Vars of the body, to the frame, and to one slot per stacked result.
Time O(n^2) for n nodes of a body.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cgraph.alignment import aligned as aligned_nbytes
from cgraph.ir.graph import Node
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Work
from cgraph.kernels.calls.move import copy_calls
from cgraph.kernels.expression import code_of
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.mapped import aligned
from cgraph.kernels.target import Target
from cgraph.ops.leaf import ConstOp, VarOp


@dataclass(eq=False)
class Room:
    """Bytes of the frame, from one step to another. Changes until it is placed."""

    nbytes: int
    first: int
    last: int
    at: int = 0


class Slot:
    """Stands for the row of a stacked result."""


class Frame:
    """One round: where its values are. Changes while it is made; then it gives calls.

    Fields
        body: a `cgraph.ops.loop.Body`
        slots: per y, then per carry, what stands for its row
        rooms: per base of an address, its bytes in the frame
        steps: node; copies of operands that must be contiguous; result and operands; workspace
        last_read: per base, the last step that reads it; as many as there are steps for a result
        inside: per base, the Var of the state whose bytes it takes
    """

    def __init__(self, body: Any, target: Target) -> None:
        self.body, self.target = body, target
        self.works: dict[Node, Work] = {}
        self.slots = [Slot() for _ in (*body.ys, *body.carry)]
        self.views: dict[Node, Any] = {}
        self.rooms: dict[int, Room] = {}
        self.keys: list[object] = []
        self.steps: list[tuple[Node, list[tuple[View, View]], list[Any], View | None]] = []
        self.last_read: dict[int, int] = {}
        self.inside: dict[int, Node] = {}
        self.staged: list[View] = []
        for node in body.order:
            self.views[node] = self.view_of(node)
        self.stage()
        self.nbytes = placed(list(self.rooms.values()))

    def room(self, nbytes: int) -> Pointer:
        """New bytes at the present step."""
        key = object()
        self.keys.append(key)
        self.rooms[id(key)] = Room(nbytes, len(self.steps), len(self.steps))
        return Pointer(key)

    def use(self, view: Any) -> None:
        """The present step reads or writes these bytes."""
        first = view[0] if isinstance(view, tuple) else view
        self.last_read[id(first.at.base)] = len(self.steps)
        room = self.rooms.get(id(first.at.base))
        if room is not None:
            room.last = max(room.last, len(self.steps))

    def view_of(self, node: Node) -> Any:
        if isinstance(node.op, VarOp):
            return place_of(node, node.spec)
        if isinstance(node.op, ConstOp):
            return place_of(aligned(node.op.array), node.spec)
        xs = [self.views[x] for x in node.operands]
        seen = node.op.alias(*xs) if xs else None
        return seen if seen is not None else self.add_step(node, xs)

    def add_step(self, node: Node, xs: list[Any]) -> Any:
        """A step that computes the node."""
        work = self.works[node] = node.op.work(self.target, *(x.spec for x in node.operands))
        copies = []
        for i, x in enumerate(xs):
            self.use(x)
            if not work.strided and isinstance(x, View) and not x.is_contiguous:
                xs[i] = contiguous(self.room(x.size * x.itemsize), x.shape, x.dtype)
                copies.append((xs[i], x))
        out = self.result_of(node.spec)
        nbytes = work.nbytes
        workspace = contiguous(self.room(nbytes), (nbytes,), "u1") if nbytes else None
        self.steps.append((node, copies, [out, *xs], workspace))
        return out

    def result_of(self, spec: Spec | Bundle) -> Any:
        at = self.room(spec.nbytes)
        if isinstance(spec, Bundle):
            return tuple(place_of(at.base, part, offset) for part, offset in zip(spec.specs, spec.offsets))
        return place_of(at.base, spec)

    def stage(self) -> None:
        """Results stay to the end; a next state that shows a present one is copied before that is overwritten."""
        owners = {id(x) for x in self.body.carry}
        for node in (*self.body.next, *self.body.ys):
            self.use(self.views[node])
        for x, node in zip(self.body.carry, self.body.next):
            view = self.views[node]
            if id(view.at.base) in owners:
                view = contiguous(self.room(node.nbytes), node.shape, view.dtype)
            elif self.may_take(x, node):
                self.inside[id(view.at.base)] = x
                del self.rooms[id(view.at.base)]
            self.staged.append(view)

    def may_take(self, x: Node, node: Node) -> bool:
        """The next state may be computed into the bytes of the present one, `x`: nobody reads that afterwards."""
        view, last = self.views[node], self.last_read.get(id(x), -1)
        room = self.rooms.get(id(view.at.base))
        if room is None or room.nbytes != node.nbytes or view != place_of(view.at.base, node.spec) or last > room.first:
            return False
        maker, _, (_, *xs), _ = self.steps[room.first]
        permitted = self.works[maker].overwrites
        reads = [(i, v) for i, v in enumerate(xs) if not isinstance(v, tuple) and v.at.base is x]
        return last < room.first or all(i in permitted and v == place_of(x, x.spec) for i, v in reads)

    def calls(self) -> list[Call]:
        """The calls of one round."""
        calls: list[Call] = []
        for node, copies, (out, *xs), workspace in self.steps:
            for to, x in copies:
                calls += copy_calls(self.target, self.moved(to), self.moved(x))
            room = self.moved(workspace) if workspace else None
            calls += self.works[node].placed(self.moved(out), tuple(map(self.moved, xs)), room)
        body = self.body
        pairs = [(place_of(slot, y.spec), self.views[y]) for slot, y in zip(self.slots, body.ys)]
        pairs += [(to, self.views[n]) for to, n in zip(self.staged, body.next) if to is not self.views[n]]
        pairs += [(place_of(x, x.spec), staged) for x, staged in zip(body.carry, self.staged)]
        for to, x in pairs:
            if self.moved(to) == self.moved(x):
                continue
            calls += copy_calls(self.target, self.moved(to), self.moved(x))
        return calls

    def moved(self, view: Any) -> Any:
        """A view with its address in the frame."""
        if isinstance(view, tuple):
            return tuple(map(self.moved, view))
        return View(self.moved_pointer(view.at), view.shape, view.strides, view.dtype)

    def moved_pointer(self, at: Pointer) -> Pointer:
        if id(at.base) in self.inside:
            return Pointer(self.inside[id(at.base)], at.offset)
        room = self.rooms.get(id(at.base))
        return at if room is None else Pointer(self, room.at + at.offset)


def place_of(base: object, spec: Spec, offset: int = 0) -> View:
    """A value in C order at a base."""
    return contiguous(Pointer(base, offset), spec.shape, code_of(spec.dtype))


def placed(rooms: Sequence[Room]) -> int:
    """Place each room at the lowest offset that is free while it is in use; the bytes of all."""
    done: list[Room] = []
    for room in rooms:
        at = 0
        for other in sorted((o for o in done if o.last >= room.first and o.first <= room.last), key=lambda o: o.at):
            if other.at >= at + room.nbytes:
                break
            at = max(at, aligned_nbytes(other.at + other.nbytes))
        room.at = at
        done.append(room)
    return max((room.at + room.nbytes for room in rooms), default=0)
