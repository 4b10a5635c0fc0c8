"""Engines whose targets have an instruction that this machine lacks: kernels emulate it with the same bits."""

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.kernels.isa.records import Target
from cgraph.kernels.target import target_named
from cgraph.record import replace


def with_pairs(target: Target) -> Target:
    """Return a target that multiplies pairs of bfloat16 numbers."""
    return replace(target, bf16=target.bf16 or "emulated")


class PairsEngine(CpuEngine):
    """The CPU engine on a target that multiplies pairs of bfloat16 numbers."""

    @property
    def kernel_target(self) -> Target:
        return with_pairs(target_named(self.target))


def with_tiles(target: Target) -> Target:
    """Return a target with tile registers, which kernels emulate."""
    return replace(target, tiles="emulated", bf16="")


class TilesEngine(CpuEngine):
    """The CPU engine on a target with emulated tile registers."""

    @property
    def kernel_target(self) -> Target:
        return with_tiles(target_named(self.target))
