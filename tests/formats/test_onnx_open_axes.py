"""Operators of a value of which any two axes have lengths that are known only when run, as onnxruntime has them."""

from typing import Any

import numpy as np
import pytest

from tests.support.onnx_open import agrees, node, numbers, open_model

pytest.importorskip("onnxruntime")
SHAPE = (4, 3, 5)
PAIRS = [(0, 1), (1, 2), (0, 2)]
X = np.random.default_rng(6).integers(-4, 5, SHAPE).astype("f4")
CONSTANTS = {
    "zero": numbers(0), "one": numbers(1), "two": numbers(2), "ends": numbers(0, -1), "starts": numbers(1, -3),
    "stops": numbers(4, 9), "steps": numbers(1, 2), "last two": numbers(1, 2), "first two": numbers(0, 1),
    "far": numbers(-9), "back": numbers(-1), "frame": numbers(1, 0, 2, 0, 3, 1), "all": numbers(-1),
    "flat": numbers(0, -1), "wide": numbers(2, 1, 1, 1), "single": np.array(1), "half": np.float32(0.5),
    "seven": np.float32(7), "slope": np.float32([[[0.5]]]), "five": np.int64(5), "levels": np.float32([0.5, 2]),
    "place": numbers(-1).reshape(1, 1, 1),
}  # fmt: skip
TABLE: dict[str, list[Any]] = {
    "transposed": [node("Transpose", ["v"], ["y"], perm=[2, 0, 1])],
    "turned": [node("Transpose", ["v"], ["y"])],
    "flat from 1": [node("Flatten", ["v"], ["y"], axis=1)],
    "flat from 2": [node("Flatten", ["v"], ["y"], axis=-1)],
    "with axes": [node("Unsqueeze", ["v", "ends"], ["y"])],
    "with and without": [node("Unsqueeze", ["v", "two"], ["w"]), node("Squeeze", ["w", "two"], ["y"])],
    "joined": [node("Concat", ["v", "v"], ["y"], axis=1)],
    "joined at the end": [node("Neg", ["v"], ["w"]), node("Concat", ["v", "w", "v"], ["y"], axis=-1)],
    "shape": [node("Shape", ["v"], ["y"])],
    "part of the shape": [node("Shape", ["v"], ["y"], start=1, end=-1)],
    "size": [node("Size", ["v"], ["y"])],
    "sliced": [node("Slice", ["v", "starts", "stops", "last two", "steps"], ["y"])],
    "backwards": [node("Slice", ["v", "back", "far", "one", "back"], ["y"])],
    "a vector": [node("Reshape", ["v", "all"], ["y"])],
    "rows": [node("Reshape", ["v", "flat"], ["y"])],
    "a frame": [node("Pad", ["v", "frame", "seven"], ["y"])],
    "repeated": [node("Expand", ["v", "wide"], ["y"])],
    "sums of the ends": [node("ReduceSum", ["v", "ends"], ["y"], keepdims=0)],
    "sums that stay": [node("ReduceSum", ["v", "one"], ["y"], keepdims=1)],
    "the largest": [node("ReduceMax", ["v", "last two"], ["y"], keepdims=0)],
    "the mean": [node("ReduceMean", ["v", "first two"], ["y"], keepdims=1)],
    "the length": [node("ReduceL2", ["v", "two"], ["y"], keepdims=0)],
    "places of the largest": [node("ArgMax", ["v"], ["y"], axis=1, keepdims=0)],
    "running sums": [node("CumSum", ["v", "single"], ["y"])],
    "running sums backwards": [node("CumSum", ["v", "single"], ["y"], reverse=1, exclusive=1)],
    "softmax": [node("Softmax", ["v"], ["y"], axis=2)],
    "a product with itself": [node("Mul", ["v", "v"], ["y"])],
    "a sum with a number": [node("Add", ["v", "half"], ["y"])],
    "a slope": [node("PRelu", ["v", "slope"], ["y"])],
    "a choice": [node("Greater", ["v", "half"], ["g"]), node("Where", ["g", "v", "half"], ["y"])],
    "clipped": [node("Clip", ["v", "half", "seven"], ["y"])],
    "gathered": [node("Gather", ["v", "ends"], ["y"], axis=1)],
    "halves": [node("Split", ["v"], ["y", "z"], axis=2, num_outputs=2)],
    "the first of all": [node("TopK", ["v", "one"], ["y", "z"], axis=2)],
    "triangles": [node("Trilu", ["v"], ["y"], upper=0)],
    "nonzero": [node("NonZero", ["v"], ["y"])],
    "a difference": [node("Identity", ["v"], ["w"]), node("Exp", ["v"], ["e"]), node("Sub", ["w", "e"], ["y"])],
    "an own product": [node("Transpose", ["v"], ["w"], perm=[0, 2, 1]), node("MatMul", ["v", "w"], ["y"])],
    "einsum": [node("Einsum", ["v", "v"], ["y"], equation="aij,akj->aik")],
    "einsum of sums": [node("Einsum", ["v"], ["y"], equation="aij->ja")],
    "gathered by default": [node("Gather", ["v", "ends"], ["y"])],
    "elements by default": [node("GatherElements", ["v", "place"], ["y"])],
    "elements at the end": [node("GatherElements", ["v", "place"], ["y"], axis=-1)],
    "written by default": [node("ScatterElements", ["v", "place", "slope"], ["y"])],
    "written and added": [node("ScatterElements", ["v", "place", "slope"], ["y"], axis=2, reduction="add")],
    "flat by default": [node("Flatten", ["v"], ["y"])],
    "softmax by default": [node("Softmax", ["v"], ["y"])],
    "the first by default": [node("TopK", ["v", "one"], ["y", "z"])],
    "the last by default": [node("TopK", ["v", "one"], ["y", "z"], largest=0)],
    "places by default": [node("ArgMin", ["v"], ["y"])],
    "halves by default": [node("Split", ["v"], ["y", "z"], num_outputs=2)],
    "sums of all": [node("ReduceSum", ["v"], ["y"])],
    "the largest of all": [node("ReduceMax", ["v"], ["y"], keepdims=0)],
    "triangles by default": [node("Trilu", ["v"], ["y"])],
    "running sums from the front": [node("CumSum", ["v", "single"], ["y"], exclusive=1)],
    "leaky by default": [node("LeakyRelu", ["v"], ["y"])],
    "elu by default": [node("Elu", ["v"], ["y"])],
    "hard by default": [node("HardSigmoid", ["v"], ["y"])],
    "unique by default": [node("Unique", ["v"], ["y", "a", "b", "n"])],
    "codes by default": [node("Cast", ["v"], ["k"], to=7), node("OneHot", ["k", "five", "levels"], ["y"])],
    "codes": [node("Cast", ["v"], ["k"], to=7), node("OneHot", ["k", "five", "levels"], ["y"], axis=1)],
}  # fmt: skip


def opened(nodes: list[Any], pair: tuple[int, int], outputs: str) -> bytes:
    """A model in which `v` is the part of `x` that two masks select along two axes."""
    before, name = [], "x"
    for i, axis in enumerate(pair):
        before += [
            node("NonZero", [f"m{i}"], [f"n{i}"]), node("Squeeze", [f"n{i}", "zero"], [f"i{i}"]),
            node("Gather", [name, f"i{i}"], ["v" if i else "part"], axis=axis),
        ]  # fmt: skip
        name = "part"
    inputs = {"x": ("f4", SHAPE), **{f"m{i}": ("?", (SHAPE[axis],)) for i, axis in enumerate(pair)}}
    return open_model([*before, *nodes], inputs, CONSTANTS, outputs)


def feeds(pair: tuple[int, int]) -> list[dict[str, Any]]:
    draws = np.random.default_rng(2)
    masks = []
    for counts in ((2, 3), (1, 1), (3, 2), (SHAPE[pair[0]], SHAPE[pair[1]])):
        drawn = [draws.permutation(SHAPE[axis]) < n for axis, n in zip(pair, counts)]
        masks.append({"x": X, "m0": drawn[0], "m1": drawn[1]})
    return masks


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("name", TABLE)
def test_two_axes_of_any_operator(name, pair):
    nodes = TABLE[name]
    outputs = " ".join(nodes[-1].output)
    agrees(opened(nodes, pair, outputs), feeds(pair))
