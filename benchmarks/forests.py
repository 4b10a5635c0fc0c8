"""Large forests, here and in onnxruntime: time from a file to a function, of processors and elapsed, and peak memory.

    python -m benchmarks.forests [nodes]

Each engine runs in a process of its own. Needs onnxruntime.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import cgraph as cg
from cgraph.formats import onnx as reader

COLUMNS, DEPTH, ROWS = 20, 16, 1000


def forest(trees: int) -> bytes:
    """Return the file of complete binary trees with random tests, a tag before each number as skl2onnx writes it."""
    rng, nodes = np.random.default_rng(1), (1 << DEPTH + 1) - 1
    is_leaf = np.tile(np.arange(nodes) >= nodes // 2, trees)
    tree, number = np.repeat(np.arange(trees), nodes), np.tile(np.arange(nodes), trees)
    leaves = np.flatnonzero(is_leaf)
    lists = {
        "nodes_treeids": tree, "nodes_nodeids": number,
        "nodes_featureids": np.where(is_leaf, 0, rng.integers(0, COLUMNS, len(tree))),
        "nodes_truenodeids": np.where(is_leaf, 0, 2 * number + 1),
        "nodes_falsenodeids": np.where(is_leaf, 0, 2 * number + 2),
        "nodes_missing_value_tracks_true": np.zeros(len(tree), int),
        "nodes_values": rng.standard_normal(len(tree)), "nodes_hitrates": np.ones(len(tree)),
        "target_treeids": tree[leaves], "target_nodeids": number[leaves], "target_ids": np.zeros(len(leaves), int),
        "target_weights": rng.standard_normal(len(leaves)),
    }  # fmt: skip
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["y"], domain="ai.onnx.ml", n_targets=1)
    for name, values in lists.items():
        kind = onnx.AttributeProto.FLOATS if values.dtype.kind == "f" else onnx.AttributeProto.INTS
        attribute = node.attribute.add(name=name, type=kind)
        (attribute.floats if values.dtype.kind == "f" else attribute.ints).extend(values.tolist())
    modes = node.attribute.add(name="nodes_modes", type=onnx.AttributeProto.STRINGS)
    modes.strings.extend([b"LEAF" if leaf else b"BRANCH_LEQ" for leaf in is_leaf.tolist()])
    x, y = (helper.make_tensor_value_info(name, 1, [None, width]) for name, width in (("X", COLUMNS), ("y", 1)))
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 18)]
    graph = helper.make_graph([node], "forest", [x], [y])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def resident(name: str) -> int:
    """Return a resident size of this process in bytes: the present one (VmRSS) or the largest one (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def measure(engine: str, path: str) -> None:
    """Print the elapsed and processor seconds and the bytes of one engine, and the sum of its results."""
    x = np.random.default_rng(2).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    if engine == "onnxruntime":
        import onnxruntime

        before, start, worked = resident("VmRSS"), time.perf_counter(), time.process_time()
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        seconds, nbytes = (time.perf_counter() - start, time.process_time() - worked), resident("VmHWM") - before
        results = session.run(None, {"X": x})[0]
    else:
        before, start, worked = resident("VmRSS"), time.perf_counter(), time.process_time()
        model = reader.load(path, shapes={"X": x.shape})
        function = cg.compile(model.outputs[0], model.inputs)
        seconds, nbytes = (time.perf_counter() - start, time.process_time() - worked), resident("VmHWM") - before
        results = function(x)
    print(json.dumps([*seconds, nbytes, float(np.abs(results).sum())]))


def main(nodes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest.onnx"
        path.write_bytes(forest(max(nodes >> DEPTH + 1, 1)))
        print(f"{path.stat().st_size / 1e6:.0f} MB\n| engine | seconds | of processors | MB | sum |")
        print("|---|---:|---:|---:|---:|")
        for engine in ("cgraph", "onnxruntime"):
            command = [sys.executable, "-m", "benchmarks.forests", engine, str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            elapsed, worked, nbytes, total = json.loads(done.stdout)
            print(f"| {engine} | {elapsed:.2f} | {worked:.2f} | {nbytes / 1e6:.0f} | {total:.1f} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(*sys.argv[1:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
