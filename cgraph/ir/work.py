"""What a device does for one node: the record that an op's device facet returns, and the steps that engines run."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cgraph.errors import PlanError
from cgraph.ir.bands import InPlaceJoin
from cgraph.record import Record


class Part(Record, eq=False):
    """Some of the kernel calls of a step that is made of smaller ones.

    Fields
        label: what it is, for messages
        calls: the kernel calls
        dead: views whose bytes nobody reads afterwards; poisoned when asked for
        places: where the slots are that addresses in the calls begin at; empty where they begin at memory itself
        times: how often it runs; neighbours that run more than once are one loop
    """

    label: str
    calls: list
    dead: Sequence[Any] = ()
    places: Sequence[Any] = ()
    times: int = 1


class Work(Record, eq=False):
    """What a target does for one node: how its kernels are called, and what the planner must know of them.

    Fields
        calls: given views of the result and the operands, and `workspace` (a view of bytes) where there is one, the
            kernel calls that fill every element of the result; or, of an op made of steps of its own, their `Part`s.
            Of addresses they may depend on no more than `cgraph.memory.calls` says
        nbytes: of the workspace while the node runs, at most
        overwrites: operands whose bytes the result may take: permission, not duty
        strided: the calls read operands of any strides; otherwise these are made contiguous first
        inner: the plan of what an op made of steps does in its workspace, for reports and pictures
        exact: given views of the result and the operands, the bytes of workspace for these; None where it is `nbytes`
        over: an operand whose bytes the result may take while it is read, where both lie by rows
    """

    calls: Callable[..., Any]
    nbytes: int = 0
    overwrites: tuple[int, ...] = ()
    strided: bool = False
    inner: Any = None
    exact: Callable[..., int] | None = None
    over: InPlaceJoin | None = None

    def needs(self, out: Any, xs: Sequence[Any]) -> int:
        """Bytes of workspace for these views, wherever they begin."""
        return self.exact(out, *xs) if self.exact else self.nbytes

    def placed(self, out: Any, xs: Sequence[Any], workspace: Any = None) -> list:
        """The kernel calls for these places. PlanError where the workspace is smaller than the calls need."""
        return [call for part in self.parts("", out, xs, workspace) for call in part.calls]

    def parts(self, label: str, out: Any, xs: Sequence[Any], workspace: Any = None) -> Iterator[Part]:
        """The same in parts: one with this label, or those of the op's own steps."""
        nbytes = self.needs(out, xs)
        if nbytes and (workspace is None or workspace.size < nbytes):
            available = 0 if workspace is None else workspace.size
            raise PlanError(f"a workspace of {nbytes} bytes is needed, {available} are given")
        calls = self.calls(out, *xs, workspace=workspace) if nbytes else self.calls(out, *xs)
        return iter([Part(label, calls)]) if isinstance(calls, list) else calls


class PlacedStep(Record, eq=False):
    """One node with its places: what every engine makes kernel calls from.

    Fields
        node: the op with its operands
        work: what the target does for it
        out, xs: views of the result and the operands
        workspace: a view of its bytes, or None
        dead: the views whose bytes nobody reads after this step; made when asked for, to be poisoned
    """

    node: Any
    work: Work
    out: Any
    xs: tuple[Any, ...]
    workspace: Any
    dead: Callable[[], Sequence[Any]] = tuple

    @property
    def label(self) -> str:
        """What it is, for messages."""
        return f"{self.node.name} at {self.node.where}"

    def parts(self) -> Iterator[Part]:
        """Its kernel calls, with what is dead after the last of them."""
        yield from self.work.parts(self.label, self.out, self.xs, self.workspace)
        yield Part(self.label, [], self.dead())
