"""Forests of scikit-learn, here and in onnxruntime, in turns in one process: milliseconds, medians.

    python -m benchmarks.trees [1|2]

Needs skl2onnx and onnxruntime.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import skl2onnx
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

import cgraph as cg
from cgraph.cli.bench import alternate_runs, onnxruntime_run
from cgraph.formats import onnx

ROWS, TURNS = (1, 100, 10_000), 9
COLUMNS, SAMPLES = 20, 4000


def models() -> dict[str, bytes]:
    """Return ONNX files by name of the forest."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((SAMPLES, COLUMNS)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int) + (x[:, 3] > 1)
    forest = RandomForestClassifier(100, random_state=0).fit(x, y)
    boosted = GradientBoostingRegressor(n_estimators=100, max_depth=6, subsample=0.3, random_state=0).fit(x, y)
    plain = {"zipmap": False}
    return {
        "100 trees, three classes": skl2onnx.to_onnx(forest, x[:1], options=plain).SerializeToString(),
        "100 boosted trees of depth 6": skl2onnx.to_onnx(boosted, x[:1]).SerializeToString(),
    }


def main(threads: int) -> None:
    rng = np.random.default_rng(2)
    print("| model | rows | cgraph | onnxruntime | theirs / ours |\n|---|---:|---:|---:|---:|")
    for name, model in models().items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model)
            for rows in ROWS:
                x = rng.standard_normal((rows, COLUMNS)).astype(np.float32)
                read = onnx.load(model, shapes={"X": x.shape})
                function = cg.compile(list(read.outputs), read.inputs, threads=threads)
                runs = {
                    "ours": lambda f=function, x=x: f(x),
                    "theirs": onnxruntime_run(str(path), {"X": x}, threads),
                }
                times = alternate_runs(runs, TURNS)
                ours, theirs = (1e3 * median(times[who]) for who in runs)
                print(f"| {name} | {rows} | {ours:.3g} | {theirs:.3g} | {theirs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
