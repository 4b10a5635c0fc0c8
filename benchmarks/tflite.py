"""int8 TFLite networks, here and by TFLite's own kernels: processor time of one thread, the minimum of runs in
turns.

python -m benchmarks.tflite [FILE.tflite ...]     MobileNet v1 (224 x 224, random weights) without one

Engines: ours; XNNPACK, TFLite's default; its reference kernels, with which every value is compared.
"""

import sys
import time
from pathlib import Path

import numpy as np

from cgraph.formats import tflite
from tests.support.tflite_byte_cases import Quantised

ROUNDS, SLOW_ROUNDS = 15, 2
LAYERS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]


def mobilenet_v1() -> bytes:
    """Return its layers with random filters and scales, as a file. Source: Howard and others 2017, arXiv:1704.04861."""
    net = Quantised("int8", np.random.default_rng(0))
    how = {"scale": 6 / 255, "zero": -128}
    steps = {1: {"stride_w": 1, "stride_h": 1}, 2: {"stride_w": 2, "stride_h": 2}}
    x = net.bytes_in((1, 224, 224, 3), scale=1 / 128, zero=0)
    weights = filters(net, (32, 3, 3, 3), 0)
    x, c = net.op("CONV_2D", [x, *weights], net.made(**how), activation=3, **steps[2]), 32
    for k, stride in LAYERS:
        weights = filters(net, (1, 3, 3, c), 3)
        options = {"multiplier": 1, "activation": 3, **steps[stride]}
        x = net.op("DEPTHWISE_CONV_2D", [x, *weights], net.made(**how), **options)
        weights = filters(net, (k, 1, 1, c), 0)
        x, c = net.op("CONV_2D", [x, *weights], net.made(**how), activation=3, **steps[1]), k
    x = net.op("AVERAGE_POOL_2D", [x], net.made(**how), window_w=7, window_h=7, padding=1, **steps[1])
    weights = filters(net, (1001, 1, 1, c), 0)
    return net.bytes(net.op("CONV_2D", [x, *weights], net.made(8.0), **steps[1]))


def filters(net: Quantised, shape: tuple[int, ...], axis: int) -> tuple[int, int]:
    """Return random filters with a scale for each, which preserve the range of images, and a bias of zeros."""
    count, taps = shape[axis], np.prod(shape) // shape[axis]
    values = net.rng.integers(-127, 128, shape).astype("int8")
    scales = net.rng.uniform(1, 2, count) * np.sqrt(6 / taps) / 127
    return net.constant(values, scale=scales, zero=(0, axis)), net.constant(np.zeros(count, "int32"), scale=1e-4)


def runs_of(model: bytes) -> dict:
    """Return a run of each engine on one random picture, and its first output."""
    from ai_edge_litert import interpreter as litert

    loaded = tflite.load(model)
    function = loaded.compile(threads=1)
    (x,), rng = loaded.inputs, np.random.default_rng(1)
    value = rng.integers(-128, 128, x.shape).astype(x.dtype)
    runs = {"cgraph": lambda: function(value)[0]}
    for name, kind in (("XNNPACK", litert.OpResolverType.BUILTIN), ("reference", litert.OpResolverType.BUILTIN_REF)):
        other = litert.Interpreter(model_content=model, experimental_op_resolver_type=kind, num_threads=1)
        other.allocate_tensors()
        other.set_tensor(other.get_input_details()[0]["index"], value)
        runs[name] = lambda other=other: (other.invoke(), other.get_tensor(other.get_output_details()[0]["index"]))[1]
    return runs


def main() -> None:
    models = {Path(path).name: Path(path).read_bytes() for path in sys.argv[1:]} or {"MobileNet v1": mobilenet_v1()}
    for name, model in models.items():
        runs = runs_of(model)
        outputs, best = {}, dict.fromkeys(runs, float("inf"))
        for i in range(ROUNDS):
            for engine, run in runs.items():
                if engine != "reference" or i < SLOW_ROUNDS:
                    start = time.process_time()
                    outputs[engine] = run()
                    best[engine] = min(best[engine], time.process_time() - start)
        differ = {engine: int((outputs[engine] != outputs["reference"]).sum()) for engine in ("cgraph", "XNNPACK")}
        print(f"{name}: " + ", ".join(f"{engine} {1e3 * t:.3g} ms" for engine, t in best.items()), end="; ")
        print(f"of {outputs['reference'].size} outputs differ from the reference kernels': {differ}")


if __name__ == "__main__":
    main()
