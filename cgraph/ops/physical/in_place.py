"""Ops whose result is written into a Var's own bytes: an update edge without further bytes or a copy."""

from typing import Any

from cgraph.ir.graph import Node, Op
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.record import replace


class InPlace(Op):
    """`op` on its operands, written into the bytes of one of them, a Var.

    Fields
        op: the computation
        count: operands of `op`; further operands only have to run before it
        target: index of the operand that is the Var
    """

    takes_complex = True
    takes_storage = True

    op: Op
    count: int
    target: int
    pure = False
    writes = True

    @property
    def name(self) -> str:
        return self.op.name

    def infer(self, *specs: Spec) -> Spec | Bundle:
        return self.op.infer(*specs[: self.count])

    def meaning(self, *xs: Any) -> Any:
        return self.op.meaning(*xs[: self.count])

    def reads(self, operands: tuple[Node, ...]) -> tuple[Node, ...]:
        return operands[: self.count]

    def alias(self, *xs: Any) -> Any:
        return xs[self.target]

    def work(self, target: Target, *specs: Spec) -> Work:
        inner = self.op.work(target, *specs[: self.count])

        def calls(out: View, *xs: View, **workspace: View) -> list[Call]:
            return inner.calls(out, *xs[: self.count], **workspace)

        return replace(inner, calls=calls, overwrites=(*inner.overwrites, self.target))
