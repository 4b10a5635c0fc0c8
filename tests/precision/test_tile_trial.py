"""The trial of tile registers: equal bits pass, any other kernel is noticed, and its process fails without tiles."""

import numpy as np
import pytest

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.traverse import post_order
from cgraph.kernels.host import tiles_state
from cgraph.ops.leaf import ConstOp
from cgraph.ops.physical.tile_attention import TiledAttention
from cgraph.ops.physical.tile_conv import TileConv, TileIntegerConv
from cgraph.ops.physical.tile_transposed import TileConvTranspose
from cgraph.ops.physical.tiled import TiledIntegerMatmul, TiledMatmul
from cgraph.precision import tile_trial
from cgraph.precision.tile_trial import EmulatedTilesEngine, cases, differences, result
from cgraph.precision.tiles import run_trial

EMULATED = EmulatedTilesEngine(threads=1)


def test_equal_engines_do_not_differ():
    assert differences(EMULATED, EMULATED) == 0


def test_floats_that_are_not_rounded_differ_and_bytes_do_not():
    assert differences(CpuEngine(threads=1, tiles=False), EMULATED) == 4


def test_every_kind_of_kernel_for_tiles_is_tried(monkeypatch):
    found = set()

    class Listing(EmulatedTilesEngine):
        def plan(self, request, options):
            compiled = super().plan(request, options)
            found.update(type(n.op) for n in compiled.layout.steps)
            return compiled

    for case in cases():
        result(Listing(threads=1), *case)
    assert {TiledMatmul, TiledIntegerMatmul, TileConv, TileConvTranspose, TileIntegerConv, TiledAttention} <= found


@pytest.mark.parametrize("number", range(6))
def test_one_wrong_result_is_counted(number, monkeypatch):
    results = [b"right"] * 12
    results[2 * number] = b"wrong"
    monkeypatch.setattr(tile_trial, "result", lambda *args: results.pop(0))
    assert differences(EMULATED, EMULATED) == 1 and not results


def test_a_trial_passes_where_there_are_tiles_and_nowhere_else():
    assert run_trial() == (tiles_state() == "permitted")


def test_the_numbers_of_the_trial_cover_their_ranges():
    """Instructions differ by the signs of their bytes: both ends, and numbers next to them, are among the operands."""
    arrays = [value for _, _, value in cases()]
    arrays += [n.op.array for y, _, _ in cases() for n in post_order([y]) if isinstance(n.op, ConstOp)]
    kinds = {(x.dtype.name, x.ndim) for x in arrays}
    assert {("uint8", 2), ("uint8", 4), ("int8", 2), ("int8", 4), ("float32", 2), ("float32", 4)} <= kinds
    for x in arrays:
        if x.dtype.kind in "iu" and x.dtype.itemsize == 1:
            ends = np.iinfo(x.dtype)
            assert x.min() <= ends.min + 4 and x.max() >= ends.max - 4
        elif x.ndim > 1:
            assert x.min() < -2 and x.max() > 2
        elif x.dtype.kind == "i":
            assert x.min() < 0 < x.max()
