"""Other engines that run an ONNX model, prepared for `benchmarks.runner`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Run = Callable[[], Any]


def onnxruntime_run(model: str | bytes, feeds: Mapping[str, np.ndarray], threads: int) -> Run:
    """Return a run by onnxruntime. `model`: a path, or the file's bytes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def openvino_run(model: str | bytes, feeds: Mapping[str, np.ndarray], threads: int) -> Run:
    """Return the same by openvino, in float32 like the others; results are read in place."""
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(openvino.Core().read_model(model), "CPU", settings)
    request = compiled.create_infer_request()

    def run() -> list[np.ndarray]:
        request.infer(feeds, share_inputs=True, share_outputs=True)
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run
