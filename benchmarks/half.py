"""Products of bfloat16 compared with float32: processor time of one thread, the minimum of runs in turns, and bytes.

python -m benchmarks.half [networks]     without names also an encoder
"""

import sys
from collections.abc import Callable

import numpy as np

from benchmarks import networks, sequences
from benchmarks.quantised import least_times
from cgraph.formats.onnx import load
from cgraph.function import Function, compile
from cgraph.view.report import report

NAMES = ("resnet50", "squeezenet1_1", "mobilenet_v2")
WAYS = {"float32": {}, "direct": {"winograd": False}, "bf16": {"precision": "bf16"}}


def compare(name: str, compiled: Callable[..., Function], value: np.ndarray) -> None:
    """Return a line: times, the largest difference of the first output relative to float32's largest number, bytes."""
    functions = {way: compiled(threads=1, **options) for way, options in WAYS.items()}
    found = {way: np.asarray(f(value)[0]) for way, f in functions.items()}
    times = least_times({way: lambda f=f: f(value) for way, f in functions.items()})  # type: ignore[misc]
    difference = np.abs(found["bf16"] - found["float32"]).max() / np.abs(found["float32"]).max()
    sizes = (f"{way} {f.nbytes} + {report(f).const_nbytes} bytes" for way, f in functions.items())
    ran = (f"{way} {1e3 * seconds:.3g} ms" for way, seconds in times.items())
    print(f"{name}: {', '.join(ran)}; difference {difference:.0e}; {', '.join(sizes)}", flush=True)


def main(words: list[str]) -> None:
    for name in words or NAMES:
        image = networks.image_of(networks.NETWORKS[name](None))
        compare(name, load(networks.exported(name)).compile, image)
    if not words:
        outputs, inputs, (value,) = sequences.encoder(6, 384)
        compare("encoder", lambda **options: compile(outputs, inputs, **options), value)


if __name__ == "__main__":
    main(sys.argv[1:])
