"""One engine and one file in a process: times, memory and results for two inputs.

Called by `benchmarks.zoo`: ``python -m benchmarks.zoo.measure FILE ENGINE THREADS FIRST SECOND ANSWERS``. Inputs are
``.npz`` files, so that no other package is imported here.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.fresh import seconds_of
from benchmarks.peers import Run, onnxruntime_run, openvino_run
from benchmarks.start import peak_nbytes

MOST, LIMIT = 21, 2.0  # runs, and seconds for them


def cgraph_run(path: str, feeds: dict[str, np.ndarray], threads: int) -> Run:
    import cgraph as cg

    function = cg.load(path, threads=threads)
    return lambda: function.run(None, feeds)


ENGINES = {"cgraph": cgraph_run, "onnxruntime": onnxruntime_run, "openvino": openvino_run}


def measured(path: str, engine: str, threads: int, first: str, second: str, answers: str) -> dict[str, Any]:
    feeds = dict(np.load(first))
    start = time.process_time()
    run = ENGINES[engine](path, feeds, threads)
    results = [np.array(x) for x in run()]
    figures: dict[str, Any] = {"start": time.process_time() - start, **seconds_of(run, MOST, LIMIT)}
    figures["memory"] = peak_nbytes() / (1 << 20)
    feeds.update(np.load(second))
    results += [np.array(x) for x in run()]
    np.savez(answers, *results)
    return figures


if __name__ == "__main__":
    file, engine, threads, *paths = sys.argv[1:]
    try:
        figures = measured(file, engine, int(threads), *paths)
    except Exception as error:  # another engine may raise anything
        figures = {"error": f"{type(error).__name__}: {error}"[:500]}
    print(json.dumps(figures))
