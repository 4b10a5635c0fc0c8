"""Table 6: memory of reading a model, compiling it and running it once, each in a fresh process.

    python -m benchmarks.loading [networks]

*Peak* is the largest resident size, less that after the imports; the kernel cache is warm. *Bound* is 1.1 times the
file, plus the arena, plus the bytes of packed constants (mainly Winograd's filters) beyond the file. ONNX files hold
their
weights inside or in a file beside them (*external*); *safetensors* is `nn.load_weights` with the values left in the
file.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.start import peak_nbytes

NETWORKS = ("resnet50", "vgg16")
READERS = ("inline", "external", "safetensors")
ROUNDS, MARGIN, THREADS = 3, 1.1, 2


def once(reader: str, name: str, file: str, winograd: str) -> dict[str, int]:
    """In a fresh process: import, load, compute once. Return bytes: the peak, and for ours arena and constants."""
    load = {"onnxruntime": import_onnxruntime, "safetensors": import_nn}.get(reader, import_onnx)()
    image = np.random.default_rng(1).standard_normal(json.loads(os.environ["BENCHMARK_SHAPE"]), np.float32)
    before = peak_nbytes()
    run, function = load(name, file, bool(int(winograd)))
    run(image)
    found = {"peak": peak_nbytes() - before}
    if function is not None:
        found |= {"arena": function.nbytes, "constants": function.report().const_nbytes}
    return found


Load = Callable[[str, str, bool], tuple[Callable[[np.ndarray], Any], Any]]


def import_onnx() -> Load:
    import onnx  # noqa: F401 - what the reader needs

    import cgraph as cg

    read = cg.formats.onnx.load

    def load(name: str, file: str, winograd: bool):
        function = read(file).compile(threads=THREADS, winograd=winograd)
        return function, function

    return load


def import_nn() -> Load:
    import nn

    def load(name: str, file: str, winograd: bool):
        model = nn.load_weights(file, getattr(nn.models, name)(None), mapped=True)
        predict = nn.compile(model, threads=THREADS, winograd=winograd)
        return predict, predict.function

    return load


def import_onnxruntime() -> Load:
    import onnxruntime

    def load(name: str, file: str, winograd: bool):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return lambda image: session.run(None, {"image": image}), None

    return load


def files_of(name: str, folder: Path) -> tuple[dict[str, list[Path]], list[int]]:
    """Return the weight files by reader, the one to open first; and the shape of an image."""
    import onnx

    import nn
    from benchmarks.networks import NETWORKS, exported

    model = NETWORKS[name](0)
    inline, external, ours = exported(name), folder / f"{name}.onnx", folder / f"{name}.safetensors"
    nn.save_weights(ours, model)
    onnx.save(onnx.load(inline), external, save_as_external_data=True, location=f"{name}.data")
    files = {"inline": [inline], "external": [external, folder / f"{name}.data"], "safetensors": [ours]}
    return files | {"onnxruntime": [inline]}, [1, *model.samples[0].shape]


def measured(reader: str, name: str, file: Path, shape: list[int], winograd: bool) -> dict[str, float]:
    """Return medians over fresh processes, after one that fills caches."""
    command = [sys.executable, "-m", "benchmarks.loading", "--child", reader, name, str(file), str(int(winograd))]
    environment = os.environ | {"BENCHMARK_SHAPE": json.dumps(shape)}
    rows = []
    for _ in range(ROUNDS + 1):
        output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        rows.append(json.loads(output.splitlines()[-1]))
    return {key: statistics.median(row[key] for row in rows[1:]) for key in rows[0]}


def compare(name: str, folder: Path) -> None:
    files, shape = files_of(name, folder)
    for reader in (*READERS, "onnxruntime"):
        nbytes = sum(file.stat().st_size for file in files[reader])
        for winograd in (True, False) if reader in READERS else (True,):
            found = measured(reader, name, files[reader][0], shape, winograd)
            cells = [nbytes, found.get("arena"), found.get("constants"), found["peak"], None]
            if "arena" in found:
                more = max(found["constants"] - nbytes, 0)
                cells[4] = MARGIN * nbytes + found["arena"] + more
            means = ("yes" if winograd else "no") if reader in READERS else "-"
            text = " | ".join("-" if n is None else f"{n / 2**20:.1f}" for n in cells)
            print(f"| {name} | {reader} | {means} | {text} |", flush=True)


def main(names: list[str]) -> None:
    print("| network | read from | winograd | file MiB | arena | constants | peak | bound |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names or NETWORKS:
            compare(name, Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(once(*sys.argv[2:])))
    else:
        main(sys.argv[1:])
