"""The choice of tile registers (Intel AMX) for a graph: a default where a trial on this machine had the right bits."""

import hashlib
import os
from collections.abc import Iterable
from functools import cache

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.engine import Engine
from cgraph.ir.graph import Node
from cgraph.ir.spec import Spec
from cgraph.ir.traverse import post_order
from cgraph.kernels.cache import cache_folder
from cgraph.kernels.host import TILES, host, host_key, tiles_state
from cgraph.kernels.store import emitter_hash
from cgraph.kernels.target import host_target
from cgraph.late import LateModule
from cgraph.planning.options import CompileOptions
from cgraph.record import replace

child_processes = LateModule("cgraph.system.child_processes")
SECONDS = 120.0  # after this time a trial has failed
FAMILIES = ("tile_products", "tile_conv", "tile_attention")
RIGHT, WRONG = b"right", b"wrong"
BYTES = ("uint8", "int8")


def engines_of(engine: Engine, roots: Iterable[Node], options: CompileOptions) -> tuple[Engine, Engine]:
    """Return the engine that computes a graph, and the one whose code can be saved and which may need fewer bytes.

    They differ if the engine leaves the choice of tiles open (``tiles=None``), the graph gains from tiles, and this
    machine computes on them as the emulation does.
    """
    if type(engine) is not CpuEngine or engine.tiles is not None or not host().has(*TILES):
        return engine, engine
    if engine.kernel_target != host_target() or not gains_by_tiles(roots, options) or not tiles_compute():
        return engine, engine
    return replace(engine, tiles=True), replace(engine, tiles=False)


def gains_by_tiles(roots: Iterable[Node], options: CompileOptions) -> bool:
    """Return True for a graph that may round its products to bfloat16, or that has values of bytes."""
    nodes = post_order(tuple(roots))
    return options.in_pairs or any(isinstance(x.spec, Spec) and x.dtype in BYTES for x in nodes)


@cache
def tiles_compute() -> bool:
    """Return True if this process may use tiles and a trial on this machine had the right bits.

    A wrong instruction ends its process, so the trial is a child process, `cgraph.precision.tile_trial`. It runs once
    for a processor, a version of LLVM and the sources of the kernels: the cache folder keeps its answer.
    """
    if tiles_state() != "permitted":
        return False
    folder, key = cache_folder(), host_key()
    name = trial_name(key) if folder and key else None
    answer = folder.read(name) if folder and name else None
    if answer is None:
        is_right = run_trial()
        answer = RIGHT if is_right else WRONG
        if folder and name and is_right is not None:
            folder.write(name, answer)
    return answer == RIGHT


def trial_name(key: str) -> str:
    """Return the name of the file with a trial's answer, given a hash of the processor and of LLVM's library."""
    parts = (key, *map(emitter_hash, FAMILIES))
    return f"tiles_{hashlib.sha256(repr(parts).encode()).hexdigest()[:24]}"


def run_trial() -> bool | None:
    """Return whether the trial's process ends well; None if it took too long or could not start."""
    try:
        with open(os.devnull, "wb") as nowhere:
            status = child_processes.run_module("cgraph.precision.tile_trial", [], nowhere, nowhere, SECONDS)
    except OSError:
        return None
    return None if status is None else status == 0
