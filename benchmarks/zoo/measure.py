"""Measurements of one file: start, memory and results of one engine, or run times of several engines in turns.

Called by `benchmarks.zoo`: ``python -m benchmarks.zoo.measure FILE ENGINE[,ENGINE] THREADS FIRST SECOND ANSWERS``.
A comma after the only engine asks for run times.
Inputs are ``.npz`` files, so that no other package is imported here.
"""

import json
import sys
import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.peers import Run, onnxruntime_run, openvino_run
from benchmarks.start import peak_nbytes

TURNS, LEAST, LIMIT = 25, 7, 4.0  # of all engines: most and least, and seconds for them unless there are less


def cgraph_run(path: str, feeds: dict[str, np.ndarray], threads: int) -> Run:
    import cgraph as cg

    function = cg.load(path, threads=threads)
    return lambda: function.run(None, feeds)


ENGINES = {"cgraph": cgraph_run, "onnxruntime": onnxruntime_run, "openvino": openvino_run}


def measured(path: str, engine: str, threads: int, first: str, second: str, answers: str) -> dict[str, Any]:
    """Return the start in seconds of the processor and the peak of memory in MiB; write the results."""
    feeds = dict(np.load(first))
    start = time.process_time()
    run = ENGINES[engine](path, feeds, threads)
    results = [np.array(x) for x in run()]
    figures = {"start": time.process_time() - start}
    run()
    figures["memory"] = peak_nbytes() / (1 << 20)
    feeds.update(np.load(second))
    results += [np.array(x) for x in run()]
    np.savez(answers, *results)
    return figures


def in_turns(path: str, engines: list[str], threads: int, first: str) -> dict[str, dict[str, float]]:
    """Return each engine's median of seconds; the engines take turns, after two runs that do not count.

    Seconds are the processor's with one thread, so that other processes count little; else those of the clock.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    feeds = dict(np.load(first))
    runs = {engine: ENGINES[engine](path, feeds, threads) for engine in engines}
    times: dict[str, list[float]] = {engine: [] for engine in engines}
    for run in runs.values():
        run()
        run()
    begin = time.perf_counter()
    while len(times[engines[0]]) < (TURNS if time.perf_counter() - begin < LIMIT else LEAST):
        for engine, run in runs.items():
            start = clock()
            run()
            times[engine].append(clock() - start)
    return {engine: {"seconds": median(x)} for engine, x in times.items()}


if __name__ == "__main__":
    file, names, threads, *paths = sys.argv[1:]
    engines = [name for name in names.split(",") if name]
    figures: dict[str, Any]
    try:
        if "," not in names:
            figures = measured(file, engines[0], int(threads), *paths)
        else:
            figures = in_turns(file, engines, int(threads), paths[0])
    except Exception as error:  # another engine may raise anything
        figures = {"error": f"{type(error).__name__}: {error}"[:500]}
    print(json.dumps(figures))
