"""The published formulas of both rules of Mask R-CNN in NumPy.

Sources: github.com/matterport/Mask_RCNN, `mrcnn/model.py`; torchvision `models.detection`.
"""

import numpy as np

import cgraph as cg
from cgraph.record import replace
from nn.models.mask_rcnn import matterport_config, torchvision_config

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
