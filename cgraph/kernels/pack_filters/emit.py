"""Packing of computed filters into the order in which the tile kernel reads them."""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of


@final
def pack(k: Builder, dtype: str, unroll: int, width: int) -> None:
    """Pack ``[panels, steps, unroll, width]``, zero where a filter lacks the channel. Task: one step of one panel."""
    a = k.args()
    with k.task_loop() as task:
        panel, step = divmod_of(task, a.steps)
        channel = a.panel_channels.load(panel) + a.channels.load(step)
        f = a.f + a.taps.load(step)
        out = a.out + task * (unroll * width)
        with k.loop(0, width) as lane:
            filter_ = panel * width + lane
            group, within = divmod_of(k.smaller(filter_, a.k - 1), a.k_per_group)
            at = f + (group * a.group + within * a.k_step)
            for u in range(unroll):
                c = channel + u - group * a.c_per_group
                inside = (filter_ < a.k) & (c >= 0) & (c < a.c_per_group)
                value = (at + k.select(inside, c, 0) * a.c_step).load()
                out.store(k.select(inside, value, k.const(0, dtype)), lane + u * width)
