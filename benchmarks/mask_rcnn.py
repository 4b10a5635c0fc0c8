"""Mask R-CNN, compared with torch and onnxruntime: seconds and peak memory of fresh processes, in turns.

    python -m benchmarks.mask_rcnn [owl | front | step] [1 | 2]        on one thread, or on two

- `owl`: Owl's network on a picture of 768 × 768 pixels, whole, and in bands of rows (`bands=`); torch computes only the
  dense part (`benchmarks.torch_mask_rcnn`). Owl's own time, on a like machine, is 6.08 s.
- `front`: trunk, pyramid and proposals' numbers on 1024 × 1024 pixels, compared with onnxruntime.
- `step`: a training step of the network that ships, 8 pictures; torch computes only the dense part.

Processor seconds are those of all threads together. Peak memory is the process's largest resident size less that after
the imports.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fresh import Figures, child, compared, seconds_of
from benchmarks.start import peak_nbytes

WAYS = {
    "owl": ("cgraph", "cgraph in bands", "torch"),
    "front": ("cgraph", "onnxruntime"),
    "step": ("cgraph", "torch"),
}
ROUNDS, BANDS = 3, 3136
MOST, SECONDS = 30, 8.0  # runs of a process
Run = Callable[[], Any]


def measure(given: str, way: str) -> Figures:
    """Measure in this process; `given`: case and threads."""
    case, threads = given.split()
    engine, *how = way.split(maxsplit=1)
    import nn  # noqa: F401 - imports are not measured

    if engine != "cgraph":
        __import__(engine)
    before = peak_nbytes()
    start = time.perf_counter()
    run = {"owl": owl, "front": front, "step": step}[case](engine, int(threads), bool(how))
    built = time.perf_counter() - start
    return {"build": built, **seconds_of(run, MOST, SECONDS), "peak": float(peak_nbytes() - before)}


def picture(side: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(1, 3, side, side)).astype(np.float32)


def owl(engine: str, threads: int, in_bands: bool) -> Run:
    import nn
    from nn.models.mask_rcnn import mask_rcnn_owl

    model = mask_rcnn_owl()
    config, image = model.config, picture(model.config.image[0])
    if engine == "torch":
        from benchmarks.torch_mask_rcnn import inference

        return inference(model, image, config.after, config.detections, threads)
    predict = nn.compile(model, threads=threads, bands=BANDS if in_bands else None)
    window = np.array([[0, 0, *config.image]], np.float32)
    return lambda: predict(image, window)


def front(engine: str, threads: int, in_bands: bool) -> Run:
    import cgraph as cg
    import nn
    from nn.compile import freeze
    from nn.models.mask_rcnn import mask_rcnn_matterport

    side = 1024
    image, x = picture(side), cg.Var((1, 3, side, side), name="image")
    raw = freeze(mask_rcnn_matterport()).raw(x, nn.Mode())
    outputs = [*raw.maps, *raw.scores, *raw.deltas]
    if engine == "onnxruntime":
        return onnxruntime_run(cg.formats.onnx.serialised(outputs, [x]), image, threads)
    function = cg.compile(outputs, [x], threads=threads)
    return lambda: function(image, copy=False)


def onnxruntime_run(model: bytes, image: np.ndarray, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"image": image})


def step(engine: str, threads: int, in_bands: bool) -> Run:
    import nn
    from nn.models.mask_rcnn.losses import Training, total
    from nn.models.mask_rcnn.shapes import shapes_config, shapes_network
    from nn.models.mask_rcnn.tools.batches import as_operands
    from nn.models.mask_rcnn.tools.synthetic import OBJECTS, synthetic_images
    from nn.models.mask_rcnn.tools.train_shapes import BATCH, STEPS, optimiser

    model, config = shapes_network(), shapes_config()
    samples = as_operands(config, tuple(synthetic_images(0, 0, BATCH)))
    if engine == "torch":
        from benchmarks.torch_mask_rcnn import training

        boxes, masks = config.sampled_boxes, config.positive_boxes
        return training(model, samples[0], BATCH * boxes, BATCH * masks, threads)
    whole = Training(model, OBJECTS)
    made_step = nn.training_step(whole, total, optimiser(STEPS), samples, targets=0, threads=threads)
    return lambda: made_step(*samples)


def main() -> None:
    if child(measure):
        return
    words = sys.argv[1:]
    print("| case | threads | way | build s | run s | processor s | peak MiB |\n|---|---|---|---|---|---|---|")
    for case in [case for case in WAYS if case in words] or WAYS:
        for threads in [n for n in "12" if n in words] or "2":
            for way, found in compared("benchmarks.mask_rcnn", f"{case} {threads}", WAYS[case], ROUNDS).items():
                times = f"{found['build']:.2f} | {found['seconds']:.3f} | {found['processor']:.3f}"
                print(f"| {case} | {threads} | {way} | {times} | {found['peak'] / 2**20:.0f} |", flush=True)


if __name__ == "__main__":
    main()
