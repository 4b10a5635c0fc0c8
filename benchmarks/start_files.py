"""Processor time until the first result of ONNX files, modules imported before, each measured in a fresh process.

Python's byte code is there, as after an installation: a process that is not counted writes it.

python -m benchmarks.start_files FILES...

*session*: onnxruntime creates its session. *built*: cgraph loads the file and runs it once, less the time of a later
run, with an empty cache and the kernels that were built with the package; *cold*: the same without those kernels;
*warm*: with a filled cache. Medians of `ROUNDS` processes, of one thread each.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.start import with_byte_code
from benchmarks.zoo.inputs import feeds_of

ROUNDS = 3
WAYS = ("session", "built", "cold", "warm")


def seconds(way: str, path: Path) -> float:
    """In a fresh process: the processor time of one way."""
    feeds = feeds_of(path, seed=0)
    if way == "session":
        return session_seconds(path)
    import cgraph as cg
    import cgraph.formats.onnx.operators
    from cgraph.formats.onnx.onnx_messages import messages
    from cgraph.kernels import store

    messages()
    if way != "built":
        store.table_of = lambda target: None
    start = time.process_time()
    function = cg.load(path, threads=1)
    function.run(None, feeds)
    first = time.process_time() - start
    start = time.process_time()
    function.run(None, feeds)
    return first - (time.process_time() - start)


def session_seconds(path: Path) -> float:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    start = time.process_time()
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return time.process_time() - start


def measured(way: str, path: Path, folder: Path, cache: str) -> float:
    """Return the seconds of a process whose kernels and byte code are below a folder."""
    command = [sys.executable, "-m", "benchmarks.start_files", "--child", way, str(path)]
    environment = with_byte_code(folder) | {"XDG_CACHE_HOME": str(folder / cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def row(path: Path) -> dict[str, float]:
    """Return the medians of all ways."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        measured("built", path, Path(folder), "not counted")
        for i in range(ROUNDS):
            for way in WAYS:
                cache = f"{i} {'built' if way == 'built' else 'others'}"
                times[way].append(measured(way, path, Path(folder), cache))
    return {way: statistics.median(x) for way, x in times.items()}


def main(words: list[str]) -> None:
    if words[0] == "--child":
        print(json.dumps(seconds(words[1], Path(words[2]))))
        return
    print(f"| network | {' | '.join(WAYS)} | built over session | cold | warm |\n|---|{'---:|' * 7}")
    ratios: dict[str, list[float]] = {way: [] for way in WAYS[1:]}
    for path in map(Path, words):
        times = row(path)
        for way, values in ratios.items():
            values.append(times[way] / times["session"])
        texts = [f"{times[way]:.3f}" for way in WAYS] + [f"{values[-1]:.1f}" for values in ratios.values()]
        print(f"| {path.stem} | {' | '.join(texts)} |", flush=True)
    print(f"medians over session: {', '.join(f'{x} {statistics.median(y):.2f}' for x, y in ratios.items())}")


if __name__ == "__main__":
    main(sys.argv[1:])
