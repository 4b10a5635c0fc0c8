"""Weights streamed from disk, compared with weights in memory: time of a run, memory of the process, waits of runs.

    python -m benchmarks.weights NETWORK [--rings MIB ...] [--budget MIB] [--runs N] [--rounds N]   # yolov3, …, vgg16

Fresh processes in turns, one for each ring, or one with a budget for ring, arena and constants, and one with all
weights in memory; medians. Darknet's networks are those of Demand Layering (Ji et al., RTSS 2022), from the folder of
shared
data; weights are drawn, as times do not depend on them. Convolutions are direct. *Grown* is the memory of a process
after its runs minus that before the first, *cached* the part of the file in the system's cache.
"""

import argparse
import ctypes
import gc
import json
import mmap
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import cgraph as cg
import nn
from cgraph.formats import darknet

DARKNET = Path(__file__).resolve().parents[2] / "shared" / "data" / "darknet_demand"
MIB = 1 << 20


def network(name: str) -> tuple[Any, Any]:
    """Return outputs and inputs."""
    if name == "vgg16":
        x = cg.Var((1, 3, 224, 224), name="x")
        return nn.freeze(nn.models.vgg16(0))(x), x
    model = darknet.load(DARKNET / f"{name}.cfg", seed=0)
    return model.outputs, model.inputs


def memory() -> int:
    """Return the bytes of this process that belong to no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def cached(path: str) -> int:
    """Return the bytes of a file that are in the system's page cache: `man 2 mincore`."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as pages:
        resident = (ctypes.c_ubyte * -(-len(pages) // mmap.PAGESIZE))()
        start = ctypes.c_char.from_buffer(pages)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(start), ctypes.c_size_t(len(pages)), resident)
        del start
    assert not failed
    return sum(x & 1 for x in resident) * mmap.PAGESIZE


def options_of(way: str, path: str) -> dict[str, Any]:
    """Return options of `compile` for `memory`, `ring:MIB` or `budget:MIB`."""
    kind, _, mib = way.partition(":")
    if kind == "memory":
        return {}
    if kind == "ring":
        return {"weights": cg.StreamedWeights(path, int(float(mib) * MIB))}
    return {"weights": cg.StreamedWeights(path), "budget": int(float(mib) * MIB)}


def child(name: str, way: str, folder: str, runs: int) -> dict[str, float]:
    outputs, inputs = network(name)
    path = f"{folder}/{name}"
    function = cg.compile(outputs, inputs, winograd=False, **options_of(way, path))
    del outputs
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory freed after compiling must not serve the runs
    values = [np.random.default_rng(0).random(x.shape, np.float32) for x in function.inputs]
    before, seconds = memory(), []
    for _ in range(runs):
        start = perf_counter()
        function(*values)
        seconds.append(perf_counter() - start)
    ring = function.program.code.ring
    pieces = ring.pieces if ring else ()
    waited = function._idle[-1].instance.waited / runs if ring else 0.0
    return {
        "seconds": median(seconds),
        "waited": waited,
        "weights": sum(p.nbytes for p in pieces) / MIB,
        "pieces": len(pieces),
        "arena": function.nbytes / MIB,
        "grown": (memory() - before) / MIB,
        "cached": cached(path) / MIB if ring else 0.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weights", description=__doc__)
    parser.add_argument("network")
    parser.add_argument("--rings", type=float, nargs="*", default=[12.0])
    parser.add_argument("--budget", type=float)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(args.network, *args.child, args.runs)))
        return
    ways = ["memory", *(f"ring:{mib:g}" for mib in args.rings), *([f"budget:{args.budget:g}"] if args.budget else [])]
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for _ in range(args.rounds):
            for way in ways:
                command = [sys.executable, "-m", "benchmarks.weights", args.network, "--child", way, folder]
                command += ["--runs", str(args.runs)]
                done = subprocess.run(command, capture_output=True, check=True, text=True)
                found[way].append(json.loads(done.stdout))
    rows = {way: {key: median(row[key] for row in rows) for key in rows[0]} for way, rows in found.items()}
    names = ("MiB", "weights MiB", "pieces", "arena MiB", "grown MiB", "cached MiB", "s", "waited s", "delay")
    print(f"| {' | '.join(names)} |\n|{'---:|' * len(names)}")
    for way, row in rows.items():
        delay = f"{100 * (row['seconds'] / rows['memory']['seconds'] - 1):+.1f} %" if way != "memory" else ""
        print(
            f"| {way.replace(':', ' ')} | {row['weights']:.1f} | {row['pieces']:.0f} | {row['arena']:.2f} | "
            f"{row['grown']:.1f} | {row['cached']:.1f} | {row['seconds']:.3f} | {row['waited']:.3f} | {delay} |"
        )


if __name__ == "__main__":
    main()
