"""Soak test: many mixed calls in one process, and the growth of its memory after a warm-up.

    python -m benchmarks.soak [--calls 50000] [--warm-up 10000] [--seed 0]

Each call does one of these with new inputs: an incremental run after a new set of Vars changed; a run of
`compile_sizes` with a new size; `cg.eval` and `cg.item` of a new graph with new constants; a training step; assignments
of one Var and of several; `save_state` and `load_state`.
"""

import argparse
import gc
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.storage.cell import assign_all

CELLS, MEASUREMENTS, MIB = 16, 20, 1 << 20
WEIGHTS: dict[str, float] = {
    "incremental": 0.7, "assignment": 0.1, "step": 0.165, "size": 0.01, "eval": 0.01, "item": 0.01, "state": 0.005,
}  # fmt: skip
"""Weight of each kind of call."""


class Soak:
    """The functions that are called. Changes: with every call.

    Fields
        calls: the functions by name
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng, self.path = np.random.default_rng(seed), folder / "state"
        self.cells = [cg.Var((8,), "float64", f"v{i}").assign(np.zeros(8)) for i in range(CELLS)]
        self.read = cg.compile([cg.sort(cg.cumsum(x, 0)) * 0.5 + x for x in self.cells], threads=1)
        self.step = cg.compile([], updates={x: x * 0.5 + 1 for x in self.cells}, threads=1)
        self.sized = cg.compile_sizes(self.graph, {"x": ("n",)}, threads=1)
        self.calls: Mapping[str, Callable[[], Any]] = {
            "incremental": self.incremental,
            "assignment": lambda: assign_all({x: self.rng.random(8) for x in self.cells}),
            "step": self.step,
            "size": lambda: self.sized(self.rng.random(self.rng.integers(1, 2000))),
            "eval": lambda: self.new_graph().eval(),
            "item": lambda: cg.item(cg.sum(self.new_graph())),
            "state": self.state,
        }
        self.sized(np.ones(1))  # it has other kernels; compiling them at a late call would load LLVM

    def graph(self, sizes: Mapping[str, int]) -> tuple[cg.Node, list[cg.Var]]:
        """Return the graph of one size."""
        x = cg.Var((sizes["n"],), "float64", "x")
        return cg.sort(x) * 2 + self.cells[0][0], [x]

    def new_graph(self) -> cg.Node:
        """Return a graph of unique constants."""
        return cg.sort(cg.Const(self.rng.random(self.rng.integers(100, 200)))) * self.rng.random() + self.cells[1][0]

    def incremental(self) -> None:
        """Run after some of the Vars changed."""
        for i in np.flatnonzero(self.rng.random(CELLS) < 0.5):
            self.cells[i].assign(self.rng.random(8))
        self.read()

    def state(self) -> None:
        """Write the state, and read it again."""
        self.step.save_state(self.path)
        self.step.load_state(self.path)


def soaked(count: int, first: int, seed: int = 0) -> Iterator[tuple[int, int, int]]:
    """Return calls so far, bytes of traced memory and of the process, at equal distances after the `first` calls."""
    tracemalloc.start()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(seed, Path(folder))
        every = max((count - first) // MEASUREMENTS, 1)
        kinds = soak.rng.choice(list(WEIGHTS), count, p=list(WEIGHTS.values()))
        for i, kind in enumerate(kinds, 1):
            soak.calls[kind]()
            if i >= first and (i - first) % every == 0:
                gc.collect()
                yield i, tracemalloc.get_traced_memory()[0], resident_nbytes()
    tracemalloc.stop()


def resident_nbytes() -> int:
    """Return the bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def growth(points: list[int]) -> int:
    """Return the increase from the first quarter of the measurements to the last one, as medians."""
    part = max(len(points) // 4, 1)
    return int(np.median(points[-part:]) - np.median(points[:part]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--warm-up", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    points = []
    for calls, traced, resident in soaked(args.calls, args.warm_up, args.seed):
        print(f"{calls:7} calls: {traced / MIB:7.2f} MiB traced, {resident / MIB:7.1f} MiB resident", flush=True)
        points.append((calls, traced, resident))
    traced, resident = (growth([x[i] for x in points]) for i in (1, 2))
    print(f"growth after the warm-up: {traced / MIB:.2f} MiB traced, {resident / MIB:.2f} MiB resident")


if __name__ == "__main__":
    main()
