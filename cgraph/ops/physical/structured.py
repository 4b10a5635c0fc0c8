"""Base of planned loops and branches: one step with inner steps."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from cgraph.ir.graph import Op
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Part, Work
from cgraph.kernels.kernel import View
from cgraph.kernels.target import Target
from cgraph.ops.loop import Structured
from cgraph.ops.physical.planned_body import PlannedBody


class PlannedOp(Op):
    """An op whose sub-graphs are planned.

    Fields
        op: the computation
        plans: its planned bodies; one runs after the other, so they share the workspace
    """

    takes_complex = True
    inner_names: ClassVar[tuple[str, ...]] = ()

    op: Structured
    plans: tuple[PlannedBody, ...]

    @property
    def copied(self) -> int:
        """The number of leading operands that are copied and may have any strides."""
        return 0

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def pure(self) -> bool:  # type: ignore[override]
        return self.op.pure

    @property
    def can_fail(self) -> bool:  # type: ignore[override]
        return self.op.can_fail

    def infer(self, *specs: Spec) -> Bundle:
        return self.op.infer(*specs)

    def meaning(self, *xs: Any) -> Any:
        return self.op.meaning(*xs)

    def work(self, target: Target, *specs: Spec) -> Work:
        def parts(out: tuple[View, ...], *operands: View, workspace: View | None = None) -> Iterator[Part]:
            return self.parts(target, out, operands, workspace)

        inner = {name: body.plan for name, body in zip(self.inner_names, self.plans)}
        nbytes = max(body.nbytes for body in self.plans)
        return Work(parts, nbytes, inner=inner, strided_operands=range(self.copied))

    def parts(
        self, target: Target, out: tuple[View, ...], operands: Sequence[View], workspace: View | None
    ) -> Iterator[Part]:
        """Yield the kernel calls, with markers around repeated and skipped ones."""
        raise NotImplementedError(f"{self.name} does not define parts")
