"""Features of boxes below lowering, on blocked images."""

from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.calls.blocked_copy import zero_halo_calls
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.ops.physical.blocked import require
from cgraph.ops.physical.form import Form
from cgraph.ops.regions import RoiAlign, RoiAlignGrad


class BlockedRoiAlign(Op):
    """What boxes see of blocked images, in blocks."""

    align: RoiAlign
    sources: tuple[Form, ...]
    result: Form
    can_fail = True

    @property
    def name(self) -> str:
        return "roi_align"

    def infer(self, boxes: Spec, batch: Spec, level: Spec, *levels: Spec) -> Spec:
        for x, form in zip(levels, self.sources, strict=True):
            require(x, form)
        return self.result.spec

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, boxes: View, batch: View, level: View, *levels: View) -> list[Call]:
            to = self.result.at(out.at)
            sources = [form.at(x.at) for form, x in zip(self.sources, levels)]
            return [*zero_halo_calls(to), *self.align.calls(to, boxes, batch, level, sources)]

        return Work(calls)


class BlockedRoiAlignGrad(Op):
    """The gradient of `RoiAlign` for blocked images, in blocks."""

    spread: RoiAlignGrad
    source: Form
    result: Form

    @property
    def name(self) -> str:
        return "roi_align_grad"

    def infer(self, boxes: Spec, batch: Spec, level: Spec, g: Spec) -> Spec:
        require(g, self.source)
        return self.result.spec

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, boxes: View, batch: View, level: View, g: View) -> list[Call]:
            to = self.result.at(out.at)
            return [*zero_halo_calls(to), *self.spread.calls(to, boxes, batch, level, self.source.at(g.at))]

        return Work(calls)
