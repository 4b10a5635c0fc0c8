"""Table 4: time from process start to the first result, and memory, each measured in a fresh process.

    python -m benchmarks.start [networks]
    python -m benchmarks.start import

*Cold* has an empty kernel cache, *warm* a filled one; both have Python's byte code, as installed packages do. Seconds
are from the start of the process to the first result, the model's weights read from the ONNX file (peers) or from a
safetensors file (ours). *Peak* is the largest resident size, less that after the imports. *import* is a process that
imports a package and ends.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ENGINES = ("cgraph", "onnxruntime", "openvino")
NETWORKS = ("resnet50", "vgg16", "mobilenet_v2")
THREADS, WARM_ROUNDS, IMPORT_ROUNDS = 2, 9, 21


def first_result(engine: str, name: str, file: str) -> dict[str, float]:
    """In a fresh process: import, load, compute once."""
    started = float(os.environ["BENCHMARK_START"])
    image = np.random.default_rng(1).standard_normal(json.loads(os.environ["BENCHMARK_SHAPE"]), np.float32)
    imported = {"cgraph": import_cgraph, "onnxruntime": import_onnxruntime, "openvino": import_openvino}[engine]()
    before = peak_nbytes()
    run = imported(name, file)
    run(image)
    seconds = time.time() - started
    for _ in range(2):
        run(image)
    peak = peak_nbytes()
    return {"seconds": seconds, "peak": peak - before, "total": peak}


def peak_nbytes() -> int:
    """Return the largest resident size of this process; unlike getrusage's, it is reset when the program starts."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def import_cgraph():
    import nn

    def load(name: str, file: str):
        model = getattr(nn.models, name)(None)
        nn.load_weights(file, model, mapped=True)
        return nn.compile(model, batch=1, threads=THREADS)

    return load


def import_onnxruntime():
    import onnxruntime

    def load(name: str, file: str):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return lambda image: session.run(None, {"image": image})

    return load


def import_openvino():
    import openvino

    def load(name: str, file: str):
        settings = {"INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"}
        request = openvino.Core().compile_model(file, "CPU", settings).create_infer_request()
        return lambda image: request.infer([image])

    return load


def files_of(name: str, folder: Path) -> dict[str, str]:
    """Write the model's weights as each engine reads them; return the shape of an image, which is in a file beside
    them.
    """
    import nn
    from benchmarks.networks import NETWORKS, exported

    model = NETWORKS[name](0)
    ours = folder / f"{name}.safetensors"
    nn.save_weights(ours, model)
    (folder / f"{name}.shape").write_text(json.dumps([1, *model.samples[0].shape]))
    theirs = str(exported(name))
    return {"cgraph": str(ours), "onnxruntime": theirs, "openvino": theirs}


def measured(engine: str, name: str, file: str, shape: str, cache: Path) -> dict[str, float]:
    """Measure one fresh process; byte code is stored beside the folder `cache`."""
    environment = with_byte_code(cache.parent) | {
        "XDG_CACHE_HOME": str(cache),
        "BENCHMARK_SHAPE": shape,
        "BENCHMARK_START": str(time.time()),
    }
    command = [sys.executable, "-m", "benchmarks.start", "--child", engine, name, file]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])


def with_byte_code(folder: Path) -> dict[str, str]:
    """Return the environment of a process that reads and writes Python's byte code below `folder`."""
    return os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}


def compare_imports(folder: Path) -> None:
    """Measure processes that import one package, in turns; the first of each writes the byte code and is not
    counted.
    """
    found: dict[str, list[float]] = {package: [] for package in ("numpy", "cgraph", "nn")}
    for _ in range(1 + IMPORT_ROUNDS):
        for package, seconds in found.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {package}"], env=with_byte_code(folder), check=True)
            seconds.append(time.perf_counter() - start)
    for package, seconds in found.items():
        kept = sorted(seconds[1:])
        print(f"import {package}: {statistics.median(kept):.3f} s ({kept[0]:.3f}–{kept[-1]:.3f})", flush=True)


def compare(name: str, folder: Path) -> None:
    files, cache = files_of(name, folder), folder / f"cache_{name}"
    shape = (folder / f"{name}.shape").read_text()
    for engine in ENGINES:  # not counted: writes the byte code
        measured(engine, name, files[engine], shape, folder / "other_cache")
    cold = measured("cgraph", name, files["cgraph"], shape, cache)
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    for _ in range(WARM_ROUNDS):
        for engine in ENGINES:
            found[engine].append(measured(engine, name, files[engine], shape, cache))
    for engine, rows in found.items():
        seconds = sorted(row["seconds"] for row in rows)
        peak, total = (statistics.median(row[kind] for row in rows) / 2**20 for kind in ("peak", "total"))
        first = f"{cold['seconds']:.2f}" if engine == "cgraph" else "-"
        span = f"{statistics.median(seconds):.2f} ({seconds[0]:.2f}–{seconds[-1]:.2f})"
        print(f"| {name:12} | {engine:11} | {first:>6} | {span:>18} | {peak:8.0f} | {total:8.0f} |", flush=True)


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if "import" in names:
            compare_imports(Path(folder))
            return
        print("| network | engine | cold s | warm s | peak MiB above imports | whole process MiB |")
        print("|---|---|---:|---:|---:|---:|")
        for name in names or NETWORKS:
            compare(name, Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(first_result(*sys.argv[2:])))
    else:
        main(sys.argv[1:])
