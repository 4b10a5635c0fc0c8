"""Both rules of Mask R-CNN, number by number, against the published formulas written as plain NumPy.

Sources: github.com/matterport/Mask_RCNN, `mrcnn/model.py` (`ProposalLayer`, `detection_targets_graph`,
`refine_detections_graph`, `rpn_class_loss_graph` to `mrcnn_mask_loss_graph`); torchvision `models.detection`.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.record import replace
from nn.mode import Mode
from nn.models.mask_rcnn import matterport_config, torchvision_config
from nn.models.mask_rcnn.detections import detections
from nn.models.mask_rcnn.losses import BoxSample, Truth, anchor_losses, box_choice, box_losses, candidates_of
from nn.models.mask_rcnn.network import Raw
from nn.models.mask_rcnn.proposals import proposals
from tests.support.tolerance import assert_close, assert_near

RULES = ["torchvision", "matterport"]
N, SIDE = 2, 64
BOX_SCALES = np.array([10.0, 10.0, 5.0, 5.0])  # matterport: the inverse of BBOX_STD_DEV
ANCHOR_SCALES = {"torchvision": np.ones(4), "matterport": BOX_SCALES}  # the inverse of RPN_BBOX_STD_DEV
MOST = {"torchvision": np.log(1000 / 16), "matterport": np.inf}
BETA = {"torchvision": 1 / 9, "matterport": 1.0}


def config_of(rule, **changes):
    made = matterport_config(SIDE, 4) if rule == "matterport" else torchvision_config((SIDE, SIDE), 4)
    return replace(made, **changes)


def run(*nodes):
    return cg.compile(list(nodes), engine="reference")()


def const(x, dtype="float32"):
    return cg.Const(np.asarray(x, dtype))


# -- the formulas -----------------------------------------------------------------------------------------------------


def decoded(deltas, boxes, scales, most=np.inf):
    """Boxes from shifts in sizes and logs of ratios."""
    size = boxes[..., 2:] - boxes[..., :2]
    centre = (boxes[..., :2] + boxes[..., 2:]) / 2 + deltas[..., :2] / scales[:2] * size
    half = np.exp(np.minimum(deltas[..., 2:] / scales[2:], most)) * size / 2
    return np.concatenate([centre - half, centre + half], -1)


def coded(boxes, own, scales):
    size, base = boxes[..., 2:] - boxes[..., :2], own[..., 2:] - own[..., :2]
    shift = (boxes[..., :2] + boxes[..., 2:] - own[..., :2] - own[..., 2:]) / 2 / base
    return np.concatenate([shift, np.log(size / base)], -1) * scales


def clipped(boxes, window):
    low, high = np.tile(window[:2], 2), np.tile(window[2:], 2)
    return np.clip(boxes, low, high)


def overlap(one, many):
    low, high = np.maximum(one[:2], many[:, :2]), np.minimum(one[2:], many[:, 2:])
    both = np.maximum(high - low, 0).prod(-1)
    return both / ((one[2:] - one[:2]).prod() + (many[:, 2:] - many[:, :2]).prod(-1) - both)


def suppressed(boxes, scores, groups, share, most, least=-np.inf):
    """Places of the best boxes, none of which covers a better one of its group by more than a share."""
    found = []
    for i in np.argsort(-scores, kind="stable"):
        if len(found) == most or not scores[i] > least:
            break
        others = [j for j in found if groups[j] == groups[i]]
        if not others or (overlap(boxes[i], boxes[others]) <= share).all():
            found.append(i)
    return found


def smooth(x, beta):
    x = np.abs(x)
    return np.where(x < beta, x * x / (2 * beta), x - beta / 2)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def drawn_boxes(rng, *shape, least=6.0, most=30.0):
    low = rng.uniform(0, SIDE - most - 1, (*shape, 2))
    return np.concatenate([low, low + rng.uniform(least, most, (*shape, 2))], -1).astype("float32")


# -- proposals --------------------------------------------------------------------------------------------------------


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


# -- objects ----------------------------------------------------------------------------------------------------------


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
