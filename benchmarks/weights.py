"""Weights from disk beside weights in memory: time of a run, memory of the process, how long runs waited.

    python -m benchmarks.weights NETWORK [--rings MIB ...] [--rounds N]     # yolov3, yolov4, …, vgg16

Fresh processes in turns, one for each ring and one that holds all weights; medians. Darknet's networks are those of
Demand Layering (Ji et al., RTSS 2022), from the folder of shared data; weights are drawn, as times do not depend on
them. Convolutions are direct. What a process has held before its first run is not counted.
"""

import argparse
import json
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
RUNS = 3


def network(name: str) -> tuple[Any, Any]:
    """Outputs and inputs."""
    if name == "vgg16":
        x = cg.Var((1, 3, 224, 224), name="x")
        return nn.freeze(nn.models.vgg16(0))(x), x
    model = darknet.load(DARKNET / f"{name}.cfg", seed=0)
    return model.outputs, model.inputs


def memory() -> int:
    """Bytes of this process that are no file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def child(name: str, ring: float, folder: str) -> dict[str, float]:
    outputs, inputs = network(name)
    weights = cg.StreamedWeights(f"{folder}/{name}", int(ring * MIB)) if ring else None
    function = cg.compile(outputs, inputs, winograd=False, weights=weights)
    del outputs
    values = [np.random.default_rng(0).random(x.shape, np.float32) for x in function.inputs]
    before, seconds = memory(), []
    for _ in range(RUNS):
        start = perf_counter()
        function(*values)
        seconds.append(perf_counter() - start)
    pieces = function.program.code.ring.pieces if ring else ()
    waited = function._idle[-1].instance.waited / RUNS if ring else 0.0
    return {
        "seconds": median(seconds),
        "waited": waited,
        "weights": sum(p.nbytes for p in pieces) / MIB,
        "pieces": len(pieces),
        "arena": function.nbytes / MIB,
        "grown": (memory() - before) / MIB,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weights", description=__doc__)
    parser.add_argument("network")
    parser.add_argument("--rings", type=float, nargs="+", default=[12.0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, metavar=("RING", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(args.network, float(args.child[0]), args.child[1])))
        return
    found: dict[float, list[dict[str, float]]] = {ring: [] for ring in (0.0, *args.rings)}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for _ in range(args.rounds):
            for ring in found:
                command = [sys.executable, "-m", "benchmarks.weights", args.network, "--child", str(ring), folder]
                found[ring].append(
                    json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
                )
    rows = {ring: {key: median(row[key] for row in rows) for key in rows[0]} for ring, rows in found.items()}
    names = ("ring MiB", "weights MiB", "pieces", "arena MiB", "grown MiB", "s", "waited s", "delay")
    print(f"| {' | '.join(names)} |\n|{'---:|' * len(names)}")
    for ring, row in rows.items():
        delay = f"{100 * (row['seconds'] / rows[0.0]['seconds'] - 1):+.1f} %" if ring else ""
        print(
            f"| {ring or 'in memory'} | {row['weights']:.1f} | {row['pieces']:.0f} | {row['arena']:.2f} | "
            f"{row['grown']:.1f} | {row['seconds']:.3f} | {row['waited']:.3f} | {delay} |"
        )


if __name__ == "__main__":
    main()
