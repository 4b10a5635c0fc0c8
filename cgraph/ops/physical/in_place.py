"""An op whose result is written into a Var's own bytes: an update edge that needs no bytes and no copy."""

from typing import Any

from cgraph.ir.graph import Op
from cgraph.ir.spec import Bundle, Spec
from cgraph.kernels.kernel import View


class InPlace(Op):
    """`op` on its operands, into the bytes of one of them, a Var.

    Fields
        op: what is computed
        count: operands of `op`; further ones only have to run before
        target: the operand that is the Var
    """

    op: Op
    count: int
    target: int
    pure = False
    writes = True

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def strided(self) -> bool:  # type: ignore[override]
        return self.op.strided

    def infer(self, *specs: Spec) -> Spec | Bundle:
        return self.op.infer(*specs[: self.count])

    def alias(self, *xs: Any) -> Any:
        return xs[self.target]

    def overwrites(self, *specs: Spec) -> tuple[int, ...]:
        return (*self.op.overwrites(*specs[: self.count]), self.target)

    def scratch(self, *specs: Spec) -> int:
        return self.op.scratch(*specs[: self.count])

    def cpu(self, out: View, *xs: View, scratch: Any = None) -> list:
        return self.op.cpu(out, *xs[: self.count], **({"scratch": scratch} if scratch else {}))
