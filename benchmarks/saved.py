"""Time from process start to the first result: saved functions and onnxruntime, each measured in a fresh process.

    python -m benchmarks.saved [networks]

Engines in turns, medians with minimum and maximum. *First* is the time from the start of the process to the first
result, in milliseconds; *cpu* is the processor time of all threads until then, which other work affects less; *numpy*
is a process that imports NumPy and ends. *Load* and *run* are parts of ours: `load`, and the first call. Memory is the
largest resident size, in MiB, minus that after the imports, and in total; weights are mapped, so the system can reclaim
their pages. *Bits* are compared with those of the process that saved it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.start import with_byte_code

NETWORKS, THREADS, ROUNDS = ("resnet18", "resnet50"), 2, 9

MEASURED = """
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
def done(first):
    cpu, total = time.process_time() * 1e3, resident()
    print(json.dumps({"first": (first - started) * 1e3, "cpu": cpu, "total": total, "growth": total - before, **more}))
"""
NUMPY = """
import json, os, time
import numpy as np
started, before, more = float(os.environ["STARTED"]), 0, {}
"""
SAVED = """
import json, os, sys, time
import numpy as np
from cgraph import load
started, before = float(os.environ["STARTED"]), resident()
image = np.fromfile(sys.argv[2], "f4").reshape(SHAPE)
t0 = time.perf_counter()
f = load(sys.argv[1], threads=THREADS, verify=VERIFY)
t1 = time.perf_counter()
y = f(image)[0]
first, t2 = time.time(), time.perf_counter()
bits = y.tobytes() == open(sys.argv[3], "rb").read()
more = {"load": (t1 - t0) * 1e3, "run": (t2 - t1) * 1e3, "bits": bits}
done(first)
"""
ONNXRUNTIME = """
import json, os, sys, time
import numpy as np
import onnxruntime
started, before, more = float(os.environ["STARTED"]), resident(), {}
image = np.fromfile(sys.argv[2], "f4").reshape(SHAPE)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = THREADS, 3
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, {session.get_inputs()[0].name: image})
done(time.time())
"""


def files_of(name: str, folder: Path) -> tuple[dict[str, str], Any]:
    """Write each engine's files, and the image and its result in ``image`` and ``result``; return the image's shape."""
    import onnxruntime

    import nn
    from benchmarks.networks import NETWORKS as BUILT
    from benchmarks.networks import exported

    model = BUILT[name](0)
    shape = (1, *model.samples[0].shape)
    image = np.random.default_rng(1).standard_normal(shape, np.float32)
    image.tofile(folder / "image")
    files = {}
    for label, options in (("saved", {}), ("saved, no Winograd", {"winograd": False})):
        function = nn.compile(model, batch=1, threads=THREADS, **options).function
        files[label] = str(folder / label.replace(", ", "_"))
        function.save(files[label])
        function(image)[0].tofile(files[label] + ".result")
    files["saved, verified"] = files["saved"]
    files["onnxruntime .onnx"] = str(exported(name))
    files["onnxruntime .ort"] = str(folder / "model.ort")
    settings = onnxruntime.SessionOptions()
    settings.optimized_model_filepath, settings.log_severity_level = files["onnxruntime .ort"], 3
    settings.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(files["onnxruntime .onnx"], settings, providers=["CPUExecutionProvider"])
    return files, shape


def measured(engine: str, file: str, folder: Path, shape: Any) -> dict[str, Any]:
    """Measure one fresh process."""
    code = SAVED if engine.startswith("saved") else ONNXRUNTIME if file else NUMPY + "done(time.time())"
    code = code.replace("SHAPE", repr(shape)).replace("THREADS", str(THREADS))
    code = code.replace("VERIFY", str(engine.endswith("verified")))
    imports, _, rest = code.lstrip().partition("\n")
    command = [sys.executable, "-c", f"{imports}\n{MEASURED}\n{rest}", file, str(folder / "image"), f"{file}.result"]
    environment = with_byte_code(folder) | {"STARTED": str(time.time())}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])


def compare(name: str, folder: Path) -> None:
    files, shape = files_of(name, folder)
    files["numpy"] = ""
    found: dict[str, list[dict[str, Any]]] = {engine: [] for engine in files}
    for i in range(ROUNDS + 1):
        for engine, file in files.items():
            row = measured(engine, file, folder, shape)
            if i:  # the first one writes the byte code
                found[engine].append(row)
    ours = median(found["saved"], "first")
    for engine, rows in found.items():
        first = [row["first"] for row in rows]
        parts = " / ".join(f"{median(rows, part):.1f}" for part in ("load", "run") if part in rows[0]) or "-"
        same = {True: "same", False: "differ"}[all(row["bits"] for row in rows)] if "bits" in rows[0] else "-"
        memory = " | ".join(
            f"{mib:.0f}" for mib in (median(rows, "growth"), median(rows, "total"), size(files[engine]))
        )
        span = f"{statistics.median(first):.0f} ({min(first):.0f}–{max(first):.0f})"
        ratio, cpu = median(rows, "first") / ours, median(rows, "cpu")
        print(f"| {name} | {engine} | {span} | {ratio:.2f} | {cpu:.0f} | {parts} | {memory} | {same} |", flush=True)


def size(file: str) -> float:
    """Return the size of a file or of all files in a folder, in MiB; 0 for none."""
    paths = [file] if os.path.isfile(file) else [entry.path for entry in os.scandir(file)] if file else []
    return sum(map(os.path.getsize, paths)) / 2**20


def median(rows: list[dict[str, Any]], key: str) -> float:
    return statistics.median(row[key] for row in rows)


def main(names: list[str]) -> None:
    print("| network | engine | first ms | / ours | cpu ms | load / run ms | growth | process | files | bits |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for name in names or NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            compare(name, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
