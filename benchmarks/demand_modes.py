"""The pipelines of Demand Layering on this engine, and weights in slices: predicted and measured.

    python -m benchmarks.demand_modes NETWORK [--rounds N] [--threads N]     # yolov4, resnet152, …

One process, modes in turns, medians; every run begins with nothing read ahead. Pieces are whole layers for the paper's
modes; `seq`, `sync` and `async` copy what was read to a second ring, as on a GPU with memory of its own, with a reader
in Python instead of the native one. Predictions use the times of steps, reads and copies, each measured alone.
"""

import argparse
import ctypes
import mmap
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np

import cgraph as cg
from benchmarks.demand_layering import MIB, MODES, PAPER, Times, delay_of, ring_of, rooms
from benchmarks.weights import network
from cgraph.engine.cpu import reader as readers
from cgraph.engine.cpu import threads
from cgraph.engine.cpu.code import Piece
from cgraph.engine.cpu.ring import place_pieces
from cgraph.engine.cpu.ring_timing import waits_of
from cgraph.kernels.control import FREED, HALT, READ
from cgraph.kernels.interpret.emit import ANY, FUTEX_WAKE
from cgraph.record import Record, replace
from cgraph.view.timing import step_seconds
from cgraph.view.weights import read_seconds, row_seconds

BLOCKS = ((12, 4), (32, 4), (3, 1))  # MiB of ring and of a slice
WHOLE = 1 << 30  # bytes of a ring, and of a slice, large enough for any of the networks
POLL = 5e-5  # seconds between two polls of a word
WORD = 8  # bytes
LIBC = ctypes.CDLL(None)


class Words:
    """The words that a run shares with its reader, for a reader in Python. Changes: the words."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.words = np.ctypeslib.as_array((ctypes.c_int64 * (HALT + 1)).from_address(address))

    def wait(self, is_so: Callable[[], bool]) -> bool:
        """Wait until the condition holds; return False if the reader must stop."""
        while not is_so() and not self.words[HALT]:
            time.sleep(POLL)
        return not self.words[HALT]

    def has_freed(self, count: int) -> bool:
        return self.wait(lambda: bool(self.words[FREED] >= count))

    def tell(self, count: int) -> None:
        """Publish the number of pieces that are present, and wake threads that wait for the word."""
        self.words[READ] = count
        at = ctypes.c_void_p(self.address + WORD * READ)
        LIBC.syscall(threads.futex_number(), at, FUTEX_WAKE, 0x7FFFFFFF, None, None, ANY)


class First:
    """The ring that is read into, before the copy. Changes: its contents."""

    def __init__(self, nbytes: int) -> None:
        self.memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = np.frombuffer(self.memory, np.uint8, 1).ctypes.data

    def read(self, file: int, offset: int, nbytes: int, at: int) -> None:
        done = 0
        while done < nbytes:
            done += os.preadv(file, [memoryview(self.memory)[at + done : at + min(nbytes, done + MIB)]], offset + done)

    def copy(self, at: int, to: int, nbytes: int) -> None:
        ctypes.memmove(to, self.address + at, nbytes)


Order = Sequence[int]  # position in the file, bytes, address, number that must be released, counter afterwards
Read = Callable[[Words, Sequence[Order], int, First], None]


def in_sequence(words: Words, orders: Sequence[Order], file: int, first: First) -> None:
    """Read and copy a layer after the layer before it is computed."""
    for i, (offset, nbytes, address, _, number) in enumerate(orders):
        if not words.has_freed(i):
            return
        first.read(file, offset, nbytes, 0)
        first.copy(0, address, nbytes)
        words.tell(number)


def in_cycles(words: Words, orders: Sequence[Order], file: int, first: First) -> None:
    """Read a layer while the one before it is copied and the one before that is computed; all stages go on together."""
    half = len(first.memory) // 2
    with ThreadPoolExecutor(1) as copier:
        for cycle in range(len(orders) + 1):
            if not words.has_freed(max(cycle - 2, 0)):
                return
            copied = None
            if cycle:
                _, nbytes, address, _, _ = orders[cycle - 1]
                copied = copier.submit(first.copy, (cycle - 1) % 2 * half, address, nbytes)
            if cycle < len(orders):
                offset, nbytes, *_ = orders[cycle]
                first.read(file, offset, nbytes, cycle % 2 * half)
            if copied:
                copied.result()
                words.tell(orders[cycle - 1][-1])


def apart(words: Words, orders: Sequence[Order], file: int, first: First) -> None:
    """Read, copy and compute, each as soon as possible."""
    sizes, done = [order[1] for order in orders], SimpleNamespace(read=0, copied=0)
    room, places = rooms(sizes, len(first.memory)), starts(sizes, len(first.memory))

    def read_all() -> None:
        for i, (offset, nbytes, *_) in enumerate(orders):
            if not words.wait(lambda wanted=room[i]: done.copied >= wanted):  # type: ignore[misc]
                return
            first.read(file, offset, nbytes, places[i])
            done.read = i + 1

    reader = threading.Thread(target=read_all)
    reader.start()
    for i, (_, nbytes, address, freed, number) in enumerate(orders):
        if not (words.wait(lambda wanted=i: done.read > wanted) and words.has_freed(freed)):  # type: ignore[misc]
            break
        first.copy(places[i], address, nbytes)
        done.copied = i + 1
        words.tell(number)
    reader.join()


def starts(sizes: Sequence[int], ring: int) -> list[int]:
    """Return the positions of items in a ring: each after the last one, or at 0 if it does not fit."""
    found, at = [], 0
    for size in sizes:
        at = at if at + size <= ring else 0
        found.append(at)
        at += size
    return found


class Way(Record, eq=False):
    """A mode on this engine.

    Fields
        mode: mode of the paper; None for slices
        function: the Function with a ring of its own
        nbytes: bytes of all rings
        read: a reader in Python; None for the native one
    """

    mode: str
    function: Any
    nbytes: int
    predicted: float
    read: Callable[[int, int, int, int], int] | None = None


def with_ring(function: Any, pieces: Sequence[Piece], nbytes: int) -> Any:
    """Return the function with its pieces at other positions of another ring."""
    made, code = copy(function), function.program.code
    made.program = replace(function.program, code=replace(code, ring=replace(code.ring, nbytes=nbytes, pieces=pieces)))
    return made


def reader_of(read: Read, first: First) -> Callable[[int, int, int, int], int]:
    """Return a function that replaces `ring.read`."""

    def found(words: int, orders: int, count: int, file: int) -> int:
        table = np.ctypeslib.as_array((ctypes.c_int64 * (5 * count)).from_address(orders)).reshape(-1, 5)
        read(Words(words), table.tolist(), file, first)
        return count

    return found


def paper_ways(function: Any, t: Times, before: float, whole: float) -> Iterator[Way]:
    """Return the paper's modes over whole layers; steps before the first layer are not part of the pipeline."""
    pieces, largest = function.program.code.ring.pieces, max(t.nbytes)
    readers = {"seq": (in_sequence, 1), "sync": (in_cycles, 2), "async": (apart, 1), "async-md": (apart, 1)}
    for name, mode in MODES.items():
        ring = ring_of(mode, t)
        if name == "seq":
            held, second = tuple(replace(p, at=0) for p in pieces), largest
        elif name == "sync":
            held, second = tuple(replace(p, at=i % 2 * largest) for i, p in enumerate(pieces)), 2 * largest
        else:
            held, second = place_pieces(pieces, ring), ring
        made, delay = with_ring(function, held, second), before + delay_of(mode, t, ring) - whole
        read, times = readers.get(name, (None, 0))
        first = times * ring if read else 0
        yield Way(name, made, first + second, delay, reader_of(read, First(first)) if read else None)


def times_of(function: Any, rows: np.ndarray, values: Sequence[np.ndarray]) -> tuple[Times, float]:
    """Return seconds of each layer here, and of the rows before the first: kernels from times of rows, others
    measured.
    """
    pieces = function.program.code.ring.pieces
    with function.instance_for(tuple(values), {}) as instance:
        reads = tuple(min(read_seconds(instance, p) for _ in range(2)) for p in pieces)
    edges = [*(p.first for p in pieces), len(rows)]
    kernels = tuple(float(rows[low:high].sum()) for low, high in zip(edges, edges[1:]))
    sizes = tuple(p.nbytes for p in pieces)
    return Times(sizes, reads, tuple(map(copy_seconds, sizes)), kernels), float(rows[: edges[0]].sum())


def copy_seconds(nbytes: int) -> float:
    """Return seconds of copying so many bytes, the second time."""
    first, second = First(nbytes), First(nbytes)
    for _ in range(2):
        start = time.perf_counter()
        first.copy(0, second.address, nbytes)
    return time.perf_counter() - start


@contextmanager
def reading(way: Way) -> Iterator[None]:
    """Install the mode's own reader within this context."""
    native = threads.native()
    other = native if way.read is None else SimpleNamespace(read=way.read, halt=native.halt)
    readers.native = lambda: other  # type: ignore[assignment]
    try:
        yield
    finally:
        readers.native = threads.native


def timed(way: Way, values: Sequence[np.ndarray]) -> float:
    """Return seconds of a run that begins with nothing read ahead."""
    with reading(way):
        start = time.perf_counter()
        way.function(*values)
        seconds = time.perf_counter() - start
        reader = way.function._idle[-1].instance.reader
        reader._work.stop()
        reader._ready = None
    return seconds


def block_way(function: Any, ring: float, slice_: float, steps: Sequence[float], values: Sequence[np.ndarray]) -> Way:
    """Return slices through a ring, as this library does it."""
    with function.instance_for(tuple(values), {}) as instance:
        reads = [read_seconds(instance, p) for p in function.program.code.ring.pieces]
        waits, _ = waits_of(instance.whole, row_seconds(function.program.code, steps), reads)
    return Way(f"slices {slice_} of {ring} MiB", function, function.program.code.ring.nbytes, float(waits.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demand_modes", description=__doc__)
    parser.add_argument("network", choices=PAPER)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    outputs, inputs = network(args.network)

    def compiled(weights: cg.StreamedWeights | None) -> Any:
        return cg.compile(outputs, inputs, winograd=False, weights=weights, threads=args.threads)

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        plain, whole = compiled(None), compiled(cg.StreamedWeights(f"{folder}/layers", WHOLE, WHOLE))
        values = [np.random.default_rng(0).random(x.shape, np.float32) for x in plain.inputs]
        steps = step_seconds(plain, tuple(values), {}, 2)
        times, before = times_of(whole, row_seconds(whole.program.code, steps), values)
        ways = list(paper_ways(whole, times, before, sum(steps)))
        for ring, slice_ in BLOCKS:
            weights = cg.StreamedWeights(f"{folder}/{ring}-{slice_}", ring * MIB, slice_ * MIB)
            ways.append(block_way(compiled(weights), ring, slice_, steps, values))
        memory, found = [], {way.mode: [] for way in ways}  # type: ignore[var-annotated]
        for _ in range(args.rounds):
            start = time.perf_counter()
            plain(*values)
            memory.append(time.perf_counter() - start)
            for way in ways:
                found[way.mode].append(timed(way, values))
    print("\n".join(table(args.network, times, sum(steps), median(memory), ways, found)))


def table(
    name: str, times: Times, steps: float, memory: float, ways: Sequence[Way], found: dict[str, list[float]]
) -> Iterator[str]:
    """Yield a row for each mode."""
    weights, reads = sum(times.nbytes), sum(times.read)
    yield f"{name}: {weights / MIB:.1f} MiB, {memory:.3f} s in memory (steps one by one {steps:.3f}), reading"
    floor = 100 * (max(memory, reads) / memory - 1)
    yield f"{reads:.3f} s ({weights / reads / 1e9:.2f} GB/s): the floor is {floor:+.1f} %"
    yield "\n| mode | rings MiB | memory % | predicted delay % | measured delay % | paper |"
    yield "|---|---:|---:|---:|---:|---|"
    for way in ways:
        paper = "{:.1f} {:+.1f}".format(*PAPER[name][way.mode]) if way.mode in PAPER[name] else ""
        delay = 100 * (median(found[way.mode]) / memory - 1)
        yield (
            f"| {way.mode} | {way.nbytes / MIB:.1f} | {100 * (way.nbytes / weights - 1):.1f} | "
            f"{100 * way.predicted / steps:+.1f} | {delay:+.1f} | {paper} |"
        )


if __name__ == "__main__":
    main()
