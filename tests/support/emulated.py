"""Engines whose targets have an instruction that this machine lacks: kernels emulate it with the same bits."""

from types import SimpleNamespace

import pytest

from cgraph.engine.cpu import engine as engine_module
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.kernels.host import tiles_state
from cgraph.kernels.isa.records import Target
from cgraph.kernels.target import host_target, target_named, with_tiles
from cgraph.precision import tiles
from cgraph.precision.tile_trial import EmulatedTilesEngine
from cgraph.record import replace
from tests.support.kernels import TARGETS

TILES = (*TARGETS, "amx")  # names for `tiles_on`


def with_pairs(target: Target) -> Target:
    """Return a target that multiplies pairs of bfloat16 numbers."""
    return replace(target, bf16=target.bf16 or "emulated")


class PairsEngine(CpuEngine):
    """The CPU engine on a target that multiplies pairs of bfloat16 numbers."""

    @property
    def kernel_target(self) -> Target:
        return with_pairs(target_named(self.target))


def emulate_tiles(target: Target) -> Target:
    """Return a target with tile registers, which kernels emulate."""
    return replace(target, tiles="emulated", bf16="")


def tiles_on(name: str) -> Target:
    """Return a target with emulated tile registers, or with this machine's own for ``amx``; skip if it has none."""
    if name != "amx":
        return emulate_tiles(target_named(name))
    if tiles_state() != "permitted":
        pytest.skip("this process has no tile registers")
    return with_tiles(host_target())


TilesEngine = EmulatedTilesEngine


def compute_on_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine seem to have tile registers that passed the trial; kernels emulate them."""
    has_all = SimpleNamespace(has=lambda *features: True)
    monkeypatch.setattr(tiles, "host", lambda: has_all)
    monkeypatch.setattr(tiles, "tiles_compute", lambda: True)
    monkeypatch.setattr(engine_module, "with_tiles", emulate_tiles)
