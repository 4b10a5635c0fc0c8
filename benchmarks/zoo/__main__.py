"""Networks of other packages as ONNX files, compared with onnxruntime and openvino.

python -m benchmarks.zoo write FOLDER [--family F] [--most N]     export; needs `pip install 'cgraph-engine[zoo]'`
python -m benchmarks.zoo run FOLDER [--family F] [--threads 1] [--engines cgraph,onnxruntime,openvino]
python -m benchmarks.zoo table FOLDER [--threads 1]

Each export runs in a new process, and so does each measured start of an engine. Run times are measured with the engines
in turns: on one thread in one process, on several in separate processes. `write` and `run` continue where they
stopped: they skip files that exist and networks that have a row in ``FOLDER/results.jsonl`` (remove a row to measure it
again).
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.start import with_byte_code
from benchmarks.zoo.architectures import FAMILIES, write_one
from benchmarks.zoo.inputs import feeds_of

EXPORT_SECONDS, RUN_SECONDS = 300, 400
ROUNDS = 3  # of processes that each run one engine on several threads
WIDEST = 1000  # numbers of a row that are compared to order rows
NEAR = 1e-3  # of the largest value, from onnxruntime's: a right answer
HEAD = (
    "| family | files | onnxruntime runs | right | refused | wrong "
    "| faster than onnxruntime | median | faster than openvino | median | less memory than both | cold start, median |"
)
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("action", choices=["write", "run", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--most", type=int, default=1000, help="new files of each family, at most")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engines", default="cgraph,onnxruntime,openvino")
    args = parser.parse_args()
    families = [args.family] if args.family else list(FAMILIES)
    if args.action == "write":
        write(args.folder, families, args.most)
    elif args.action == "run":
        run(args.folder, families, args.engines.split(","), args.threads)
    else:
        print("\n".join(table(rows_of(args.folder), args.threads)))
    return 0


def write(folder: Path, families: Sequence[str], most: int = 1000) -> None:
    """Write the missing files, at most `most` of each family; the traceback of a failure goes to a ``.txt`` file."""
    for family in families:
        (folder / family).mkdir(parents=True, exist_ok=True)
        paths = [folder / family / f"{name}.onnx" for name in FAMILIES[family].names]
        missing = [path for path in paths if not path.exists() and not path.with_suffix(".txt").exists()]
        for path in missing[:most]:
            part = path.with_suffix(".part")
            text = export(family, path.stem, part)
            if part.exists() and not text:
                os.replace(part, path)
            else:
                path.with_suffix(".txt").write_text(text)
            print(family, path.stem, text.strip().splitlines()[-1:] or "written", flush=True)


def export(family: str, name: str, path: Path) -> str:
    """Write one architecture in a process forked with the packages loaded; return the error, or an empty text."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.zoo.packages"])
    with tempfile.TemporaryDirectory() as folder:
        failure = Path(folder, "failure.txt")
        process = context.Process(target=write_one, args=(family, name, path, failure))
        process.start()
        process.join(EXPORT_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            return f"took more than {EXPORT_SECONDS} s"
        text = failure.read_text() if failure.exists() else ""
        return text or (f"ended with {process.exitcode}" if process.exitcode else "")


def process(command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command; return its exit status (-1 after a timeout) and its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    except subprocess.TimeoutExpired:
        return -1, f"took more than {seconds} s"
    return done.returncode, done.stdout + done.stderr


def run(folder: Path, families: Sequence[str], engines: Sequence[str], threads: int) -> None:
    """Measure the files that have no row yet, and compare the answers with those of onnxruntime."""
    done = {(row["file"], row["threads"]) for row in rows_of(folder)}
    for family in families:
        for path in sorted((folder / family).glob("*.onnx")):
            name = f"{family}/{path.stem}"
            if (name, threads) in done:
                continue
            row = measured(path, engines, threads) | {"file": name, "threads": threads}
            with (folder / "results.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(name, summary(row), flush=True)


def measured(path: Path, engines: Sequence[str], threads: int) -> Row:
    """Measure one file with each engine."""
    row: Row = {}
    answers: dict[str, list[np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = [f"{folder}/{seed}.npz" for seed in (1, 2)]
        for seed, file in enumerate(inputs, 1):
            np.savez(file, **feeds_of(path, seed))
        for engine in engines:
            results = f"{folder}/{engine}.npz"
            figures_of(path, engine, threads, [*inputs, results], folder, "other")  # not counted: writes byte code
            if engine == "cgraph":  # with no kernel of any earlier process
                row["cold"] = figures_of(path, engine, threads, [*inputs, results], folder)
            row[engine] = figures_of(path, engine, threads, [*inputs, results], folder)
            if "error" not in row[engine]:
                with np.load(results) as file:
                    answers[engine] = [file[x] for x in file.files]
        if len(answers) > 1:
            times = times_of(path, list(answers), threads, inputs, folder)
            for engine in answers:
                row[engine] |= times.get(engine, {})
    if "onnxruntime" in answers:
        for engine, values in answers.items():
            compare = difference_of_sets if path.parent.name == "detection" else difference
            row[engine]["difference"] = compare(values, answers["onnxruntime"])
    return row


def times_of(path: Path, engines: Sequence[str], threads: int, inputs: Sequence[str], folder: str) -> Row:
    """Return the seconds of a run by engine.

    On one thread the engines take turns in one process. On several, processes of one engine each do: threads of
    onnxruntime wait busily after a run, and would take a core from the other engine.
    """
    if threads == 1:
        return figures_of(path, ",".join(engines), threads, inputs, folder)
    rounds = [
        {engine: figures_of(path, f"{engine},", threads, inputs, folder).get(engine, {}) for engine in engines}
        for _ in range(ROUNDS)
    ]
    seconds = {engine: [x[engine]["seconds"] for x in rounds if x[engine]] for engine in engines}
    return {engine: {"seconds": statistics.median(x)} for engine, x in seconds.items() if x}


def figures_of(
    path: Path, engines: str, threads: int, files: Sequence[str], folder: str, cache: str = "kernels"
) -> Row:
    """Return the output of a measuring process, or its error.

    Parameters
        folder: of byte code and kernels
        cache: name of the folder of kernels in it
    """
    command = [sys.executable, "-m", "benchmarks.zoo.measure", str(path), engines, str(threads), *files]
    environment = with_byte_code(Path(folder)) | {"XDG_CACHE_HOME": f"{folder}/{cache}"}
    status, text = process(command, RUN_SECONDS, environment)
    lines = text.strip().splitlines()
    figures = next((json.loads(x) for x in reversed(lines) if x.startswith("{")), None)
    return figures or {"error": f"status {status}: {' '.join(lines[-1:])}"[:500]}


def difference(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> float:
    """Return the largest difference of any output, relative to its largest value; infinity if shapes differ."""
    if [x.shape for x in xs] != [y.shape for y in ys]:
        return float("inf")
    return max((apart(x, y) for x, y in zip(xs, ys)), default=0.0)


def difference_of_sets(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> float:
    """Return the `difference` of two results of a detector, regardless of the order of boxes.

    Rounding decides between scores that are nearly equal.
    """
    half, ordered = len(xs) // 2, difference(xs, ys)
    if ordered <= NEAR or np.isinf(ordered):
        return ordered
    runs = [(xs[:half], ys[:half]), (xs[half:], ys[half:])]
    return max(difference(in_order_of(x, y), y) for x, y in runs)


def in_order_of(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return arrays with their rows permuted to match those of other arrays best."""
    cost = np.zeros((len(xs[0]), len(xs[0])))
    for x, y in zip(xs, ys):
        if x.dtype.kind not in "fiub" or x[:1].size > WIDEST:
            continue
        x, y = (np.nan_to_num(v.astype(float)).reshape(len(v), -1) for v in (x, y))
        cost += np.abs(x[None] - y[:, None]).sum(-1) / max(np.abs(y).max(initial=0), 1e-30)
    order = linear_sum_assignment(cost)[1]
    return [x[order] for x in xs]


def apart(x: np.ndarray, y: np.ndarray) -> float:
    if x.dtype.kind not in "fiub" or not x.size:
        return 0.0 if np.array_equal(x, y) else float("inf")
    x, y = x.astype(float), y.astype(float)
    same = (x == y) | np.isnan(x) & np.isnan(y)
    scale = np.abs(y[np.isfinite(y)]).max(initial=1e-30)
    with np.errstate(invalid="ignore"):  # of infinities
        worst = np.abs(np.where(same, 0, x - y)).max() / scale
    return float(worst) if np.isfinite(worst) else float("inf")


def rows_of(folder: Path) -> list[Row]:
    """Return the rows of a folder."""
    path = folder / "results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def verdict(row: Row) -> str:
    """Return ``right``, ``wrong``, ``refused`` or, where onnxruntime has no answer, ``runs``."""
    if "error" in row["cgraph"]:
        return "refused"
    if "difference" not in row["cgraph"]:
        return "runs"
    return "right" if row["cgraph"]["difference"] <= NEAR else "wrong"


def summary(row: Row) -> str:
    ratios = [f"{x} {ratio(row, x):.2f}" for x in ("onnxruntime", "openvino") if ratio(row, x)]
    return " ".join([verdict(row), *ratios, row["cgraph"].get("error", "")])


def ratio(row: Row, peer: str, figure: str = "seconds", own: str = "cgraph") -> float | None:
    """Return our figure divided by a peer's; None if one is missing."""
    values = [row.get(engine, {}).get(figure) for engine in (own, peer)]
    return values[0] / values[1] if all(values) else None


def table(rows: Sequence[Row], threads: int) -> Iterator[str]:
    """Yield the lines of a table by family, then a line for each file that is not ``right``."""
    rows = [row for row in rows if row["threads"] == threads]
    yield HEAD
    yield "|---" * HEAD.count(" |") + "|"
    families = [*dict.fromkeys(row["file"].split("/")[0] for row in rows)]
    for family in [*families, "all"]:
        own = [row for row in rows if family in ("all", row["file"].split("/")[0])]
        counts = [verdict(row) for row in own]
        cells = [len(own), sum("error" not in row.get("onnxruntime", {"error": ""}) for row in own)]
        cells += [counts.count(x) for x in ("right", "refused", "wrong")]
        yield (
            f"| {family} | {' | '.join(map(str, cells))} | {faster(own, 'onnxruntime')} | {faster(own, 'openvino')} "
            f"| {smaller(own)} | {median_of(ratio(row, 'onnxruntime', 'start', 'cold') for row in own)} |"
        )
    yield ""
    for row in rows:
        if verdict(row) in ("wrong", "refused"):
            reason = row["cgraph"].get("error") or f"{row['cgraph']['difference']:.1e} of the largest value"
            yield f"- `{row['file']}`: {verdict(row)}: {reason.splitlines()[0]}"


def faster(rows: Sequence[Row], peer: str) -> str:
    ratios = [x for x in (ratio(row, peer) for row in rows) if x]
    return f"{sum(x < 1 for x in ratios)} of {len(ratios)} | {median_of(ratios)}" if ratios else "– | –"


def smaller(rows: Sequence[Row]) -> str:
    """Return the number of networks that take less memory than with both peers, among those that both run."""
    pairs = [[ratio(row, peer, "memory") for peer in ("onnxruntime", "openvino")] for row in rows]
    largest = [max(pair) for pair in pairs if all(pair)]
    return f"{sum(x < 1 for x in largest)} of {len(largest)}" if largest else "–"


def median_of(ratios: Iterable[float | None]) -> str:
    values = [x for x in ratios if x]
    return f"{statistics.median(values):.2f}" if values else "–"


if __name__ == "__main__":
    sys.exit(main())
