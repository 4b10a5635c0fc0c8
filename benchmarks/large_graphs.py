"""Cost of compiling large graphs: chains, many users of one node, and a mixture, of up to 200,000 nodes.

    python -m benchmarks.large_graphs [chain wide mixed]

Seconds are the processor's, of the one thread that compiles, so other work on the machine hardly affects them. Each
graph is
compiled in a process of its own, after a smaller one of the same kind that compiles the kernels.
"""

import random
import subprocess
import sys
import time

import numpy as np

import cgraph as cg
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order

SIZES = (50_000, 100_000, 200_000)
WARM = 2_000  # nodes


def chain(count: int) -> list[Node]:
    """Return steps one after the other that are not fused."""
    y = cg.Var((4, 4), name="x")
    for i in range(count):
        y = cg.cumsum(y, i % 2)
    return [y]


def wide(count: int) -> list[Node]:
    """Return many users of one node, added up in pairs; pointwise ops are fused."""
    x = cg.Var((4, 4), name="x")
    found = [cg.sin(x * np.float32(i + 1)) for i in range(count // 5)]
    while len(found) > 1:
        found = [sum(found[i + 1 : i + 2], found[i]) for i in range(0, len(found), 2)]
    return found


def mixed(count: int) -> list[Node]:
    """Return forks, joins, views, reductions, scans and pointwise ops, on earlier nodes at a distance of up to
    twenty.
    """
    rng = random.Random(1)
    found: list[Node] = [cg.Var((4, 6), name="x")]
    while len(found) < count // 2:
        x, y = (found[-rng.randint(1, min(len(found), 20))] for _ in range(2))
        kind = len(found) % 5
        if kind == 0:
            found.append(cg.cumsum(x * y, 0))
        elif kind == 1:
            found.append(cg.transpose(cg.cumsum(cg.transpose(x), 0)) + y)
        elif kind == 2:
            found.append(cg.softmax(x, -1))
        elif kind == 3:
            found.append(cg.concat([x[:2], y[2:]], 0))
        else:
            found.append(cg.broadcast_to(cg.sum(x, 1, keepdims=True), x.shape) * y)
    return found[-1:]


GRAPHS = {"chain": chain, "wide": wide, "mixed": mixed}


def row(name: str, count: int) -> str:
    make = GRAPHS[name]
    cg.compile(make(WARM))
    begin = time.process_time()
    outputs = make(count)
    built = time.process_time()
    function = cg.compile(outputs)
    end = time.process_time()
    nodes, steps = len(post_order(outputs)), len(function.compiled.layout.steps)
    return (
        f"| {name} | {nodes} | {steps} | {built - begin:.1f} | {end - built:.1f} | {(end - built) / nodes * 1e6:.0f} |"
    )


def main(names: list[str]) -> None:
    print("| graph | nodes | steps | build s | compile s | µs a node |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for name in names or GRAPHS:
        for count in SIZES:
            script = f"from benchmarks.large_graphs import row; print(row({name!r}, {count}))"
            subprocess.run([sys.executable, "-c", script], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
