"""Non-maximum suppression: what boxes stay is written down by hand, or is what NumPy selects."""

from typing import NamedTuple

import numpy as np
import pytest

from cgraph.kernels.boxes.calls import suppress_calls, suppress_nbytes
from cgraph.kernels.target import host_target, runnable_targets
from tests.support.gpu import BLOCKS
from tests.support.kernels import ORDERS, run_calls, view_of


class Boxes(NamedTuple):
    """Boxes of one picture or several, and the places that stay."""

    boxes: list
    scores: list
    order: list
    want: list
    share: float = 0.5
    least: float = -np.inf
    groups: list | None = None


UNIT, FAR, TALL = [0, 0, 2, 2], [10, 10, 12, 12], [0, 0, 4, 2]  # TALL covers UNIT: half of it is shared
CASES = {
    "a share that equals the limit stays": Boxes([UNIT, TALL], [2, 1], [0, 1], [0, 1, -1]),
    "a share above the limit goes": Boxes([UNIT, TALL], [2, 1], [0, 1], [0, -1, -1], 0.499),
    "the larger box first": Boxes([UNIT, TALL], [1, 2], [1, 0], [1, -1, -1], 0.499),
    "apart along both axes": Boxes([UNIT, FAR], [2, 1], [0, 1], [0, 1, -1], 0.0),
    "side by side": Boxes([[0, 0, 2, 2], [0, 2, 2, 4], [2, 0, 4, 2]], [3, 2, 1], [0, 1, 2], [0, 1, 2], 0.0),
    "apart along one axis": Boxes([[0, 0, 2, 2], [0, 5, 2, 7], [5, 0, 7, 2]], [3, 2, 1], [0, 1, 2], [0, 1, 2], 0.0),
    "a score that equals the least goes": Boxes([UNIT, FAR], [2, 1], [0, 1], [0, -1, -1], 0.5, 1.0),
    "no score is above the least": Boxes([UNIT, FAR], [2, 1], [0, 1], [-1, -1, -1], 0.5, 2.0),
    "in the order that is passed": Boxes([UNIT, FAR, TALL], [1, 2, 3], [1, 0, 2], [1, 0, -1], 0.4),
    "no more than there is room for": Boxes(
        [[9 * i, 0, 9 * i + 1, 1] for i in range(4)], [5] * 4, [3, 2, 1, 0], [3, 2, 1]
    ),
    "one box many times": Boxes([UNIT] * 4, [1] * 4, [2, 0, 1, 3], [2, -1, -1]),
    "boxes of other groups": Boxes(
        [UNIT, TALL, UNIT, TALL], [4, 3, 2, 1], [0, 1, 2, 3], [0, 1, -1], 0.4, groups=[7, -7, 7, 7]
    ),
    "one that goes covers none": Boxes(
        [[0, 0, 4, 1], [2, 0, 6, 1], [4, 0, 8, 1]], [3, 2, 1], [0, 1, 2], [0, 2, -1], 0.3
    ),
    "boxes of no area": Boxes([[1, 1, 1, 1], [1, 1, 1, 1]], [2, 1], [0, 1], [0, 1, -1]),
    "corners of no number": Boxes([[np.nan] * 4, UNIT], [2, 1], [0, 1], [0, 1, -1], 0.0),
    "a score of no number": Boxes([UNIT, FAR], [np.nan, 1], [0, 1], [1, -1, -1]),
    "no boxes": Boxes([], [], [], [-1, -1, -1]),
}


def selected(boxes, scores, order, groups, size, limits, run=run_calls, target=None):
    """The places and the counts, in arrays whose bytes differ from every result."""
    target = target or host_target()
    places, counts = np.full((*scores.shape[:-1], size), 77), np.full(scores.shape[:-1], 77)
    rest = [x for x in (order, groups) if x is not None]
    nbytes = suppress_nbytes(target, counts.shape, size, view_of(boxes).dtype, groups is not None)
    scratch = view_of(np.zeros(nbytes, "u1")) if nbytes else None  # zeros are boxes that touch others
    views = (view_of(places), view_of(counts)), view_of(boxes), view_of(scores), [view_of(x) for x in rest]
    run(suppress_calls(target, *views, limits, scratch))
    return places, counts


def check(case, dtype, run=run_calls, target=None):
    boxes = np.array(case.boxes, dtype).reshape(-1, 4)
    order, groups = np.array(case.order, "i8"), None if case.groups is None else np.array(case.groups, "i8")
    places, counts = selected(
        boxes, np.array(case.scores, dtype), order, groups, len(case.want), (case.share, case.least), run, target
    )
    assert places.tolist() == case.want and counts == sum(i >= 0 for i in case.want)


def check_pictures(grouped, run=run_calls, target=None):
    """Pictures whose boxes, scores, order and groups differ."""
    rng = np.random.default_rng(2)
    corner = rng.uniform(0, 6, (5, 40, 2)) / np.array([1, 2, 4, 8, 1])[:, None, None]
    boxes = np.concatenate([corner, corner + rng.uniform(1, 4, (5, 40, 2))], 2).astype("f4")
    scores = rng.standard_normal((5, 40)).astype("f4")
    order, groups = np.argsort(-scores, 1), rng.integers(0, 3, (5, 40)) if grouped else None
    places, counts = selected(boxes, scores, order, groups, 12, (0.3, -0.5), run, target)
    for i in range(5):
        label = groups[i] if grouped else np.zeros(40)
        want = by_numpy(boxes[i].astype("f8"), scores[i], order[i], label)[:12]
        assert counts[i] == len(want) and places[i].tolist() == want + [-1] * (12 - len(want))
    assert len(set(counts.tolist())) > 1


def by_numpy(boxes, scores, order, groups):
    """Pixels' areas as products of clipped sides; the share is at most 0.3 and a score above -0.5."""
    stay: list[int] = []
    for i in order:
        low, high = np.maximum(boxes[i, :2], boxes[stay, :2]), np.minimum(boxes[i, 2:], boxes[stay, 2:])
        both = np.clip(high - low, 0, None).prod(-1)
        area = [np.subtract(x[..., 2:], x[..., :2]).prod(-1) for x in (boxes[i], boxes[stay])]
        if scores[i] > -0.5 and not ((both > 0.3 * (area[0] + area[1] - both)) & (groups[stay] == groups[i])).any():
            stay.append(int(i))
    return stay


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_stays(case, dtype):
    check(case, dtype)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("grouped", [False, True])
def test_each_picture_has_its_own_boxes(grouped, order):
    check_pictures(grouped, lambda calls: run_calls(calls, order=order))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("target", runnable_targets().values(), ids=runnable_targets().keys())
def test_every_target_has_the_same_places(target, grouped):
    """Selected boxes are compared by whole vectors, of which the last is not full."""
    check_pictures(grouped, lambda calls: run_calls(calls, target), target)


def test_each_place_in_a_vector_covers_a_box_that_follows():
    """All but one are apart; each in turn is drawn again, to the last of a vector that is not full."""
    n = 37
    apart = np.stack([np.arange(n) * 2, np.zeros(n), np.arange(n) * 2 + 1, np.ones(n)], 1).astype("f4")
    for i in range(n):
        boxes = np.concatenate([apart, apart[i : i + 1]])
        places, counts = selected(boxes, np.ones(n + 1, "f4"), np.arange(n + 1), None, n + 1, (0.5, 0.0))
        assert counts == n and places.tolist() == [*range(n), -1]


def test_a_result_without_room_and_no_pictures():
    check(Boxes([UNIT], [1], [0], []), "f4")
    boxes, none = np.zeros((0, 3, 4), "f4"), np.zeros((0, 3), "i8")
    out = view_of(np.zeros((0, 2), "i8")), view_of(np.zeros(0, "i8"))
    views = out, view_of(boxes), view_of(none.astype("f4")), [view_of(none)]
    assert suppress_calls(host_target(), *views, (0.5, 0.0), None) == []


@pytest.mark.parametrize("target", runnable_targets().values(), ids=runnable_targets().keys())
@pytest.mark.parametrize(("most", "pictures"), [(1, 1), (5, 3), (16, 2), (17, 1), (0, 4)])
def test_the_room_of_selected_boxes_has_whole_vectors(most, pictures, target):
    """Four corners, and a label where there are groups."""
    for dtype, size in (("f4", 4), ("f8", 8)):
        lanes = target.lanes_of(dtype)
        room = pictures * -(-most // lanes) * lanes
        corners, labels = (-(-nbytes // 64) * 64 for nbytes in (room * 4 * size, room * 8))
        assert suppress_nbytes(target, (pictures,), most, dtype, False) == corners
        assert suppress_nbytes(target, (pictures,), most, dtype, True) == corners + labels
    assert suppress_nbytes(BLOCKS, (pictures,), most, "f4", True) == 0
