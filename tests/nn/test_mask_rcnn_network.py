"""Mask R-CNN's graph: levels of the pyramid, the level and scale of a box, portions, classes of masks."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.record import replace
from nn.mode import Mode
from nn.models.mask_rcnn import matterport_config, torchvision_config
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.network import MaskRCNN, of_class
from nn.models.mask_rcnn.shapes import shapes_config, shapes_network
from tests.nn.mask_rcnn_formulas import RULES, const
from tests.support.tolerance import assert_close, near


def run(*nodes):
    found = cg.compile(list(nodes), engine="reference")()
    return found if len(nodes) > 1 else found[0]


@pytest.mark.parametrize(
    ("rule", "side", "level"),
    [("torchvision", 223.9, 1), ("torchvision", 224, 2), ("torchvision", 5, 0), ("torchvision", 4000, 3),
     ("torchvision", 448, 3), ("torchvision", 223.99998, 2), ("matterport", 150, 1), ("matterport", 170, 2),
     ("matterport", 224, 2)],
)  # fmt: skip
def test_the_level_of_a_box_follows_from_its_area(rule, side, level):
    config = torchvision_config() if rule == "torchvision" else matterport_config()
    model = replace(shapes_network(None), config=config)
    assert run(model.level(cg.Const(np.array([[7, 3, 7 + side, 3 + side]], "float32")), 4)) == level


SAME = nn.Activation("none")
MODE = Mode()


def network(config=None, **layers):
    """A network of layers that pass on what they get, except for those that are given."""
    parts = {"trunk": SAME, "lateral": (SAME, SAME), "smooth": (SAME, SAME), "rpn": SAME, "box": SAME, "mask": SAME}
    return MaskRCNN(config or Config((8, 8), 3, anchor_sides=(2, 4)), **(parts | layers))


def test_each_level_adds_the_nearest_pixels_of_the_coarser_one():
    """Of 3 x 3 to 5 x 4: rows 0 0 1 1 2 and columns 0 0 1 2 by floor(i * 3 / 5) and floor(i * 3 / 4)."""
    coarse = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    fine = np.full((1, 1, 5, 4), 100, "float32")
    model = network(trunk=nn.LambdaArray(lambda x: (const(fine), const(coarse))))
    levels = run(*model.pyramid(cg.Const(np.zeros(1, "f4")), MODE))
    rows, columns = np.arange(5) * 3 // 5, np.arange(4) * 3 // 4
    np.testing.assert_array_equal(levels[0][0, 0], 100 + coarse[0, 0][rows][:, columns])
    np.testing.assert_array_equal(levels[1], coarse)


def test_laterals_come_before_the_sum_and_smoothing_behind_it():
    maps = const(np.full((1, 1, 2, 2), 1)), const(np.full((1, 1, 1, 1), 2))
    lateral = nn.Lambda(lambda x: x * 10), nn.Lambda(lambda x: x * 100)
    smooth = nn.Lambda(lambda x: x + 1), nn.Lambda(lambda x: x + 2)
    model = network(trunk=nn.LambdaArray(lambda x: maps), lateral=lateral, smooth=smooth)
    fine, coarse = run(*model.pyramid(cg.Const(np.zeros(1, "f4")), MODE))
    assert fine.tolist() == [[[[211, 211], [211, 211]]]] and coarse.tolist() == [[[[202]]]]


def test_a_level_more_is_every_second_pixel_and_only_anchors_have_it():
    coarse = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    maps = const(np.zeros((1, 1, 6, 6))), const(coarse)
    rpn = nn.Lambda(lambda x: (cg.reshape(x, (1, -1)), cg.zeros((1, x.size, 4))))
    config = Config((12, 12), 3, anchor_sides=(2, 4, 8), ratios=(1.0,))
    model = network(config, trunk=nn.LambdaArray(lambda x: maps), rpn=rpn)
    raw = model.raw(cg.Const(np.zeros(1, "f4")), MODE)
    assert [x.shape[2:] for x in raw.maps] == [(6, 6), (3, 3)]
    assert [len(x) for x in raw.anchors] == [36, 9, 4] == [x.shape[1] for x in raw.scores]
    assert run(raw.scores[2])[0].tolist() == [0, 2, 6, 8]
    assert [x.shape for x in raw.deltas] == [(1, 36, 4), (1, 9, 4), (1, 4, 4)]


@pytest.mark.parametrize(
    ("count", "portions", "want"),
    [(10, 4, [3, 3, 3, 1]), (8, 4, [2, 2, 2, 2]), (3, 4, [1, 1, 1]), (5, 1, [5]), (9, 4, [3, 3, 3])],
)
def test_portions_cover_all_boxes_once(count, portions, want):
    slices = network(Config((8, 8), 3, portions=portions)).portions(count)
    assert [x.stop - x.start for x in slices] == want
    assert [i for x in slices for i in range(count)[x]] == list(range(count))


@pytest.mark.parametrize(("rule", "want"), [("torchvision", 0.25), ("matterport", 15 / 63)])
def test_the_scale_of_a_level_is_by_pixels_or_between_the_outer_ones(rule, want):
    model = network(Config((64, 64), 3, rule))
    assert model.scale(cg.Var((1, 1, 16, 16))) == near(want, "float64 products")


@pytest.mark.parametrize("rule", RULES)
def test_boxes_without_area_are_of_the_finest_level(rule):
    model = network(replace(torchvision_config((64, 64), 3), rule=rule))
    boxes = const([[5, 5, 5, 9], [0, 0, 0, 0], [9, 9, 3, 3], [0, 0, 1e6, 1e6]])
    assert run(model.level(boxes, 3)).tolist()[:2] == [0, 0]
    assert run(model.level(boxes, 3)).tolist()[3] == 2


def test_logits_and_coded_boxes_are_apart_by_picture_box_and_class():
    """Two pictures of one box each, read from maps of one number."""
    config = Config((4, 4), 3, cells=1)
    box = nn.Lambda(lambda x: (cg.concat([x, x + 1, x + 2], 1), cg.concat([x + i for i in range(12)], 1)))
    model = network(config, box=nn.Sequential(nn.Flatten(), box))
    maps = [const([[[[5.0]]], [[[50.0]]]])]
    scores, deltas = run(*model.classify(maps, const([[[1, 1, 3, 3]]] * 2), MODE))
    assert scores.tolist() == [[[5, 6, 7]], [[50, 51, 52]]]
    assert deltas[1].tolist() == [[[50, 51, 52, 53], [54, 55, 56, 57], [58, 59, 60, 61]]]


def test_a_mask_is_that_of_its_boxs_class():
    x = np.arange(2 * 3 * 4, dtype="float32").reshape(2, 3, 2, 2)
    got = run(of_class(const(x), cg.Const(np.array([2, 0]))))
    np.testing.assert_array_equal(got, [x[0, 2], x[1, 0]])
    model = network(Config((4, 4), 3, mask_cells=1), mask=nn.Lambda(lambda y: cg.concat([y, -y, 0.0 * y], 1)))
    masks = model.masks([const([[[[2.0]]]])], const([[[1, 1, 3, 3]] * 3]), cg.Const(np.array([[1, 0, 2]])), MODE)
    assert_close(run(masks).ravel(), (1 / (1 + np.exp([2.0, -2.0, 0.0]))).astype("float32"))
    assert masks.shape == (1, 3, 1, 1)


def test_results_beyond_the_count_are_zero_and_shapes_are_those_of_the_config():
    model = shapes_network("zeros")
    image, window = (cg.Var((1, *x.shape)) for x in model.samples)
    assert (image.shape, window.shape) == ((1, 3, 128, 128), (1, 4))
    boxes, scores, kinds, masks, count = cg.compile(list(model(image, window)), [image, window])(
        np.zeros((1, 3, 128, 128), "f4"), np.array([[0, 0, 128, 128]], "f4")
    )
    most = shapes_config().detections
    assert boxes.shape == (1, most, 4) and scores.shape == kinds.shape == (1, most) and masks.shape == (1, most, 28, 28)
    n = int(count[0])
    assert not boxes[0, n:].any() and not scores[0, n:].any() and not kinds[0, n:].any()


def test_anchors_of_a_wide_picture_have_its_rows_and_columns():
    """Their centres are those of the pixels of each map, of which there are more across than down."""
    maps = const(np.zeros((1, 1, 2, 6))), const(np.zeros((1, 1, 1, 3)))
    rpn = nn.Lambda(lambda x: (cg.reshape(x, (1, -1)), cg.zeros((1, x.size, 4))))
    config = Config((8, 24), 3, anchor_sides=(2, 4), ratios=(1.0,))
    raw = network(config, trunk=nn.LambdaArray(lambda x: maps), rpn=rpn).raw(cg.Const(np.zeros(1, "f4")), MODE)
    for boxes, stride, shape in zip(raw.anchors, (4, 8), ((2, 6), (1, 3))):
        corners = boxes - boxes[0] + 0.0
        want = np.stack(np.meshgrid(np.arange(shape[1]), np.arange(shape[0])), -1).reshape(-1, 2) * stride
        np.testing.assert_array_equal(corners, np.concatenate([want, want], 1))


@pytest.mark.parametrize(("n", "k"), [(2, 3), (3, 2), (1, 4)])
def test_features_of_boxes_come_from_their_own_picture(n, k):
    """Each picture has the number of its place everywhere, on both levels."""
    config = torchvision_config((64, 64))
    maps = [const(np.broadcast_to(np.arange(1, n + 1).reshape(n, 1, 1, 1), (n, 2, side, side))) for side in (16, 8)]
    boxes = cg.Const(np.tile(np.float32([4, 8, 44, 40]), (n, k, 1)))
    features = run(network(config).roi_features(maps, boxes, 2))
    assert features.shape == (n * k, 2, 2, 2)
    assert_close(
        features, np.repeat(np.arange(1, n + 1, dtype="f4"), k).reshape(-1, 1, 1, 1) * np.ones((1, 2, 2, 2), "f4")
    )
