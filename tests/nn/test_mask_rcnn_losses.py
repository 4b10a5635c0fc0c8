"""Samples and losses of both rules of Mask R-CNN, number by number, against the published formulas in NumPy.

Sources: github.com/matterport/Mask_RCNN, `mrcnn/model.py` (`detection_targets_graph`, `rpn_class_loss_graph` to
`mrcnn_mask_loss_graph`); torchvision `models.detection`.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from nn.mode import Mode
from nn.models.mask_rcnn import losses
from nn.models.mask_rcnn.losses import (
    BoxSample,
    Truth,
    anchor_choice,
    anchor_losses,
    box_choice,
    box_losses,
    candidates_of,
)
from nn.models.mask_rcnn.network import Raw
from tests.nn.mask_rcnn_formulas import (
    ANCHOR_SCALES,
    BETA,
    BOX_SCALES,
    RULES,
    SIDE,
    N,
    coded,
    config_of,
    const,
    drawn_boxes,
    run,
    smooth,
    softmax,
)
from tests.support.tolerance import assert_near

# -- the sample of boxes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("positives", [0, 1, 3, 12])
def test_negatives_are_twice_the_positives_by_matterports_rule_and_fill_up_by_torchvisions(rule, positives):
    config = config_of(rule, sampled_boxes=20, positive_boxes=5)
    truth_boxes = np.array([[[10, 10, 30, 30], [0, 0, 0, 0]]], "float32")
    truth = Truth(const(truth_boxes), const([[2, 0]], "int64"), const(np.zeros((1, SIDE, SIDE)), "uint8"))
    candidates = np.tile(np.array([40, 40, 60, 60], "float32"), (1, 40, 1))
    candidates[0, 3 : 3 + positives] = truth_boxes[0, 0]
    there = np.ones((1, 40), bool)
    there[0, 36:] = False
    choice = box_choice(config, const(candidates), const(there, "bool"), truth, const(cg.random_key(3), "uint32"))
    places, whose, hit, counted = (x[0] for x in run(*choice))
    taken = min(positives, 5)
    negatives = min(20 - taken, 36 - positives) if rule == "torchvision" else min(2 * taken, 20 - taken)
    assert hit.sum() == taken and counted.sum() == taken + negatives
    assert hit[:taken].all() and counted[: taken + negatives].all() and (whose[hit] == 0).all()
    assert all(3 <= p < 3 + positives for p in places[hit])
    assert all(p < 36 and not 3 <= p < 3 + positives for p in places[counted & ~hit])


@pytest.mark.parametrize("rule", RULES)
def test_the_objects_own_boxes_are_candidates_by_torchvisions_rule_alone(rule):
    config = config_of(rule, training_after=3)
    anchors = np.array([[1, 1, 20, 20], [30, 30, 50, 50]], "float32")
    raw = Raw([], [const([[1.0, 2.0]])], [const(np.zeros((1, 2, 4)))], [anchors])
    truth = Truth(const([[[5, 5, 9, 9], [0, 0, 0, 0]]]), const([[3, 0]], "int64"), const(np.zeros((1, 4, 4)), "uint8"))
    found, there = run(*candidates_of(config, raw, const([[0, 0, SIDE, SIDE]]), truth))
    if rule == "matterport":
        assert there.sum() == 2
    else:
        assert there[0, -2:].tolist() == [True, False] and there.sum() == 3
        np.testing.assert_array_equal(found[0, -2], [5, 5, 9, 9])


@pytest.mark.parametrize("rule", RULES)
def test_no_gradient_goes_through_the_places_of_candidates(rule):
    config = config_of(rule, training_after=3)
    anchors = np.array([[1, 1, 20, 20], [30, 30, 50, 50]], "float32")
    scores, deltas = cg.Var((1, 2), name="scores"), cg.Var((1, 2, 4), name="deltas")
    truth = Truth(const([[[5, 5, 9, 9]]]), const([[3]], "int64"), const(np.zeros((1, 4, 4)), "uint8"))
    boxes, _ = candidates_of(config, Raw([], [scores], [deltas], [anchors]), const([[0, 0, SIDE, SIDE]]), truth)
    moved = cg.sum(boxes) + cg.sum(scores) + cg.sum(deltas)
    gradients = cg.compile(cg.gradient(moved, [scores, deltas]), [scores, deltas], engine="reference")
    for x in gradients(np.float32([[1, 2]]), np.full((1, 2, 4), 0.1, "f4")):
        assert (x == 1).all()


@pytest.mark.parametrize(("positives", "hits"), [(0, 0), (2, 2), (4, 4), (9, 4)])
def test_at_most_half_of_the_sampled_anchors_are_positive(positives, hits):
    """An anchor without an overlap is negative."""
    config = config_of("torchvision", sampled_anchors=8)
    anchors = np.tile(np.float32([40, 40, 60, 60]), (20, 1))
    anchors[5 : 5 + positives] = 10, 10, 30, 30
    objects = [[10, 10, 30, 30]] if positives else [[0, 0, 5, 5]]
    truth = Truth(const([objects]), const([[2]], "int64"), const(np.zeros((1, SIDE, SIDE)), "uint8"))
    places, whose, hit, there = (
        x[0] for x in run(*anchor_choice(config, anchors, truth, const(cg.random_key(3), "uint32")))
    )
    assert hit.sum() == hits and there.all() and len(places) == 8 and (whose == 0).all()
    assert all((5 <= p < 5 + positives) == bool(is_hit) for p, is_hit in zip(places, hit))


# -- losses -----------------------------------------------------------------------------------------------------------


def drawn_choice(rng, size, among, objects, positives):
    places = np.stack([rng.permutation(among)[:size] for _ in range(N)])
    hit, there = np.zeros((2, N, size), bool)
    for i, count in enumerate(positives):
        hit[i, :count], there[i, : min(count + 2 + i, size)] = True, True
    return places, rng.integers(0, objects, (N, size)), hit, there


def as_choice(arrays):
    places, whose, hit, there = arrays
    return BoxSample(const(places, "int64"), const(whose, "int64"), const(hit, "bool"), const(there, "bool"))


def wanted_coordinates(config, deltas, wanted, hit, there):
    """A mean over the four numbers of the positives, or a sum over them for each of the sample."""
    sums = sum(smooth(deltas[i, j] - wanted[i, j], BETA[config.rule]).sum() for i, j in zip(*np.nonzero(hit)))
    return sums / max(4 * hit.sum(), 1) if config.rule == "matterport" else sums / max(there.sum(), 1)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("positives", [(0, 0), (1, 0), (2, 3)])
def test_losses_of_anchors_are_those_of_the_rule(rule, positives):
    rng, size = np.random.default_rng(sum(positives)), 6
    config = config_of(rule)
    anchors = [drawn_boxes(rng, 7), drawn_boxes(rng, 4)]
    scores = [(rng.normal(size=(N, len(a))) * 3).astype("float32") for a in anchors]
    deltas = [(rng.normal(size=(N, len(a), 4)) * 2).astype("float32") for a in anchors]
    objects = drawn_boxes(rng, N, 3)
    places, whose, hit, there = arrays = drawn_choice(rng, size, 11, 3, positives)
    raw = Raw([], list(map(const, scores)), list(map(const, deltas)), anchors)
    truth = Truth(const(objects), const(np.ones((N, 3)), "int64"), None)
    classed, boxed = run(*anchor_losses(config, raw, truth, as_choice(arrays)))
    all_scores, all_deltas = np.concatenate(scores, 1), np.concatenate(deltas, 1)
    logits = np.take_along_axis(all_scores, places, 1).astype("float64")
    probabilities = 1 / (1 + np.exp(-logits))
    entropy = -np.where(hit, np.log(probabilities), np.log(1 - probabilities))
    assert_near(classed, entropy[there].sum() / max(there.sum(), 1), "float32 sums")
    own = np.concatenate(anchors)[places]
    wanted = coded(objects[np.arange(N)[:, None], whose], own, ANCHOR_SCALES[config.rule])
    mine = all_deltas[np.arange(N)[:, None], places]
    assert_near(boxed, wanted_coordinates(config, mine, wanted, hit, there), "float32 long sums")


def mask_of(owner, which, box, config, count):
    """The share of an object in each cell over a box, by the bilinear samples of the rule."""
    kind, samples = config.grid
    low, size, n = box[:2], box[2:] - box[:2], count * samples
    steps = np.arange(n) / (n - 1) if kind == "corners" else (np.arange(n) + 0.5) / n
    mask, found = (owner == which + 1).astype("float64"), np.zeros((n, n))
    for i, y in enumerate(low[1] + size[1] * steps):
        for j, x in enumerate(low[0] + size[0] * steps):
            r, c = int(y), int(x)
            for row, column, share in (
                (r, c, (r + 1 - y) * (c + 1 - x)), (r, c + 1, (r + 1 - y) * (x - c)),
                (r + 1, c, (y - r) * (c + 1 - x)), (r + 1, c + 1, (y - r) * (x - c)),
            ):  # fmt: skip
                found[i, j] += share * mask[row, column]
    cells = found.reshape(count, samples, count, samples).mean((1, 3))
    return np.round(cells) if config.rule == "matterport" else cells


class Heads:
    """Heads that say what they are told, whatever boxes see; and remember the boxes."""

    def __init__(self, config, scores, deltas, masks):
        self.config, self.scores, self.deltas, self.masks, self.boxes = config, scores, deltas, masks, []

    def roi_features(self, maps, boxes, cells):
        self.boxes.append((boxes, cells))
        return boxes

    def box(self, x, mode):
        return const(self.scores), const(self.deltas)

    def mask(self, x, mode):
        return const(self.masks)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("positives", [(0, 0), (2, 0), (1, 3), (3, 3)])
def test_losses_of_boxes_are_those_of_the_rule(rule, positives):
    """Classes over all that count, boxes and masks of each one's own class over what is positive."""
    rng, size, cells, classes = np.random.default_rng(sum(positives)), 7, 5, 4
    config = config_of(rule, positive_boxes=3)
    candidates, objects = drawn_boxes(rng, N, 9), drawn_boxes(rng, N, 3)
    kinds = rng.integers(1, classes, (N, 3))
    owner = rng.integers(0, 4, (N, SIDE, SIDE)).astype("uint8").repeat(4, 1).repeat(4, 2)[:, :SIDE, :SIDE]
    places, whose, hit, there = arrays = drawn_choice(rng, size, 9, 3, positives)
    scores, deltas = rng.normal(size=(N * size, classes)) * 2, rng.normal(size=(N * size, 4 * classes)) * 2
    masks = rng.normal(size=(N * 3, classes, cells, cells)) * 2
    heads = Heads(config, scores, deltas, masks)
    truth = Truth(const(objects), const(kinds, "int64"), const(owner, "uint8"))
    raw = SimpleNamespace(maps=[])
    got = run(*box_losses(heads, raw, const(candidates), truth, as_choice(arrays), Mode()))
    own = candidates[np.arange(N)[:, None], places].astype("float64")
    mine = np.where(hit, np.take_along_axis(kinds, whose, 1), 0)
    logs = np.log(softmax(scores)).reshape(N, size, classes)
    chosen = np.take_along_axis(logs, mine[..., None], 2)[..., 0]
    assert_near(got[0], -chosen[there].sum() / max(there.sum(), 1), "float32 sums")
    of_class = deltas.reshape(N, size, classes, 4)[np.arange(N)[:, None], np.arange(size), mine]
    wanted = coded(objects[np.arange(N)[:, None], whose], own, BOX_SCALES)
    assert_near(got[1], wanted_coordinates(config, of_class, wanted, hit, there), "float32 long sums")
    total = []
    for i, j in zip(*np.nonzero(hit)):
        p = 1 / (1 + np.exp(-masks.reshape(N, 3, classes, cells, cells)[i, j, mine[i, j]]))
        share = mask_of(owner[i], whose[i, j], own[i, j], config, cells)
        total.append(-(share * np.log(p) + (1 - share) * np.log(1 - p)).mean())
    assert_near(got[2], np.mean(total) if total else 0.0, "float32 long sums")
    assert [count for _, count in heads.boxes] == [config.cells, config.mask_cells]


@pytest.mark.parametrize("rule", RULES)
def test_entries_that_do_not_count_have_a_box_of_one_pixel(rule):
    """One without sides would make its logarithms, and so gradients, infinite."""
    config, size, classes = config_of(rule, positive_boxes=2), 3, 4
    heads = Heads(config, np.zeros((N * size, classes)), np.zeros((N * size, 4 * classes)), np.zeros((N * 2, 4, 5, 5)))
    places, hit, there = np.tile([0, 1, 2], (N, 1)), np.zeros((N, size), bool), np.zeros((N, size), bool)
    there[:, 0] = True
    candidates = np.zeros((N, 3, 4), "f4")
    candidates[:, 0] = 5, 6, 15, 26
    truth = Truth(const(np.ones((N, 1, 4))), const(np.ones((N, 1)), "int64"), const(np.zeros((N, SIDE, SIDE)), "u1"))
    choice = as_choice((places, np.zeros((N, size)), hit, there))
    got = run(*box_losses(heads, SimpleNamespace(maps=[]), const(candidates), truth, choice, Mode()), heads.boxes[0][0])
    assert np.isfinite(got[0]) and got[1] == got[2] == 0
    np.testing.assert_array_equal(got[3], np.tile(np.float32([[5, 6, 15, 26], [0, 0, 1, 1], [0, 0, 1, 1]]), (N, 1, 1)))


def test_anchors_and_boxes_are_sampled_with_two_keys(monkeypatch):
    keys = []
    monkeypatch.setattr(losses, "anchor_choice", lambda config, anchors, truth, key: keys.append(key))
    monkeypatch.setattr(losses, "anchor_losses", lambda *args: (cg.Const(np.float32(0)),) * 2)
    monkeypatch.setattr(losses, "candidates_of", lambda *args: (None, None))
    monkeypatch.setattr(losses, "box_choice", lambda config, candidates, there, truth, key: keys.append(key))
    monkeypatch.setattr(losses, "box_losses", lambda *args: (cg.Const(np.float32(0)),) * 3)
    raw = Raw([], [], [], [np.zeros((1, 4))])
    model = SimpleNamespace(config=config_of("torchvision"), raw=lambda image, mode: raw)
    mode = Mode(training=True, seed=3)
    parts = losses.Training(model, 2)(*[cg.Var((1,))] * 5, mode=mode)
    assert tuple(parts) == losses.PARTS
    first, second, following = cg.compile([*keys, mode.updates[mode.key]], engine="reference")()
    assert len({tuple(x) for x in (first, second, following)}) == 3
