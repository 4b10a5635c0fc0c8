"""What a device does for one node: the record that an op's device facet returns."""

from collections.abc import Callable
from typing import Any

from cgraph.errors import PlanError
from cgraph.record import Record


class Work(Record, eq=False):
    """What a target does for one node: how its kernels are called, and what the planner must know of them.

    Fields
        calls: given views of the result and the operands, and `workspace` (a view of bytes) where there is one, the
            kernel calls that fill every element of the result
        nbytes: of the workspace while the node runs
        overwrites: operands whose bytes the result may take: permission, not duty
        strided: the calls read operands of any strides; otherwise these are made contiguous first
    """

    calls: Callable[..., list]
    nbytes: int = 0
    overwrites: tuple[int, ...] = ()
    strided: bool = False

    def placed(self, out: Any, xs: tuple[Any, ...], workspace: Any = None) -> list:
        """The kernel calls for these places. PlanError where the workspace is smaller than the calls need."""
        if not self.nbytes:
            return self.calls(out, *xs)
        if workspace is None or workspace.size < self.nbytes:
            given = 0 if workspace is None else workspace.size
            raise PlanError(f"a workspace of {self.nbytes} bytes is needed, {given} are given")
        return self.calls(out, *xs, workspace=workspace)
