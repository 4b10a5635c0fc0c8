"""NonMaxSuppression of constant boxes and of those of a run: order, limits, thresholds, centres, swapped corners."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.boxes import from_centres, overlap_of
from tests.support.onnx_models import FLOAT, assert_equal_results, model_of, results_of
from tests.support.onnx_open import agrees, node, numbers, open_model

pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)
CORNERS = rng.uniform(0, 1, (2, 12, 4)).astype("f4")
SCORES = rng.uniform(0, 1, (2, 3, 12)).astype("f4")
WAYS = {"constants": (0, 1, 2, 3, 4), "a run": (2, 3, 4), "a number of a run": (3, 4)}


def check(way, most=None, overlap=None, least=None, boxes=CORNERS, scores=SCORES, **attributes):
    operands = [
        boxes,
        scores,
        *(None if v is None else np.array([v], d) for v, d in ((most, "i8"), (overlap, "f4"), (least, "f4"))),
    ]
    while operands[-1] is None:
        operands.pop()
    constant = [i for i in WAYS[way] if i < len(operands)]
    return assert_equal_results("NonMaxSuppression", operands, constant, **attributes)[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("centres", [0, 1])
@pytest.mark.parametrize(("most", "overlap", "least"), [(3, 0.2, 0.3), (12, 0.4, 0.0), (1, 0.0, 0.5), (5, 1.0, None)])
def test_the_best_boxes_of_each_class_stay(way, centres, most, overlap, least):
    rows = check(way, most, overlap, least, center_point_box=centres)
    assert len(rows) > 3 and set(rows[:, 0]) == {0, 1} and set(rows[:, 1]) == {0, 1, 2}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_stays_of_none_and_above_all_scores(way):
    assert check(way, 0, 0.5, 0.1).shape == (0, 3)
    assert check(way, 3, 0.5, 2.0).shape == (0, 3)


def test_without_a_number_nothing_is_selected():
    assert check("constants").shape == (0, 3)


@pytest.mark.parametrize("way", ["constants", "a run"])
def test_equal_scores_keep_their_order_and_a_bound_is_not_enough(way):
    boxes = np.array([[[0, 0, 1, 1], [1, 1, 0, 0.0], [2, 2, 3, 3], [0, 0, 1, 0.5]]], "f4")  # the second is turned
    scores = np.array([[[0.5, 0.5, 0.5, 0.25]]], "f4")
    assert check(way, 4, 0.5, 0.25, boxes, scores).tolist() == [[0, 0, 0], [0, 0, 2]]
    assert check(way, 4, 0.5, 0.125, boxes, scores).tolist() == [[0, 0, 0], [0, 0, 2], [0, 0, 3]]


def test_overlaps_by_hand():
    low, high = np.array([[0, 0], [1, 0], [5, 5], [5, 5.0]]), np.array([[2, 1], [3, 1], [6, 6], [5, 5.0]])
    assert (
        overlap_of(low, high, 0, 1) == 1 / 3 and overlap_of(low, high, 0, 2) == 0 and overlap_of(low, high, 3, 3) == 0
    )
    assert from_centres(np.array([[1, 2, 4, 6.0]])).tolist() == [[-1, -1, 3, 5]]


def test_axes_that_do_not_fit_are_refused():
    nodes = [node("NonMaxSuppression", ["b", "s", "n"], ["y"])]
    inputs = [("b", FLOAT, (4, 4)), ("s", FLOAT, (1, 1, 4))]
    with pytest.raises(FormatError, match="NonMaxSuppression.*2 axes, or a dynamic number of images or classes"):
        load(model_of(nodes, inputs, {"n": np.array([3])}))


def test_comparing_many_boxes_is_charged():
    boxes = {"b": np.zeros((1, 4000, 4), "f4"), "s": np.zeros((1, 1, 4000), "f4"), "n": np.array([4000])}
    with pytest.raises(FormatError, match="would take 16,000,000,000 computed elements"):
        load(model_of([node("NonMaxSuppression", ["b", "s", "n"], ["y"])], [], boxes))


def suppressed(most, dynamic=True):
    """Boxes that a mask selects."""
    picked = [
        node("NonZero", ["m"], ["n"]), node("Squeeze", ["n", "zero"], ["i"]),
        node("Gather", ["b", "i"], ["boxes"], axis=1), node("Gather", ["s", "i"], ["scores"], axis=2),
    ]  # fmt: skip
    made = node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["y"])
    constants = {"zero": numbers(0), "most": numbers(most), "overlap": np.float32([0.2]), "least": np.float32([0.3])}
    inputs = {"b": ("f4", CORNERS.shape), "s": ("f4", SCORES.shape), "m": ("?", (12,))}
    return open_model([*picked, made], inputs, constants)


@pytest.mark.parametrize("most", [1, 3, 20])
def test_a_number_of_boxes_that_a_run_decides(most):
    masks = [0b101101110101, 0b100000000000, 0b111111111111, 0]
    given = [{"b": CORNERS, "s": SCORES, "m": np.array([mask >> i & 1 for i in range(12)], bool)} for mask in masks]
    agrees(suppressed(most), given[:3])
    assert load(suppressed(most)).compile()(**given[3])[0].shape == (0, 3)
    room = 2 * 3 * min(most, 12)
    assert load(suppressed(most)).outputs[0].shape == (room, 3)
    assert load(suppressed(most), maximum={"y": 4}).outputs[0].shape == (4, 3)


@pytest.mark.parametrize("way", WAYS)
def test_a_negative_number_selects_nothing(way):
    operands = [CORNERS, SCORES, np.array([-2]), np.array([0.2], "f4"), np.array([0.3], "f4")]
    constant = [i for i in WAYS[way] if i < len(operands)]
    (got,), _ = results_of("NonMaxSuppression", operands, constant, by="nobody")
    assert got.shape == (0, 3)
