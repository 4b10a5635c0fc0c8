"""Whole models of dynamic lengths: masks, detectors, branches and loops, as exporters write them."""

from typing import Any

import numpy as np
import pytest

from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx import load
from tests.support.onnx_open import agrees, node, numbers, open_model

pytest.importorskip("onnxruntime")
X = ("f4", (4, 3))
ONE = ("i8", ())


def x_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape or (4, 3)).astype("f4")


def given(name: str, *values: Any, **others: Any) -> list[dict[str, Any]]:
    return [{name: np.array(v, np.int64), **others} for v in values]


def graph_of(steps: list[tuple]) -> list[Any]:
    """Nodes as kind, operands, results and attributes."""
    return [
        node(kind, read.split(), written.split(), **(more[0] if more else {})) for kind, read, written, *more in steps
    ]


# -- what torch 2.13 writes for masks ----------------------------------------------------------------------------------

MASK = {"x": X, "m": ("?", (4, 3))}
PLACES = [("NonZero", "m", "p"), ("Transpose", "p", "t", {"perm": [1, 0]})]
MASKED: dict[str, tuple[list[tuple], dict[str, Any]]] = {
    "x[m]": ([*PLACES, ("GatherND", "x t", "y", {"batch_dims": 0})], {}),
    "masked_select(x, m).sum()": ([*PLACES, ("GatherND", "x t", "v"), ("ReduceSum", "v", "y", {"keepdims": 0})], {}),
    "masked_scatter": (
        [
            *PLACES,
            ("Reshape", "v minus", "flat"),
            ("Shape", "t", "h", {"start": 0}),
            ("Gather", "h zero", "n"),
            ("Slice", "flat zero n zero", "u"),
            ("ScatterND", "x t u", "y"),
        ],
        {"v": x_of(4, 3)},
    ),
    "y[m] = y[m] * 3": (
        [*PLACES, ("GatherND", "x t", "v"), ("Mul", "v three", "w"), ("ScatterND", "x t w", "y")],
        {"three": np.float32(3)},
    ),
    "y[m] = 0.5": (
        [
            *PLACES,
            ("Shape", "t", "h"),
            ("Gather", "h zero", "n"),
            ("Expand", "half n", "v"),
            ("ScatterND", "x t v", "y"),
        ],
        {"half": np.float32(0.5)},
    ),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_as_torch_writes_it(name):
    steps, more = MASKED[name]
    raw = open_model(graph_of(steps), MASK, {"zero": numbers(0), "minus": numbers(-1), **more})
    rng = np.random.default_rng(4)
    agrees(raw, [{"x": x_of(), "m": rng.random((4, 3)) < share} for share in (0, 0.3, 0.7, 1)])


def test_rows_are_repeated_as_often_as_counts_say():
    """`torch.repeat_interleave` with computed counts."""
    steps = [
        ("CumSum", "c zero", "ends"),
        ("Gather", "ends minus", "last"),
        ("Squeeze", "last zero", "n"),
        ("Range", "n0 n n1", "r"),
        ("Unsqueeze", "ends minus", "e"),
        ("Less", "r e", "b"),
        ("Cast", "b", "bi", {"to": 7}),
        ("ReduceSum", "bi zero", "s", {"keepdims": 0}),
        ("Sub", "four s", "d"),
        ("Reshape", "d minus", "f"),
        ("Unsqueeze", "f minus", "g"),
        ("GatherND", "rows g", "h"),
        ("Reshape", "h minus", "i"),
        ("Gather", "x i", "y"),
    ]
    constants = {"zero": numbers(0), "minus": numbers(-1), "n0": np.int64(0), "n1": np.int64(1), "four": numbers(4)}
    raw = open_model(graph_of(steps), {"x": X, "c": ("i8", (4,))}, constants | {"rows": np.arange(4)[:, None]})
    agrees(raw, given("c", [1, 0, 2, 3], [0, 0, 0, 0], [1, 1, 1, 1], [0, 5, 0, 0], x=x_of()), {"c": 5})
    with pytest.raises(FormatError, match="nothing bounds axis 0"):
        load(raw)


@pytest.mark.parametrize("at", [[0], [-2], [1, 0]])
def test_a_length_that_only_a_run_knows_replaces_elements_of_a_shape(at):
    """`torch.Tensor.index_copy` and `expand` write the number of selected rows into a shape at constant indices."""
    steps = [
        ("NonZero", "m", "p"),
        ("Transpose", "p", "t", {"perm": [1, 0]}),
        ("Shape", "t", "n", {"end": 1}),
        ("Concat", " ".join(["n"] * len(at)), "counts", {"axis": 0}),
        ("ScatterElements", "shape at counts", "s", {"axis": 0}),
        ("Expand", "half s", "y"),
    ]
    raw = open_model(graph_of(steps), MASK, {"shape": numbers(2, 3), "at": numbers(*at), "half": np.float32(0.5)})
    rng = np.random.default_rng(4)
    agrees(raw, [{"x": x_of(), "m": rng.random((4, 3)) < share} for share in (0, 0.3, 1)])


def test_bins_are_as_many_as_the_largest_number_needs():
    """`torch.bincount`."""
    steps = [
        ("ReduceMax", "x", "top", {"keepdims": 0}),
        ("Unsqueeze", "top zero", "u"),
        ("Add", "u one", "n"),
        ("Max", "n three", "m"),
        ("Expand", "none m", "z"),
        ("ScatterElements", "z x ones", "y", {"reduction": "add"}),
    ]
    constants = {
        "zero": numbers(0),
        "one": numbers(1),
        "three": numbers(3),
        "none": np.int64(0),
        "ones": np.ones(6, "i8"),
    }
    raw = open_model(graph_of(steps), {"x": ("i8", (6,))}, constants)
    agrees(raw, given("x", [0, 1, 1, 0, 2, 2], [7, 7, 0, 7, 1, 5], [0] * 6), {"x": 7})


def test_sequences_of_given_lengths_are_attended_to_and_packed():
    """Keys behind a sequence's length are masked; what is within comes out as rows, one sequence after another."""
    steps = [
        ("Less", "steps l", "m"),
        ("Transpose", "e", "k", {"perm": [0, 2, 1]}),
        ("MatMul", "e k", "s"),
        ("Unsqueeze", "m one", "mm"),
        ("Where", "mm s low", "w"),
        ("Softmax", "w", "p", {"axis": -1}),
        ("MatMul", "p e", "a"),
        ("NonZero", "m", "at"),
        ("Transpose", "at", "t", {"perm": [1, 0]}),
        ("GatherND", "a t", "rows"),
        ("LayerNormalization", "rows g b", "y"),
        ("ReduceMean", "y", "mean", {"keepdims": 0}),
    ]
    constants = {"steps": np.arange(7), "one": numbers(1), "low": np.float32(-1e9), "g": x_of(8), "b": x_of(8)}
    raw = open_model(graph_of(steps), {"e": ("f4", (2, 7, 8)), "l": ("i8", (2, 1))}, constants, "y mean")
    agrees(raw, given("l", [[4], [7]], [[1], [0]], [[7], [7]], e=x_of(2, 7, 8)))


# -- boxes ------------------------------------------------------------------------------------------------------------

BOXES, SCORES = {"b": ("f4", (2, 12, 4))}, {"s": ("f4", (2, 3, 12))}
RULES = {"k": numbers(5), "o": np.array([0.4], "f4"), "t": np.array([0.3], "f4")}


def boxes(count: int, batch: int = 1) -> np.ndarray:
    rng = np.random.default_rng(count)
    low = rng.random((batch, count, 2))
    return np.concatenate([low, low + rng.random((batch, count, 2)) / 2], -1).astype("f4")


def scored(times: float = 1.0, batch: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {"b": boxes(12, batch), "s": (rng.random((batch, 3, 12)) * times).astype("f4")}


FEEDS = [scored(), scored(0.5), scored(0.0), {**scored(), "s": np.ones((2, 3, 12), "f4")}]
FEEDS.append({**scored(), "b": np.tile(boxes(1), (2, 12, 1))})


@pytest.mark.parametrize("read", ["b s k o t", "b s k o", "b s k"])
@pytest.mark.parametrize("centres", [0, 1])
def test_boxes_are_chosen_when_run(read, centres):
    nodes = [node("NonMaxSuppression", read.split(), ["y"], center_point_box=centres)]
    agrees(open_model(nodes, BOXES | SCORES, RULES), FEEDS)


def test_how_many_boxes_are_chosen_may_be_known_only_when_run():
    rules = {name: x for name, x in RULES.items() if name != "k"}
    raw = open_model(
        [node("NonMaxSuppression", ["b", "s", "k", "o"], ["y"])], {**BOXES, **SCORES, "k": ("i8", (1,))}, rules
    )
    agrees(raw, [{**feed, "k": numbers(k)} for k, feed in enumerate(FEEDS)])


def test_a_score_that_is_nan_chooses_nothing():
    raw = open_model([node("NonMaxSuppression", ["b", "s", "k", "o"], ["y"])], BOXES | SCORES, RULES)
    feed = {**scored(), "s": np.full((2, 3, 12), np.nan, "f4")}
    assert load(raw).compile()(**feed)[0].shape == (0, 3)


def detector() -> bytes:
    """What exporters write behind a network: boxes that stay, the best of them, with their scores and classes."""
    steps = [
        ("NonMaxSuppression", "b s k o t", "chosen"),
        ("Gather", "chosen two", "bi", {"axis": 1}),
        ("Gather", "chosen one", "ci", {"axis": 1}),
        ("Squeeze", "bi one", "bp"),
        ("Squeeze", "ci one", "cp"),
        ("Squeeze", "b zero", "b0"),
        ("Gather", "b0 bp", "kept"),
        ("Squeeze", "s zero", "s0"),
        ("Concat", "ci bi", "cb", {"axis": 1}),
        ("GatherND", "s0 cb", "score"),
        ("Shape", "score", "count"),
        ("Min", "count eight", "least"),
        ("TopK", "score least", "best place"),
        ("Gather", "kept place", "box"),
        ("Gather", "cp place", "class"),
        ("Cast", "class", "cf", {"to": 1}),
        ("Unsqueeze", "cf one", "cu"),
        ("Unsqueeze", "best one", "bu"),
        ("Concat", "box bu cu", "y", {"axis": 1}),
    ]
    more = {"zero": numbers(0), "one": numbers(1), "two": numbers(2), "eight": numbers(8)}
    inputs = {"b": ("f4", (1, 12, 4)), "s": ("f4", (1, 3, 12))}
    return open_model(graph_of(steps), inputs, RULES | more, "y class")


def test_a_detector_gives_as_many_boxes_as_it_finds():
    function = agrees(detector(), [scored(times, 1) for times in (1.0, 0.5, 0.4, 0.1)])
    assert len({function(**scored(times, 1))[0].shape for times in (1.0, 0.35, 0.1)}) == 3


def test_features_of_chosen_regions_go_through_a_head():
    steps = [
        ("NonZero", "m", "n"),
        ("Squeeze", "n zero", "i"),
        ("Gather", "regions i", "r"),
        ("Gather", "image i", "p"),
        ("RoiAlign", "f r p", "a", {"output_height": 2, "output_width": 2, "sampling_ratio": 2}),
        ("Conv", "a w", "c"),
        ("Relu", "c", "d"),
        ("GlobalAveragePool", "d", "g"),
        ("Flatten", "g", "y"),
    ]
    nodes = graph_of(steps)
    inputs = {"f": ("f4", (2, 3, 8, 8)), "regions": ("f4", (5, 4)), "m": ("?", (5,))}
    raw = open_model(nodes, inputs, {"zero": numbers(0), "image": numbers(0, 1, 1, 0, 1), "w": x_of(4, 3, 2, 2)})
    regions = np.sort(np.random.default_rng(2).random((5, 2, 2)), 1).reshape(5, 4).astype("f4") * 7
    feed = {"f": x_of(2, 3, 8, 8), "regions": regions}
    agrees(raw, [{**feed, "m": np.array(m, bool)} for m in ([1, 0, 1, 1, 0], [1] * 5, [0, 0, 0, 0, 1])])


def test_rows_of_another_count_are_reshaped_by_it():
    """Faster R-CNN: a file reshapes rows to ``[n, -1]``, n being the count of other rows, which is always equal."""
    steps = [
        ("NonZero", "p", "z"),
        ("Transpose", "z", "rows"),
        ("Cast", "rows", "f", {"to": 1}),
        ("MatMul", "f w", "wide"),
        ("NonZero", "q", "z2"),
        ("Transpose", "z2", "rows2"),
        ("Shape", "rows2", "n", {"start": 0, "end": 1}),
        ("Concat", "n minus", "to", {"axis": 0}),
        ("Reshape", "wide to", "y"),
    ]
    inputs = {"p": ("?", (1, 150)), "q": ("?", (1, 150))}
    raw = open_model(graph_of(steps), inputs, {"minus": numbers(-1), "w": x_of(2, 24)})
    rng = np.random.default_rng(1)
    masks = [rng.random((1, 150)) < share for share in (0.3, 0.02, 1)]
    function = agrees(raw, [{"p": m, "q": m} for m in masks])
    with pytest.raises(InputError, match="known only at run time"):
        function(p=masks[0], q=masks[1])


def test_rows_of_several_levels_are_scattered_into_one_value():
    """A pyramid of features: each level's regions are aligned, and scattered to their rows of one result."""
    nodes, read = [], "zeros"
    for level in (0, 1):
        steps = [
            ("Equal", f"levels level{level}", f"m{level}"),
            ("NonZero", f"m{level}", f"z{level}"),
            ("Squeeze", f"z{level} zero", f"i{level}"),
            ("Gather", f"regions i{level}", f"r{level}"),
            ("Gather", f"image i{level}", f"b{level}"),
            ("RoiAlign", f"f r{level} b{level}", f"a{level}", ALIGN),
            ("Reshape", f"i{level} column", f"c{level}"),
            ("Shape", f"a{level}", f"s{level}"),
            ("Expand", f"c{level} s{level}", f"e{level}"),
            ("ScatterElements", f"{read} e{level} a{level}", f"y{level}", {"axis": 0}),
        ]
        nodes, read = nodes + graph_of(steps), f"y{level}"
    inputs = {"f": ("f4", (2, 3, 8, 8)), "regions": ("f4", (5, 4)), "levels": ("i8", (5,))}
    constants = {"zero": numbers(0), "image": numbers(0, 1, 1, 0, 1), "column": numbers(-1, 1, 1, 1)}
    constants |= {"zeros": np.zeros((5, 3, 2, 2), "f4"), "level0": np.int64(0), "level1": np.int64(1)}
    raw = open_model(nodes, inputs, constants, "y1")
    regions = np.sort(np.random.default_rng(2).random((5, 2, 2)), 1).reshape(5, 4).astype("f4") * 7
    feed = {"f": x_of(2, 3, 8, 8), "regions": regions}
    agrees(raw, given("levels", [0, 1, 1, 0, 1], [0] * 5, [1] * 5, [2] * 5, **feed))


ALIGN = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
