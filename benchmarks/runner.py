"""Comparison of engines: each in a process of its own, in turns, so that other work affects all of them equally.

A benchmark module has ``prepare(engine, case, threads) -> run``: it builds the case for one engine and returns a
function that computes it once and returns arrays. A worker process (`benchmarks.worker`) calls it; the parent requests
timed runs by lines of JSON. Only one worker is awake at a time: the others are stopped, so that threads that spin after
their run disturb nobody.
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 9
SECONDS = 0.25  # minimum seconds of a turn
MOST_RUNS = 200  # minimum runs of a turn
TOLERANCE = 1e-4  # share of the largest value
ROUNDED = {"bf16": 0.3, "int8": 0.5}
"""The same for cases whose name ends in a precision: random weights amplify roundings more than trained ones."""
OURS = "cgraph"
WALL, PROCESSOR = "perf_counter", "process_time"  # clocks; the processor's is fair only between engines of one thread
# the same engine with other settings: numpy's OpenBLAS selects 256-bit kernels on recent AMD processors
SETTINGS = {"numpy-512": {"OPENBLAS_CORETYPE": "SKYLAKEX"}}


class Absent(Exception):
    """The engine is not installed, or cannot run this case: it is reported and omitted."""


@dataclass(frozen=True)
class Times:
    """Seconds of a run: the median over all turns, the shortest and the longest turn."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Row:
    """One case.

    Fields
        ratios: each peer's time over ours, the median over the turns: work that comes and goes affects both sides of a
            turn
        absent: reason why an engine is missing
        error: the largest relative difference from ours
    """

    case: str
    threads: int
    times: dict[str, Times]
    ratios: dict[str, float]
    absent: dict[str, str]
    error: dict[str, float]

    @property
    def best_peer(self) -> str | None:
        """The fastest of the peers with the same results."""
        peers = [name for name in self.ratios if self.error.get(name, 0.0) <= tolerance_of(self.case)]
        return min(peers, key=lambda name: self.ratios[name], default=None)

    @property
    def ratio(self) -> float | None:
        """Our speed relative to the best peer."""
        peer = self.best_peer
        return self.ratios[peer] if peer else None


def precision_of(case: str) -> tuple[str, str]:
    """Return a case without its precision, and the precision: ``bf16``, ``int8``, or none for float32."""
    name, _, precision = case.rpartition(" ")
    return (name, precision) if precision in ROUNDED else (case, "")


def tolerance_of(case: str) -> float:
    """Return the largest difference of the same results."""
    return ROUNDED.get(precision_of(case)[1], TOLERANCE)


class Worker:
    """One engine's process. Changes: it is awake only while it answers."""

    def __init__(self, module: str, engine: str, case: str, threads: int, folder: Path, clock: str) -> None:
        self.result = folder / f"{engine}.npz"
        command = [sys.executable, "-m", "benchmarks.worker", module, engine.split("-")[0], case, str(threads)]
        self.process = subprocess.Popen(
            [*command, str(self.result), clock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(engine, threads),
        )
        self.answer: dict[str, Any] = self._read()
        self._sleep()

    def seconds(self, runs: int) -> list[float]:
        self.process.send_signal(signal.SIGCONT)
        found = self._ask({"runs": runs})["seconds"]
        self._sleep()
        return found

    def _ask(self, question: dict) -> dict:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict:
        assert self.process.stdout
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"absent": f"its process ended with {self.process.wait()}"}

    def _sleep(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def environment(engine: str, threads: int) -> dict[str, str]:
    counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"))
    return os.environ | {name: str(threads) for name in counts} | SETTINGS.get(engine, {})


def compare(
    module: str, case: str, engines: Sequence[str], threads: int, rounds: int = ROUNDS, clock: str = WALL
) -> Row:
    """Measure a case on every engine in turns, and compare the results with ours."""
    times: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        started(module, case, engines, threads, Path(folder), clock) as workers,
    ):
        absent = {name: w.answer["absent"] for name, w in workers.items() if "absent" in w.answer}
        ready = {name: w for name, w in workers.items() if name not in absent}
        runs = {n: max(1, min(MOST_RUNS, int(SECONDS / w.answer["seconds"]))) for n, w in ready.items()}
        for _ in range(rounds):
            for name, worker in ready.items():
                times.setdefault(name, []).append(statistics.median(worker.seconds(runs[name])))
        errors = differences(ready)
    found = {n: Times(statistics.median(t), min(t), max(t)) for n, t in times.items()}
    ours = times.get(OURS, [])
    ratios = {n: statistics.median(a / b for a, b in zip(t, ours)) for n, t in times.items() if n != OURS and ours}
    return Row(case, threads, found, ratios, absent, errors)


@contextlib.contextmanager
def started(
    module: str, case: str, engines: Sequence[str], threads: int, folder: Path, clock: str
) -> Iterator[dict[str, Worker]]:
    workers: dict[str, Worker] = {}
    try:
        for engine in engines:
            workers[engine] = Worker(module, engine, case, threads, folder, clock)
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def differences(workers: dict[str, Worker]) -> dict[str, float]:
    """Return each peer's largest difference from ours, relative to our largest value."""
    if OURS not in workers:
        return {}
    ours = arrays_of(workers[OURS])
    found = {}
    for name, worker in workers.items():
        if name != OURS:
            pairs = list(zip(ours, arrays_of(worker), strict=True))
            found[name] = max(float(np.abs(a - b.reshape(a.shape)).max() / np.abs(a).max()) for a, b in pairs)
    return found


def arrays_of(worker: Worker) -> list[np.ndarray]:
    with np.load(worker.result) as file:
        return [file[name].astype("f8") for name in file.files]


# -- tables -----------------------------------------------------------------------------------------------------------


def header(engines: Sequence[str]) -> str:
    cells = "".join(f" {name:>26} |" for name in engines)
    return (
        f"| {'case':24} | thr |{cells} best peer / ours | error |\n|{'-' * 26}|----:|{'---:|' * len(engines)}---:|---:|"
    )


def text(row: Row, engines: Sequence[str]) -> str:
    """Return a row of the table, times in milliseconds."""
    cells = "".join(f" {cell(row.times.get(name)):>26} |" for name in engines)
    ratio = f"{row.ratio:.2f} ({row.best_peer})" if row.ratio else "-"
    most = tolerance_of(row.case)
    errors = f"{max((e for e in row.error.values() if e <= most), default=0.0):.0e}"
    errors += "".join(f"; {name} differs by {e:.0e}" for name, e in row.error.items() if not e <= most)
    return f"| {row.case:24} | {row.threads:3} |{cells} {ratio} | {errors} |"


def cell(times: Times | None) -> str:
    return f"{1e3 * times.median:.3g} ({1e3 * times.least:.3g}–{1e3 * times.most:.3g})" if times else "-"


def print_table(
    module: str, cases: Sequence[str], engines: Sequence[str], threads: Sequence[int], clock: str = WALL
) -> None:
    """Print all cases for all numbers of threads, each row when it is measured; then the absent engines, and the
    reasons.
    """
    print(header(engines))
    missing: dict[str, str] = {}
    for case in cases:
        for count in threads:
            row = compare(module, case, engines, count, clock=clock)
            missing |= row.absent
            print(text(row, engines), flush=True)
    for name, why in missing.items():
        print(f"without {name} where it shows -: {why}")
