"""Ops on channel-blocked frames of volumes: conversions, frames of zeros, pooling along the depth."""

from cgraph.errors import ShapeError
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.blocked_copy.calls import fill_halo_calls, to_blocked_calls, to_plain_calls
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.frames import Depth, FromFrames, PadFrames, PoolFrames, ToFrames, volumes_of
from cgraph.ops.physical.lanes import BlockedOp, require


class ToBlockedFrames(Op):
    """Volumes ``[n, c, d, h, w]`` as channel-blocked frames, with a zero halo.

    Fields
        form: of the frames
        volumes: n
    """

    form: Form
    volumes: int

    def infer(self, x: Spec) -> Spec:
        if ToFrames().infer(x).shape != self.form.logical or x.shape[0] != self.volumes:
            raise ShapeError(f"volumes {x} are not the frames {list(self.form.logical)}; pass volumes of that shape")
        return self.form.spec

    def meaning(self, x):
        return self.form.to_blocked(ToFrames().meaning(x))

    def work(self, target: Target, x: Spec) -> Work:
        depth = Depth(self.volumes, 1)

        def calls(out: View, x: View) -> list[Call]:
            to = self.form.at(out)
            copies = [
                to_blocked_calls(target, depth.results(to, i), v) for i, v in enumerate(volumes_of(x, self.volumes))
            ]
            return [*fill_halo_calls(to), *sum(copies, [])]

        return Work(calls)


class ToPlainFrames(Op):
    """Channel-blocked frames as volumes ``[n, c, d, h, w]``.

    Fields
        form: of the frames
        volumes: n
    """

    form: Form
    volumes: int

    def infer(self, x: Spec) -> Spec:
        require(x, self.form)
        return FromFrames(self.volumes).infer(Spec(self.form.logical, x.dtype))

    def meaning(self, x):
        return FromFrames(self.volumes).meaning(self.form.plain(x))

    def work(self, target: Target, x: Spec) -> Work:
        depth = Depth(self.volumes, 1)

        def calls(out: View, x: View) -> list[Call]:
            source = self.form.at(x)
            views = enumerate(volumes_of(out, self.volumes))
            return sum([to_plain_calls(target, v, depth.results(source, i)) for i, v in views], [])

        return Work(calls)


class BlockedFrames(BlockedOp):
    """PadFrames or PoolFrames of channel-blocked frames: the halo of a frame is part of it."""

    op: PadFrames | PoolFrames

    def meaning(self, x):
        (source,) = self.sources
        assert source is not None
        return self.result.to_blocked(self.op.meaning(source.plain(x)))

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: self.op.calls(target, out, x))
