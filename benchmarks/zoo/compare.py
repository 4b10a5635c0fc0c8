"""Compare files of the zoo with onnxruntime in one process: results at several sizes, and processor time in turns.

python -m benchmarks.zoo.compare FOLDER [FAMILY ...]

Each file gets a row in ``FOLDER/compared.jsonl``: the verdict, the largest difference of any output relative to its
largest value (for two inputs, and for two more sizes if the model has dynamic axes), and the median ratio of processor
times. Files that have a row are skipped. This takes less time than `benchmarks.zoo`, which starts a process for each
engine.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.zoo.__main__ import NEAR, apart
from benchmarks.zoo.architectures import TOKENS

SIZES = ({"N": 2, "L": 0, "M": 12, "P": 10}, {"N": 1, "L": -7, "M": 9, "P": 17}, {"N": 3, "L": 9, "M": 17, "P": 5})
LENGTH, WIDE_LENGTH = 24, 128  # to which L is added
WORDS = np.array(["a", "b", "c", "the cat sat", "dogs and cats"], object)
TURNS, LEAST_SECONDS = 25, 0.004  # of each engine


def feeds_of(graph: Any, sizes: dict[str, int], seed: int) -> dict[str, np.ndarray]:
    """Return values for the inputs of a graph. An open axis has a size by its place: N, then L, M or P."""
    rng, stored = np.random.default_rng(seed), {x.name for x in graph.initializer}
    inputs = [x for x in graph.input if x.name not in stored]
    steps = sizes["P"] if any(x.name.startswith("past_0") for x in inputs) else 0
    feeds = {}
    for x in inputs:
        last = "P" if x.name.startswith("past_") else "M" if x.name.startswith("decoder") else "L"
        more = steps if x.name == "attention_mask" else 0
        shape = [
            d.dim_value if d.HasField("dim_value") else sizes[last] + more if i else sizes["N"]
            for i, d in enumerate(x.type.tensor_type.shape.dim)
        ]
        feeds[x.name] = values_for(x.name, shape, x.type.tensor_type.elem_type, rng)
    return feeds


def values_for(name: str, shape: list[int], kind: int, rng: np.random.Generator) -> np.ndarray:
    """Return normal numbers, tokens, strings, boxes, or ones for a mask; a second row is masked at its end."""
    import onnx

    if kind == onnx.TensorProto.STRING:
        return rng.choice(WORDS, shape)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    if name == "bbox":
        corner = rng.integers(0, 50, (*shape[:-1], 2))
        return np.concatenate([corner, corner + 10], -1).astype(dtype)
    if "mask" in name or dtype.kind == "b":
        return np.ones(shape, dtype)
    return rng.normal(size=shape).astype(dtype) if dtype.kind == "f" else rng.integers(3, TOKENS, shape).astype(dtype)


def compared(path: Path) -> dict[str, Any]:
    """Return the row of one file."""
    import onnx

    import cgraph as cg
    from benchmarks.peers import onnxruntime_session

    graph, length = onnx.load(path).graph, WIDE_LENGTH if "wide" in path.parent.name else LENGTH
    sizes = [x | {"L": length + x["L"]} for x in SIZES]
    feeds = [feeds_of(graph, sizes[i], seed) for seed, i in enumerate((0, 0, 1, 2))]
    try:
        session = onnxruntime_session(str(path), 1)
        session.run(None, feeds[0])
    except Exception as error:  # any
        return {"verdict": "onnxruntime fails", "error": f"{type(error).__name__}: {error}"[:300]}
    try:
        function = cg.load(path, threads=1)
        worst = max(difference(function, session, x) for x in feeds)
    except Exception as error:  # a refusal, or a fault
        return {"verdict": "refused", "error": f"{type(error).__name__}: {error}"[:1000]}
    ratio, seconds = ratio_of(lambda: function.run(None, feeds[0]), lambda: session.run(None, feeds[0]))
    verdict = "right" if worst <= NEAR else "wrong"
    return {"verdict": verdict, "difference": worst, "ratio": ratio, "onnxruntime": seconds}


def difference(function: Any, session: Any, feeds: dict[str, np.ndarray]) -> float:
    """Return the largest difference of any output; 0 for sizes that onnxruntime refuses."""
    try:
        expected = session.run(None, feeds)
    except Exception:  # an export that holds the sizes of its example
        return 0.0
    results = function.run(None, feeds)
    flat = [y for x in expected for y in (x if isinstance(x, list) and not isinstance(x[0], dict) else [x])]
    pairs = [(array_of(x), array_of(y)) for x, y in zip(results, flat, strict=True)]
    return max((float("inf") if x.shape != y.shape else apart(x, y) for x, y in pairs), default=0.0)


def array_of(x: Any) -> np.ndarray:
    """Return an output as an array: of a list of dictionaries the values."""
    return np.array([list(row.values()) for row in x]) if isinstance(x, list) else np.asarray(x)


def ratio_of(own: Callable[[], Any], peer: Callable[[], Any]) -> tuple[float, float]:
    """Return the median ratio of processor times of two functions in turns, and the median of the second."""
    own(), peer()
    count = max(1, min(200, int(LEAST_SECONDS / max(timed(peer, 1), 1e-6))))
    pairs = [(timed(own, count), timed(peer, count)) for _ in range(TURNS)]
    return median(x / y for x, y in pairs), median(y for _, y in pairs)


def timed(run: Callable[[], Any], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - start) / count


def main() -> int:
    folder, families = Path(sys.argv[1]), sys.argv[2:]
    rows = folder / "compared.jsonl"
    rows.touch()
    done = {json.loads(line)["file"] for line in rows.read_text().splitlines()}
    for path in sorted(x for f in families or ["*"] for x in folder.glob(f"{f}/*.onnx")):
        name = f"{path.parent.name}/{path.stem}"
        if name not in done:
            row = {"file": name, **compared(path)}
            with rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(name, row["verdict"], round(row.get("ratio", 0), 3), row.get("error", "")[:200], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
