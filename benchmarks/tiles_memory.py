"""Memory that a function on tile registers keeps, so that it can be saved: ResNet-18, a process for each row. No times.

python -m benchmarks.tiles_memory

Kernels emulate tiles, which are made this process's default.
"""

import ctypes
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nn
from cgraph.engine.cpu.engine import CpuEngine
from tests.support.emulated import TilesEngine, compute_on_tiles

WAYS: dict[str, dict[str, Any]] = {
    "float32": {"engine": CpuEngine(tiles=False)},
    "tiles by default": {"precision": "bf16"},
    "tiles on request": {"engine": TilesEngine(), "precision": "bf16"},
}
MODELS = ("dropped", "in use")


def anonymous_nbytes() -> int:
    """Return the bytes of this process in memory that are not those of files."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous"))


def added_nbytes(way: str, model_stays: bool) -> int:
    """Return the bytes that a compiled ResNet-18 adds to this process, and its model if that stays."""
    nn.compile(nn.models.resnet20(0), **WAYS[way])  # loads what all compiles need
    before = anonymous_nbytes()
    model = nn.models.resnet18(0)
    function = nn.compile(model, **WAYS[way])
    if not model_stays:
        del model
    added = anonymous_nbytes() - before
    del function
    return added


def main(args: list[str]) -> None:
    if args:
        compute_on_tiles(pytest.MonkeyPatch())
        print(f"{' | '.join(args)} | {added_nbytes(args[0], args[1] == 'in use') / 1e6:.1f} MB")
        return
    for way in WAYS:
        for model in MODELS:
            subprocess.run([sys.executable, "-m", "benchmarks.tiles_memory", way, model], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
