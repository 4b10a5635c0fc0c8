"""Other engines that run an ONNX model, prepared for `benchmarks.runner`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Run = Callable[[], Any]


def onnxruntime_run(model: str | bytes, feeds: Mapping[str, np.ndarray], threads: int) -> Run:
    """Return a run by onnxruntime. `model`: a path, or the file's bytes."""
    session = onnxruntime_session(model, threads)
    return lambda: session.run(None, feeds)


def onnxruntime_session(model: str | bytes, threads: int) -> Any:
    """Return a session of onnxruntime. `model`: a path, or the file's bytes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def openvino_run(model: str | bytes, feeds: Mapping[str, np.ndarray], threads: int, as_it_comes: bool = False) -> Run:
    """Return the same by openvino; results are read in place.

    Parameters
        as_it_comes: in the precision that openvino selects for the processor, which is bfloat16 where that is faster;
            else in float32 like the others
    """
    import openvino

    settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    if not as_it_comes:
        settings["INFERENCE_PRECISION_HINT"] = "f32"
    compiled = openvino.Core().compile_model(openvino.Core().read_model(model), "CPU", settings)
    request = compiled.create_infer_request()

    def run() -> list[np.ndarray]:
        request.infer(feeds, share_inputs=True, share_outputs=True)
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run
