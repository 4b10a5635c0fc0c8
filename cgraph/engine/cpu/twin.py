"""Twins: code of this machine's instructions with the vectors of another processor, which has that processor's bits."""

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import GraphError
from cgraph.kernels.isa.architectures import architecture_of, host_architecture
from cgraph.kernels.isa.records import Target
from cgraph.kernels.target import host_target, target_named
from cgraph.record import replace


class TwinEngine(CpuEngine):
    """The CPU engine with the lanes and the fused multiply-add of another target, as AVX2 code.

    Results depend on how many lanes a sum has and on whether products are rounded, not on the instructions. So what a
    twin computes is what the other processor must compute, bit for bit.

    A budget is of the other processor's memory. A twin needs other workspaces, so it takes its
    smallest plan if none fits.

    Fields
        of: the other target
    """

    of: Target | None = None
    exceeds_budget = True

    @property
    def kernel_target(self) -> Target:
        """The other target's lanes with this machine's instructions."""
        assert self.of is not None
        own = host_architecture()
        if architecture_of(self.of) is own:
            return target_named(self.of.name)
        like = [x for x in own.targets if x.fma == self.of.fma and runs_here(x)]
        if not like:
            raise GraphError(
                "this machine does not round products as the exported code does, so it cannot check it. "
                "Pass check=False"
            )
        return replace(
            like[0],
            name=f"twin-{self.of.name}",
            lanes=self.of.lanes,
            registers=self.of.registers,
            dot="plain",
            converts_half=False,
            has_libc=self.of.has_libc,
        )


def runs_here(target: Target) -> bool:
    """Return True if this machine runs a target of its architecture."""
    return target.lanes <= host_target().lanes
