"""Greedy decoders whose caches grow in an ONNX loop, on one thread, beside onnxruntime.

    python -m benchmarks.open_decoder

Processor time, in turns; the least of 10 runs, each of all positions.
"""

import time
from collections.abc import Callable

import numpy as np

from cgraph.formats.onnx import load
from tests.support.onnx_decoder import decoder

SIZES = ((2, 128, 4, 64), (3, 256, 8, 256), (3, 256, 8, 1024))  # layers, width, heads, positions
WORDS, RUNS = 1000, 10


def milliseconds(run: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    run()
    return 1e3 * (time.process_time() - start)


def main() -> None:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    print("| layers, width, heads, positions | cgraph, ms | onnxruntime, ms | arena, MiB | load and compile, s |")
    print("|---|---:|---:|---:|---:|")
    for layers, width, heads, longest in SIZES:
        raw = decoder(layers, trips="huge", position="counter", ending="table", words=WORDS, width=width, heads=heads,
                      longest=longest, seed=1)  # fmt: skip
        start = time.process_time()
        function = load(raw).compile(threads=1)
        seconds = time.process_time() - start
        session = ort.InferenceSession(raw, options)
        feed = {"first": np.zeros((1, 1), np.int64), "last": np.array(WORDS), "go": np.array(True)}
        runs = (lambda f=function, x=feed: f(**x), lambda s=session, x=feed: s.run(None, x))
        times = [[milliseconds(run) for run in runs] for _ in range(RUNS)]
        cells = " | ".join(f"{min(t):.1f}" for t in zip(*times))
        print(f"| {layers}, {width}, {heads}, {longest} | {cells} | {function.nbytes / 2**20:.1f} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
