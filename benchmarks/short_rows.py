"""Softmax, sums and layer norms of short rows on one thread: our kernels, and onnxruntime's one-node models.

    python -m benchmarks.short_rows

Rows of about 131,072 elements in all. Ours is the kernel alone. onnxruntime's time is that of one more node in a chain
for softmax and layer norms, without the copies at both ends; for sums it is a whole run of one node.
"""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.prepared import aligned, prepare
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.normalise.calls import layer_norm_calls
from cgraph.kernels.reduce.calls import reduce_calls
from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.target import host_target

ELEMENTS = 131_072
LENGTHS = (48, 49, 64, 96, 128, 196, 197, 200)
NODES = {"softmax": ("Softmax", 1, 7), "sum": ("ReduceSum", 0, 1), "layer norm": ("LayerNormalization", 1, 7)}


def view(*shape: int) -> View:
    """Return a view of new random numbers."""
    array = aligned(4 * int(np.prod(shape))).view("f4").reshape(shape)
    array[...] = np.random.default_rng(0).standard_normal(shape)
    return contiguous(Pointer(array), shape, "f4")


def calls(kind: str, rows: int, columns: int) -> list[Call]:
    """Return our calls of one kind."""
    target, x, out = host_target(), view(rows, columns), view(rows, columns)
    if kind == "softmax":
        return softmax_calls(target, "softmax", out, x, 1)
    if kind == "sum":
        return reduce_calls(target, "sum", (("load", "f4", 0),), view(rows), x, axes=(1,))
    return layer_norm_calls(target, out, x, view(columns), view(columns), 1, 1e-5)


def session(kind: str, rows: int, columns: int, count: int) -> Callable[[], object]:
    """Return a run of a chain of `count` nodes in onnxruntime on one thread."""
    import onnxruntime as ort
    from onnx import TensorProto, helper

    node, first, _ = NODES[kind]
    names = ["x", *(f"t{i}" for i in range(count))]
    extra = {"sum": ["axes"], "layer norm": ["scale", "scale"]}.get(kind, [])
    nodes = [helper.make_node(node, [a, *extra], [b]) for a, b in zip(names, names[1:])]
    constants = {
        "sum": [helper.make_tensor("axes", TensorProto.INT64, [1], [-1])],
        "layer norm": [helper.make_tensor("scale", TensorProto.FLOAT, [columns], np.ones(columns, "f4"))],
    }
    shapes = [rows, columns], [rows, columns if first else 1]
    ends = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip((names[0], names[-1]), shapes))
    graph = helper.make_graph(nodes, "g", [next(ends)], [next(ends)], constants.get(kind, []))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    run = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run
    x = np.random.default_rng(0).standard_normal((rows, columns), "f4")
    return lambda: run(None, {"x": x})


def least(functions: list[Callable[[], object]]) -> list[float]:
    """Return the least processor microseconds of each function, in turns."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(15):
        for f, series in zip(functions, times):
            start = time.process_time()
            for _ in range(10):
                f()
            series.append((time.process_time() - start) * 1e5)
    return [min(series) for series in times]


def main() -> None:
    print("| rows | " + " | ".join(f"{kind}: ours, µs | onnxruntime, µs" for kind in NODES) + " |")
    print("|" + "---|" * (1 + 2 * len(NODES)))
    for columns in LENGTHS:
        rows, cells = ELEMENTS // columns, []
        for kind, (_, _, most) in NODES.items():
            peers = [session(kind, rows, columns, count) for count in sorted({1, most})]
            ours, one, *chain = least([prepare(calls(kind, rows, columns)), *peers])
            cells += [ours, (chain[0] - one) / (most - 1) if chain else one]
        print(f"| {columns} | " + " | ".join(f"{x:.0f}" for x in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
