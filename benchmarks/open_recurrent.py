"""LSTMs over sequences of a length known only at run time, on one thread: written out, as a loop, and onnxruntime.

    python -m benchmarks.open_recurrent

Processor time, in turns; the least of 60 runs.
"""

import time
from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper, parser

from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators import recurrent

SIZES = ((64, 1, 64, 64), (64, 8, 128, 128), (64, 1, 128, 256), (512, 1, 64, 64))  # length, batch, inputs, hidden
RUNS = 60


def model(length: int, batch: int, inputs: int, hidden: int) -> bytes:
    """Return an LSTM over the first n of `length` steps."""
    text = f"""<ir_version: 9, opset_import: ["" : 17]>
    layer (float[{length}, {batch}, {inputs}] x, int64[1] n) => (float[steps, 1, {batch}, {hidden}] y)
    <int64[1] z = {{0}}>
    {{ rows = Slice(x, z, n)  y = LSTM<hidden_size={hidden}>(rows, w, r) }}"""
    proto, rng = parser.parse_model(text), np.random.default_rng(0)
    for name, columns in (("w", inputs), ("r", hidden)):
        weights = rng.uniform(-1, 1, (1, 4 * hidden, columns)) / columns**0.5
        proto.graph.initializer.append(numpy_helper.from_array(weights.astype("f4"), name))
    onnx.checker.check_model(proto)
    return proto.SerializeToString()


def compiled(raw: bytes, written_out: int) -> tuple[Callable[..., object], float]:
    """Return the function whose layers of at most that many steps are written out, and the seconds to compile it."""
    usual, recurrent.WRITTEN_OUT = recurrent.WRITTEN_OUT, written_out
    start = time.process_time()
    try:
        return load(raw).compile(threads=1), time.process_time() - start
    finally:
        recurrent.WRITTEN_OUT = usual


def milliseconds(run: Callable[..., object], x: np.ndarray, n: np.ndarray) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    run(x, n)
    return 1e3 * (time.process_time() - start)


def main() -> None:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    print("| steps, batch, inputs, units | of them | written out, ms | loop, ms | onnxruntime, ms | compile, s |")
    print("|---|---:|---:|---:|---:|---:|")
    for sizes in SIZES:
        raw, x = model(*sizes), np.random.default_rng(1).normal(size=sizes[:3]).astype("f4")
        session = ort.InferenceSession(raw, options)
        (whole, first), (loop, second) = (compiled(raw, most) for most in (10**6, recurrent.WRITTEN_OUT))
        runs = (whole, loop, lambda x, n, session=session: session.run(None, {"x": x, "n": n}))
        for count in (sizes[0], sizes[0] // 8):
            n = np.array([count])
            times = [[milliseconds(run, x, n) for run in runs] for _ in range(RUNS)]
            cells = " | ".join(f"{min(t):.3f}" for t in zip(*times))
            print(f"| {', '.join(map(str, sizes))} | {count} | {cells} | {first:.2f}, {second:.2f} |", flush=True)


if __name__ == "__main__":
    main()
