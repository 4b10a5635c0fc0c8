"""``cgraph info``: show the processor, the number of threads, and the kernel cache."""

import argparse
import json
import os
import platform
from importlib.metadata import version
from typing import Any

from cgraph.engine.cpu.cores import GROUPS, MOUNT, cores, quota_of
from cgraph.engine.cpu.engine import cpu_name
from cgraph.engine.cuda.gpu import describe_gpus
from cgraph.errors import EngineError, bytes_text
from cgraph.kernels.cache import CacheFolder
from cgraph.kernels.host import tiles_state
from cgraph.kernels.isa.bfloat16 import PAIRS, has_instruction, reason_for_float32
from cgraph.kernels.store import store
from cgraph.kernels.target import host_target
from cgraph.precision.tiles import tiles_compute
from cgraph.system.machine import allowed_processors
from cgraph.terminal import say
from cgraph.version import __version__

TILES = {
    "used": "Intel AMX: they multiply bytes, and with precision=bf16 floats",
    "wrong": "Intel AMX, but a trial of them failed on this machine: only CpuEngine(tiles=True) uses them",
    "refused": "Intel AMX, but the system refuses them to this process, as it does where a signal stack is small",
    None: "this processor has none",
}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "info",
        help="show the machine, the threads and the kernels on disk",
        description="Show the processor that kernels are compiled for, the threads of a run, and the kernels on disk.",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, with bytes as numbers")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a line, or a key, for each fact."""
    facts = gather()
    if args.json:
        say(json.dumps(facts, indent=1))
        return 0
    quota = facts["quota"]
    lines = {
        "cgraph": facts["cgraph"],
        "processor": f"{facts['cpu']}, kernels for {facts['target']} ({facts['float32_lanes']} float32 at a time)",
        "bf16": bf16_text(facts),
        "tiles": TILES[facts["tiles"]],
        "threads": f"{facts['threads']}: of {facts['cores']} cores this process may use {facts['affinity']}, "
        + (f"its quota is {quota:g}" if quota is not None else "without a quota"),
        "kernels": _kernels_text(facts),
        "cuda": "; ".join(facts["cuda"]) or facts["no_cuda"],
        "versions": f"Python {facts['python']}, NumPy {facts['numpy']}, llvmlite {facts['llvmlite']}",
    }
    for name, text in lines.items():
        say(f"{name:<11}{text}")
    return 0


def gather() -> dict[str, Any]:
    """Return the facts: counts, bytes, versions and names; None for missing ones."""
    target, folder, tiles = host_target(), store().folder, tiles_state()
    if tiles == "permitted":
        tiles = "used" if tiles_compute() else "wrong"
    files, table = kernel_files(folder), store().table(target)
    gpus, reason = gpu_lines()
    return {
        "cgraph": __version__,
        "cpu": cpu_name(),
        "target": target.name,
        "float32_lanes": target.lanes,
        "bf16": "tiles" if tiles == "used" else "pairs" if target.bf16 else "float32",
        "vdpbf16ps": has_instruction(target, PAIRS),
        "no_bf16": reason_for_float32(target) or None,
        "tiles": tiles or None,
        "cores": os.cpu_count(),
        "affinity": allowed_processors(),
        "quota": quota_of(GROUPS, MOUNT),
        "threads": cores(),
        "built_kernels": len(table.places) if table else 0,
        "cache": str(folder) if folder else None,
        "cache_kernels": len(files),
        "cache_nbytes": sum(files),
        "cuda": gpus,
        "no_cuda": reason,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "llvmlite": version("llvmlite"),
    }


def bf16_text(facts: dict[str, Any]) -> str:
    """Return what ``precision="bf16"`` computes with, and why."""
    if facts["bf16"] == "tiles":
        return "precision=bf16 rounds: products of tiles are faster than float32, also in training"
    if facts["bf16"] == "pairs":
        instruction = "vdpbf16ps" if facts["vdpbf16ps"] else "one instruction"
        reason = f"{instruction} adds up two products in the time of a float32 multiply-add"
        return f"precision=bf16 rounds: {reason}, also in training"
    return f"precision=bf16 computes and trains in float32: {facts['no_bf16']}"


def gpu_lines() -> tuple[list[str], str | None]:
    """Return a line for each GPU, or the reason why there is none."""
    try:
        return describe_gpus(), None
    except EngineError as error:
        return [], str(error)


def kernel_files(folder: CacheFolder | None) -> list[int]:
    """Return bytes of each kernel on disk."""
    if folder is None:
        return []
    return [nbytes for _, nbytes, name in folder.entries() if name.endswith((".o", ".ptx"))]


def _kernels_text(facts: dict[str, Any]) -> str:
    built = f"{facts['built_kernels']} built with the package; " if facts["built_kernels"] else ""
    if facts["cache"] is None:
        return f"{built}not kept: the cache folder does not belong only to this user"
    return f"{built}{facts['cache_kernels']} on disk, {bytes_text(facts['cache_nbytes'])}, in {facts['cache']}"
