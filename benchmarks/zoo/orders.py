"""Write files of one operator each that reads or writes elements in another order: behind or before a transpose.

python -m benchmarks.zoo.orders FOLDER && python -m benchmarks.zoo.compare FOLDER orders
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SHAPES = {"image": (1, 32, 96, 96), "rows": (512, 768), "powers of two": (256, 1024), "heads": (4, 128, 8, 64)}
UNARY = "Relu", "Erf", "IsNaN", "Round", "Trilu"
REDUCTIONS = "ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"
OF_AXIS = "ArgMax", "Softmax"
Case = tuple[str, list[Any], dict[str, Any]]  # operator, further operands, attributes


def cases(shape: tuple[int, ...]) -> Iterator[tuple[str, Case]]:
    """Yield operators on an array of a shape, by name."""
    rng, last, rank = np.random.default_rng(0), shape[-1], len(shape)
    same, row = rng.random(shape, "f4"), rng.random(last, "f4")
    yield from ((kind, (kind, [], {})) for kind in UNARY)
    yield "Add", ("Add", [same], {})
    yield "Add of a row", ("Add", [row], {})
    yield "Less", ("Less", [np.float32(0.5)], {})
    yield "Cast to doubles", ("Cast", [], {"to": 11})
    yield "Cast to integers", ("Cast", [], {"to": 6})
    yield "Pow", ("Pow", [np.float32(1.7)], {})
    yield "MatMul", ("MatMul", [rng.random((last, 64), "f4")], {})
    yield "LayerNormalization", ("LayerNormalization", [row, row], {})
    yield "every second", ("Slice", [np.array([x]) for x in (0, 2**40, -1, 2)], {})
    yield "backwards", ("Slice", [np.array([x]) for x in (-1, -(2**40), -1, -1)], {})
    yield "Pad", ("Pad", [np.array([0] * (rank - 1) + [1] + [0] * (rank - 1) + [2])], {})
    yield "Tile", ("Tile", [np.array([1] * (rank - 1) + [2])], {})
    for axis in (0, -1):
        yield f"Concat {axis}", ("Concat", [same], {"axis": axis})
        yield f"CumSum {axis}", ("CumSum", [np.array(axis)], {})
        yield f"TopK {axis}", ("TopK", [np.array([min(5, shape[axis])])], {"axis": axis})
        index = rng.integers(0, shape[axis], max(shape[axis] // 2, 1))
        yield f"Gather {axis}", ("Gather", [index], {"axis": axis})
        yield from ((f"{kind} {axis}", (kind, [np.array([axis])], {})) for kind in REDUCTIONS)
        yield from ((f"{kind} {axis}", (kind, [], {"axis": axis})) for kind in OF_AXIS)


def write(path: Path, case: Case, shape: Sequence[int], order: str) -> None:
    """Write a file of one operator of opset 18, and of a transpose ``first``, ``last`` or nowhere."""
    from onnx import TensorProto, helper, numpy_helper, save

    kind, operands, options = case
    axes, other = list(range(len(shape))), 1 if len(shape) > 2 else 0
    axes[-1], axes[other] = other, len(shape) - 1
    given = [shape[axis] for axis in axes] if order == "first" else shape
    names = ["x" if order != "first" else "turned", *(f"w{i}" for i in range(len(operands)))]
    end = "y" if order != "last" else "result"
    nodes = [helper.make_node(kind, names, [end, "places"] if kind == "TopK" else [end], **options)]
    if order == "first":
        nodes.insert(0, helper.make_node("Transpose", ["x"], ["turned"], perm=axes))
    if order == "last":
        nodes.append(helper.make_node("Transpose", ["result"], ["y"], perm=axes))
    graph = helper.make_graph(
        nodes, kind, [helper.make_tensor_value_info("x", TensorProto.FLOAT, given)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(x), f"w{i}") for i, x in enumerate(operands)],
    )  # fmt: skip
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


def reduces(case: Case) -> bool:
    """Return True for an operator whose result has other axes, so that no transpose follows."""
    return case[0].startswith("Reduce") or case[0] == "ArgMax"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) / "orders"
    folder.mkdir(parents=True, exist_ok=True)
    for kind, shape in SHAPES.items():
        for name, case in cases(shape):
            for order in ("plain", "first") if reduces(case) else ("plain", "first", "last"):
                write(folder / f"{name} of {kind}, {order}.onnx", case, shape, order)
