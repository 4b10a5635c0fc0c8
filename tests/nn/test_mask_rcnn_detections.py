"""Detections of both rules against NumPy: thresholds, classes, ties, clipping and nothing at all."""

import numpy as np
import pytest

from nn.models.mask_rcnn.detections import LEAST_SIDE, detections
from tests.nn.mask_rcnn_formulas import (
    BOX_SCALES,
    MOST,
    RULES,
    N,
    clipped,
    config_of,
    const,
    decoded,
    drawn_boxes,
    run,
    softmax,
    suppressed,
)
from tests.support.tolerance import assert_close


def wanted_detections(config, scores, deltas, boxes, count, window):
    """Of one picture: boxes, scores and classes, the best first."""
    classes, scales = config.classes, BOX_SCALES
    probabilities = softmax(scores)
    rows = []
    for i in range(count):
        kinds = range(1, classes) if config.rule == "torchvision" else [int(scores[i].argmax())]
        rows += [(i, kind) for kind in kinds if kind > 0]
    found = [clipped(decoded(deltas[i, k], boxes[i], scales, MOST[config.rule]), window) for i, k in rows]
    if not rows:
        return np.zeros((0, 4)), np.zeros(0), np.zeros(0, int)
    found, best = np.array(found), np.array([probabilities[i, k] for i, k in rows])
    kinds = np.array([k for _, k in rows])
    if config.rule == "torchvision":
        best = np.where((found[:, 2:] - found[:, :2] >= 1e-2).all(-1), best, -np.inf)
    places = suppressed(found, best, kinds, config.share, config.detections, config.least_score)
    return found[places], best[places], kinds[places]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("most", [4, 40])
@pytest.mark.parametrize("least", [0.05, 0.4])
@pytest.mark.parametrize("count", [0, 3, 12])
def test_objects_are_those_of_the_rule(rule, most, least, count):
    rng = np.random.default_rng(count)
    config = config_of(rule, detections=most, least_score=least)
    boxes = drawn_boxes(rng, N, 12)
    boxes[:, 6:] = boxes[:, :6] + rng.normal(size=(N, 6, 4)).astype("float32")  # pairs that cover one another
    scores = (rng.normal(size=(N, 12, 4)) * 2).astype("float32")
    deltas = rng.normal(size=(N, 12, 4, 4)).astype("float32")
    deltas[0, 0, :, 2:] = 25.0 if rule == "torchvision" else 3.0  # a box that grows as far as the rule lets it
    boxes[1, 1], deltas[1, 1], scores[1, 1] = (50, 20, 60, 30), 0, (0, 6, 5, 5)  # beside its window: nothing is left
    window, counts = np.array([[0, 0, 60, 63], [5, 9, 40, 63]], "float32"), np.array([count, 12])
    given = (const(scores), const(deltas), const(boxes), const(counts, "int64"), const(window))
    got = run(*detections(config, *given))
    for i in range(N):
        found, best, kinds = wanted_detections(config, scores[i], deltas[i], boxes[i], counts[i], window[i])
        n = int(got[3][i])
        assert n == len(found)
        np.testing.assert_array_equal(got[2][i, :n], kinds)
        assert_close(got[1][i, :n], best.astype("float32"))
        assert_close(got[0][i, :n], found.astype("float32"), 4)
        assert not any(x[i, n:].any() for x in got[:3])


def found(rule, scores, boxes, window=(0, 0, 60, 60), counts=None, **changes):
    """Boxes, scores and classes of one picture whose boxes are not moved; there are as many as its count says."""
    config = config_of(rule, **{"least_score": 0.05, "detections": 6, **changes})
    scores, boxes = np.asarray([scores], "float32"), np.asarray([boxes], "float32")
    deltas = np.zeros((*scores.shape, 4), "float32")
    counts = [scores.shape[1]] if counts is None else counts
    operands = (const(scores), const(deltas), const(boxes), const(counts, "int64"), const([window]))
    results = run(*detections(config, *operands))
    n = int(results[3][0])
    assert not any(x[0, n:].any() for x in results[:3]) and results[0].shape == (1, config.detections, 4)
    return [x[0, :n] for x in results[:3]]


FAR = [[0, 0, 10, 10], [20, 20, 30, 30], [40, 40, 50, 50]]


@pytest.mark.parametrize(("rule", "kinds"), [("torchvision", [1, 2, 3]), ("matterport", [1])])
def test_one_box_may_be_of_several_classes_by_torchvisions_rule_alone(rule, kinds):
    boxes, scores, classes = found(rule, [[0, 3, 2, 1]], FAR[:1])
    assert classes.tolist() == kinds
    np.testing.assert_array_equal(boxes, [FAR[0]] * len(kinds))
    assert_close(scores, softmax(np.array([0.0, 3, 2, 1]))[kinds].astype("float32"))


@pytest.mark.parametrize("rule", RULES)
def test_the_background_is_no_object(rule):
    """The first box is of class 0; by torchvision's rule its second class is likely enough."""
    _, _, classes = found(rule, [[9, 0, 0, 0], [0, 0, 9, 0]], FAR[:2])
    assert classes.tolist() == [2]


@pytest.mark.parametrize(("rule", "count"), [("torchvision", 2), ("matterport", 0)])
def test_where_the_background_is_as_likely_matterports_rule_takes_it(rule, count):
    assert len(found(rule, [[5, 5, 5, 0]], FAR[:1])[2]) == count


@pytest.mark.parametrize("rule", RULES)
def test_a_score_must_exceed_the_least(rule):
    """Two classes beside two of no weight: each is a half."""
    scores = [[-99, 0, 0, -99]]
    assert len(found(rule, scores, FAR[:1], least_score=0.5)[2]) == 0
    assert found(rule, scores, FAR[:1], least_score=0.4999)[2].tolist()[0] == 1


@pytest.mark.parametrize("rule", RULES)
def test_boxes_of_two_classes_do_not_suppress_one_another(rule):
    """The second box is the first one in another class, the third is nearly the first one."""
    boxes = [[0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 9]]
    scores = [[-99, 9, -99, -99], [-99, -99, 8, -99], [-99, 7, -99, -99]]
    got, _, classes = found(rule, scores, boxes)
    assert classes.tolist() == [1, 2]
    np.testing.assert_array_equal(got, boxes[:2])


@pytest.mark.parametrize("rule", RULES)
def test_an_overlap_of_just_the_share_is_allowed(rule):
    scores = [[-99, 9, -99, -99], [-99, 8, -99, -99]]
    assert len(found(rule, scores, [[0, 0, 10, 10], [0, 0, 10, 5]], share=0.5)[2]) == 2
    assert len(found(rule, scores, [[0, 0, 10, 10], [0, 0, 10, 5.5]], share=0.5)[2]) == 1


@pytest.mark.parametrize("rule", RULES)
def test_of_equal_scores_the_first_box_comes_first_and_only_the_most_stay(rule):
    boxes, _, _ = found(rule, [[-99, 9, -99, -99]] * 3, FAR, detections=2)
    np.testing.assert_array_equal(boxes, FAR[:2])


@pytest.mark.parametrize("rule", RULES)
def test_proposals_beyond_the_count_are_no_objects(rule):
    boxes, _, _ = found(rule, [[-99, 9, -99, -99]] * 3, FAR, counts=[1])
    np.testing.assert_array_equal(boxes, FAR[:1])
    assert len(found(rule, [[-99, 9, -99, -99]] * 3, FAR, counts=[0])[2]) == 0


@pytest.mark.parametrize(("side", "count"), [(2.0**-7, 0), (2.0**-6, 1)])
def test_a_box_needs_a_side_of_a_hundredth_of_a_pixel_by_torchvisions_rule_alone(side, count):
    assert LEAST_SIDE == 1e-2
    for box in ([2, 2, 2 + side, 9], [2, 2, 9, 2 + side]):
        assert len(found("torchvision", [[-99, 9, -99, -99]], [box])[2]) == count
        assert len(found("matterport", [[-99, 9, -99, -99]], [box])[2]) == 1


@pytest.mark.parametrize("rule", RULES)
def test_boxes_end_at_the_window(rule):
    boxes, _, _ = found(rule, [[-99, 9, -99, -99]], [[-5, 3, 70, 80]], window=(2, 4, 50, 60))
    np.testing.assert_array_equal(boxes, [[2, 4, 50, 60]])
