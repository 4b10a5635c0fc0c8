"""Proposals of both rules against NumPy: the best of each level or of all, clipping, ties and nothing at all."""

import numpy as np
import pytest

import cgraph as cg
from nn.models.mask_rcnn.proposals import LEAST_SIDE, best, clip_boxes, has_sides, proposals, rows_at
from tests.nn.mask_rcnn_formulas import (
    ANCHOR_SCALES,
    MOST,
    RULES,
    SIDE,
    N,
    clipped,
    config_of,
    const,
    decoded,
    drawn_boxes,
    run,
    suppressed,
)
from tests.support.tolerance import assert_close


def wanted_proposals(config, scores, deltas, anchors, window, training):
    """Of one picture: by torchvision's rule each level on its own, by matterport's all together."""
    before, after = (config.training_before, config.training_after) if training else (config.before, config.after)
    if config.rule == "matterport":
        scores, deltas, anchors = ([np.concatenate(x)] for x in (scores, deltas, anchors))
    boxes, best, levels = [], [], []
    for number, (s, d, a) in enumerate(zip(scores, deltas, anchors)):
        places = np.argsort(-s, kind="stable")[:before]
        boxes.append(decoded(d[places], a[places], ANCHOR_SCALES[config.rule], MOST[config.rule]))
        best.append(s[places])
        levels += [number] * len(places)
    boxes, best = clipped(np.concatenate(boxes), window), np.concatenate(best)
    if config.rule == "torchvision":
        best = np.where(((boxes[:, 2:] - boxes[:, :2]) >= 1e-3).all(-1), best, -np.inf)
    return boxes[suppressed(boxes, best, levels, config.proposal_share, after)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("after", [5, 60])
def test_proposals_are_the_best_boxes_that_do_not_cover_one_another(rule, training, levels, after):
    """In training as many as training takes; boxes of two levels cover one another by matterport's rule alone."""
    rng = np.random.default_rng(levels)
    numbers = {"before": 9, "after": after, "training_before": 14, "training_after": after + 3}
    config = config_of(rule, **numbers)
    shared = drawn_boxes(rng, 16)  # each level has nearly the same anchors, so that boxes of two levels coincide
    anchors = [(shared + 0.01 * i).astype("float32") for i in range(levels)]
    scores = [rng.normal(size=(N, 16)).astype("float32") for _ in range(levels)]
    deltas = [(rng.normal(size=(N, 16, 4)) * 0.05).astype("float32") for _ in range(levels)]
    window = np.array([[0, 0, 60, 50], [8, 4, 63, 63]], "float32")
    nodes = [list(map(const, x)) for x in (scores, deltas)]
    boxes, counts = run(*proposals(config, *nodes, anchors, const(window), training))
    for i in range(N):
        want = wanted_proposals(config, [x[i] for x in scores], [x[i] for x in deltas], anchors, window[i], training)
        assert counts[i] == len(want)
        assert_close(boxes[i, : len(want)], want.astype("float32"))
        assert not boxes[i, len(want) :].any()


@pytest.mark.parametrize("rule", RULES)
def test_proposals_of_two_levels_that_cover_one_another_both_stay_by_torchvisions_rule_alone(rule):
    anchor = np.array([[10, 10, 30, 30]], "float32")
    scores, deltas = [const([[2.0]]), const([[1.0]])], [const(np.zeros((1, 1, 4)))] * 2
    window = const([[0, 0, SIDE - 1, SIDE - 1]])
    _, counts = run(*proposals(config_of(rule), scores, deltas, [anchor, anchor], window, False))
    assert counts.tolist() == [2 if rule == "torchvision" else 1]


@pytest.mark.parametrize("rule", RULES)
def test_a_box_that_is_cut_off_to_nothing_is_no_proposal_by_torchvisions_rule(rule):
    anchors = np.array([[-20, 5, -4, 25], [10, 10, 30, 30]], "float32")
    scores, deltas = [const([[2.0, 1.0]])], [const(np.zeros((1, 2, 4)))]
    window = const([[0, 0, SIDE - 1, SIDE - 1]])
    boxes, counts = run(*proposals(config_of(rule), scores, deltas, [anchors], window, False))
    if rule == "torchvision":
        assert counts.tolist() == [1]
        np.testing.assert_array_equal(boxes[0, 0], anchors[1])
    else:
        assert counts.tolist() == [2]


STILL = [const(np.zeros((1, 3, 4)))]
WINDOW = const([[0, 0, 60, 60]])


@pytest.mark.parametrize("rule", RULES)
def test_an_overlap_of_just_the_share_is_allowed(rule):
    """The second box is half of the first; the third is a little more than half of it."""
    config = config_of(rule, proposal_share=0.5)
    anchors = np.array([[0, 0, 10, 10], [0, 0, 10, 5], [0, 0, 10, 6]], "float32")
    boxes, counts = run(*proposals(config, [const([[3.0, 2.0, 1.0]])], STILL, [anchors], WINDOW, False))
    assert counts.tolist() == [2]
    np.testing.assert_array_equal(boxes[0, :3], [*anchors[:2], [0, 0, 0, 0]])


@pytest.mark.parametrize("rule", RULES)
def test_of_equal_scores_the_first_anchor_comes_first(rule):
    anchors = np.array([[20, 0, 30, 10], [0, 0, 10, 10], [40, 0, 50, 10]], "float32")
    config = config_of(rule, before=2)
    boxes, counts = run(*proposals(config, [const([[1.0, 1.0, 1.0]])], STILL, [anchors], WINDOW, False))
    assert counts.tolist() == [2]
    np.testing.assert_array_equal(boxes[0, :2], anchors[:2])


def test_where_every_box_is_cut_off_nothing_is_left():
    anchors = np.array([[-9, 5, -4, 25], [70, 10, 80, 30], [5, 61, 9, 70]], "float32")
    scores = [const([[3.0, 2.0, 1.0]])]
    boxes, counts = run(*proposals(config_of("torchvision", after=4), scores, STILL, [anchors], WINDOW, False))
    assert counts.tolist() == [0] and boxes.shape == (1, 4, 4) and not boxes.any()


def test_numbers_of_anchors_are_those_of_inference_or_of_training():
    config = config_of("torchvision", before=1, after=3, training_before=2, training_after=2)
    anchors = np.array([[0, 0, 10, 10], [20, 20, 30, 30], [40, 40, 50, 50]], "float32")
    for training, count, size in ((False, 1, 3), (True, 2, 2)):
        boxes, counts = run(*proposals(config, [const([[1.0, 2.0, 3.0]])], STILL, [anchors], WINDOW, training))
        assert counts.tolist() == [count] and boxes.shape == (1, size, 4)
        np.testing.assert_array_equal(boxes[0, 0], anchors[2])


def test_the_best_of_a_level_are_decoded_from_their_own_anchors():
    anchors = np.array([[0, 0, 10, 10], [20, 20, 40, 30], [40, 40, 50, 60]], "float32")
    deltas = np.zeros((1, 3, 4), "float32")
    deltas[0, 2, 0], deltas[0, 1, 1] = 0.5, -0.5
    boxes, scores = run(*best(config_of("torchvision"), const([[1.0, 2.0, 3.0]]), const(deltas), anchors, 2))
    np.testing.assert_array_equal(scores, [[3, 2]])
    np.testing.assert_array_equal(boxes, [[[45, 40, 55, 60], [20, 15, 40, 25]]])
    boxes, _ = run(*best(config_of("torchvision"), const([[1.0, 2.0, 3.0]]), const(deltas), anchors, 9))
    assert boxes.shape == (1, 3, 4)


def test_each_picture_has_a_window_of_its_own():
    boxes = const([[[-5, -6, 70, 80], [10, 20, 30, 40]]] * 2)
    got = run(clip_boxes(boxes, const([[0, 1, 60, 50], [15, 2, 20, 30]])))[0]
    np.testing.assert_array_equal(got[0], [[0, 1, 60, 50], [10, 20, 30, 40]])
    np.testing.assert_array_equal(got[1], [[15, 2, 20, 30], [15, 20, 20, 30]])


def test_both_sides_of_a_box_count():
    boxes = const([[0, 0, 0.5, 2], [0, 0, 2, 0.5], [0, 0, 0.5, 0.5], [0, 0, 0.25, 2], [0, 0, 2, 0.25], [3, 3, 1, 5]])
    assert run(has_sides(boxes, 0.5))[0].tolist() == [True, True, True, False, False, False]
    assert LEAST_SIDE == 1e-3


@pytest.mark.parametrize("tail", [(), (2,), (2, 3)])
def test_rows_at_minus_one_are_zero(tail):
    x = np.arange(2 * 3 * int(np.prod(tail)), dtype="float32").reshape(2, 3, *tail) + 1
    got = run(rows_at(const(x), cg.Const(np.array([[2, -1, 0, 0], [1, 1, -1, -1]]))))[0]
    np.testing.assert_array_equal(got[0], [x[0, 2], 0 * x[0, 0], x[0, 0], x[0, 0]])
    np.testing.assert_array_equal(got[1], [x[1, 1], x[1, 1], 0 * x[0, 0], 0 * x[0, 0]])
