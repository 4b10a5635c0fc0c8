"""Rematerialised ops: equal nodes are one node, so a second computation needs an op of its own."""

from typing import Any

from cgraph.ir.graph import Op
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Work
from cgraph.kernels.target import Target


class Rerun(Op):
    """`op` on its operands, computed a second time: the same kernels, so the same bits.

    Its users differ from those of the first computation by their operands, and need no wrapper.
    """

    takes_complex = True
    takes_storage = True

    op: Op

    @property
    def name(self) -> str:
        return f"{self.op.name}_again"

    @property
    def can_fail(self) -> bool:  # type: ignore[override]
        return self.op.can_fail

    def multiply_adds(self, *specs: Spec) -> int:
        return self.op.multiply_adds(*specs)

    def reason(self, node):
        return self.op.reason(node)

    def infer(self, *specs: Spec) -> Spec | Bundle:
        return self.op.infer(*specs)

    def meaning(self, *xs: Any) -> Any:
        return self.op.meaning(*xs)

    def work(self, target: Target, *specs: Spec) -> Work:
        return self.op.work(target, *specs)
