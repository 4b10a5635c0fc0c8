"""Work: the kernel calls of a node on one target, and the steps that engines run."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from cgraph.errors import PlanError
from cgraph.ir.bands import InPlaceJoin
from cgraph.record import Record


class Part(Record, eq=False):
    """Some of the kernel calls of a step that consists of smaller ones.

    Fields
        label: for messages
        calls: the kernel calls
        dead: views whose bytes are not read afterwards; poisoned on request
        places: the slots where addresses in the calls begin; empty if these are absolute
        times: number of runs; adjacent parts that run more than once form one loop
    """

    label: str
    calls: list
    dead: Sequence[Any] = ()
    places: Sequence[Any] = ()
    times: int = 1


class Work(Record, eq=False):
    """The work of a target for one node: its kernel calls, and what the planner has to know about them.

    Fields
        calls: takes views of the result and the operands, and `workspace` (a view of bytes) if there is one; returns
            the kernel calls that fill every element of the result or, for an op with steps of its own, their `Part`s.
            `cgraph.memory.calls` states how they may depend on addresses
        nbytes: maximum bytes of workspace while the node runs
        overwrites: operands whose bytes the result may use: a permission, not an obligation
        strided: the calls accept operands of any strides; otherwise these are made contiguous first
        strided_operands: those that may have any strides if `strided` is false
        inner: the plans of inner steps in the workspace, by what they compute, for reports and pictures
        exact: takes views of the result and the operands, returns the bytes of workspace for these; None if it is
            `nbytes`
        over: an operand whose bytes the result may use while it is read, if both lie by rows
    """

    calls: Callable[..., Any]
    nbytes: int = 0
    overwrites: tuple[int, ...] = ()
    strided: bool = False
    inner: Mapping[str, Any] = field(default_factory=dict)
    exact: Callable[..., int] | None = None
    over: InPlaceJoin | None = None
    strided_operands: Collection[int] = ()

    def needs(self, out: Any, xs: Sequence[Any]) -> int:
        """Return the bytes of workspace for these views, at any address."""
        return self.exact(out, *xs) if self.exact else self.nbytes

    def placed(self, out: Any, xs: Sequence[Any], workspace: Any = None) -> list:
        """Return the kernel calls for these views. PlanError if the workspace is smaller than they need."""
        return [call for part in self.parts("", out, xs, workspace) for call in part.calls]

    def parts(self, label: str, out: Any, xs: Sequence[Any], workspace: Any = None) -> Iterator[Part]:
        """Return the calls as parts: one with this label, or those of the op's own steps."""
        nbytes = self.needs(out, xs)
        if nbytes and (workspace is None or workspace.size < nbytes):
            available = 0 if workspace is None else workspace.size
            raise PlanError(
                f"{label or 'a step'} needs a workspace of {nbytes} bytes, but has {available}; report this plan"
            )
        calls = self.calls(out, *xs, workspace=workspace) if nbytes else self.calls(out, *xs)
        return iter([Part(label, calls)]) if isinstance(calls, list) else calls


class PlacedStep(Record, eq=False):
    """One node with its views, from which every engine builds kernel calls.

    Fields
        node: the op with its operands
        work: of the target for it
        out, xs: views of the result and the operands
        workspace: a view of its bytes, or None
        dead: returns the views whose bytes are not read after this step, to be poisoned
    """

    node: Any
    work: Work
    out: Any
    xs: tuple[Any, ...]
    workspace: Any
    dead: Callable[[], Sequence[Any]] = tuple

    @property
    def label(self) -> str:
        """The node's name and line, for messages."""
        return f"{self.node.name} at {self.node.where}"

    def parts(self) -> Iterator[Part]:
        """Yield the kernel calls, then the views that are dead after the last of them."""
        yield from self.work.parts(self.label, self.out, self.xs, self.workspace)
        yield Part(self.label, [], self.dead())
