"""Heads of Darknet's detectors: boxes as its C code has them, what a head returns, what is refused."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats import darknet
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet.heads import grid
from cgraph.formats.darknet.layers import Net
from cgraph.formats.darknet.parameters import FreeParameters
from tests.support.tolerance import assert_near


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def detector(folder, text, **options):
    (folder / "net.cfg").write_text(text)
    return darknet.load_detector(folder / "net.cfg", **{"score_threshold": 0.0, "iou_threshold": 1.0, **options})


def run(model, *values):
    return [v[0] for v in model.compile(engine="reference")(*values)]


def sorted_boxes(boxes, scores):
    """Rows by falling score of the best class, as [x0, y0, x1, y1, score, class]."""
    best, kinds = scores.max(1), scores.argmax(1)
    return np.c_[boxes, best, kinds][np.argsort(-best, kind="stable")]


def check(found, boxes, scores):
    want = sorted_boxes(np.array(boxes), np.array(scores))
    count = int(found[3])
    assert count == len(want)
    got = np.c_[found[0][:count], found[1][:count], found[2][:count]]
    assert_near(got, want, "float32 small networks")


@pytest.mark.parametrize("new", [0, 1])
@pytest.mark.parametrize("scale", [1.0, 1.2])
def test_yolo_boxes_are_those_of_darknets_loop(tmp_path, new, scale):
    text = "[net]\nheight=4\nwidth=6\nchannels=14\n[yolo]\nmask=2,0\nanchors=10,20, 30,40, 50,60\nclasses=2\nnum=3\n"
    text += f"scale_x_y={scale}\nnew_coords={new}\n"
    x = np.random.default_rng(0).uniform(0, 1, (1, 14, 4, 6)).astype("f4")
    found = run(detector(tmp_path, text, size=48), x)
    parts, on = x[0].reshape(2, 7, 4, 6).astype("f8"), (lambda v: v) if new else sigmoid
    boxes, scores = [], []
    for row in range(4):
        for column in range(6):
            for i, anchor in enumerate([(50, 60), (10, 20)]):
                p = parts[i, :, row, column]
                centre = (np.array([column, row]) + on(p[:2]) * scale - 0.5 * (scale - 1)) / [6, 4]
                size = (4 * p[2:4] ** 2 if new else np.exp(p[2:4])) * anchor / [6, 4]
                boxes.append([*(centre - size / 2), *(centre + size / 2)])
                scores.append(on(p[4]) * on(p[5:]))
    check(found, boxes, scores)


def test_region_boxes_are_those_of_darknets_loop(tmp_path):
    text = "[net]\nheight=3\nwidth=4\nchannels=14\n[region]\nanchors=1,2, 0.5,0.25\nclasses=2\n"
    text += "coords=4\nnum=2\nsoftmax=1\n"
    x = np.random.default_rng(0).standard_normal((1, 14, 3, 4)).astype("f4")
    found = run(detector(tmp_path, text), x)
    boxes, scores = [], []
    for row in range(3):
        for column in range(4):
            for i, anchor in enumerate([(1, 2), (0.5, 0.25)]):
                p = x[0].reshape(2, 7, 3, 4)[i, :, row, column].astype("f8")
                centre = (np.array([column, row]) + sigmoid(p[:2])) / [4, 3]
                size = np.exp(p[2:4]) * anchor / [4, 3]
                boxes.append([*(centre - size / 2), *(centre + size / 2)])
                scores.append(sigmoid(p[4]) * np.exp(p[5:]) / np.exp(p[5:]).sum())
    check(found, boxes, scores)


@pytest.mark.parametrize("root", [0, 1, None])
def test_detection_boxes_are_those_of_darknets_loop(tmp_path, root):
    text = "[net]\ninputs=52\n[activation]\nactivation=linear\n[detection]\nside=2\nclasses=3\ncoords=4\nnum=2\n"
    x = np.random.default_rng(0).uniform(0.1, 1, (1, 52)).astype("f4")
    found = run(detector(tmp_path, text + ("" if root is None else f"sqrt={root}\n")), x)
    flat, boxes, scores = x[0].astype("f8"), [], []
    for place in range(4):
        row, column = divmod(place, 2)
        for i in range(2):
            at = 4 * (3 + 2) + (place * 2 + i) * 4
            centre = (np.array([column, row]) + flat[at : at + 2]) / 2
            size = flat[at + 2 : at + 4] ** (1 + (root or 0))
            boxes.append([*(centre - size / 2), *(centre + size / 2)])
            scores.append(flat[4 * 3 + place * 2 + i] * flat[place * 3 : place * 3 + 3])
    check(found, boxes, scores)


YOLO = "[net]\nheight=2\nwidth=2\nchannels=14\n[yolo]\nclasses=2\n"
WRONG = {
    "no anchors": (YOLO + "mask=0,1\n", "anchors="),
    "half an anchor": (YOLO + "mask=0,1\nanchors=1,2,3\n", "pairs"),
    "an anchor without end": (YOLO + "mask=0,1\nanchors=1,2,3,inf\n", "pairs"),
    "a mask beyond": (YOLO + "mask=0,2\nanchors=1,2,3,4\n", "outside 0 to 1"),
    "a mask before": (YOLO + "mask=0,-1\nanchors=1,2,3,4\n", "outside 0 to 1"),
    "no head": ("[net]\nheight=2\nwidth=2\n[dropout]\n", "no layer detects boxes"),
    "too few anchors": (
        "[net]\nheight=2\nwidth=2\nchannels=14\n[region]\nclasses=2\nnum=2\nanchors=1,1\n",
        "2 anchors",
    ),
    "a tree": ("[net]\nheight=2\nwidth=2\nchannels=7\n[region]\nclasses=2\nanchors=1,1\ntree=t\n", "no tree"),
    "five numbers of a box": (
        "[net]\nheight=2\nwidth=2\nchannels=7\n[region]\nclasses=1\ncoords=5\nanchors=1,1\n",
        "no tree, 4 coords and 1 anchors",
    ),
    "other coords": ("[net]\ninputs=4\n[detection]\nside=1\nclasses=2\n", "4 coords"),
}


@pytest.mark.parametrize("name", WRONG)
def test_boxes_that_a_description_does_not_tell_are_refused(name, tmp_path):
    text, problem = WRONG[name]
    (tmp_path / "net.cfg").write_text(text)
    darknet.load(tmp_path / "net.cfg")  # its numbers are there
    with pytest.raises(FormatError, match=f"net.cfg: .*{problem}"):
        darknet.load_detector(tmp_path / "net.cfg")


def test_what_a_description_leaves_out_is_darknets_default(tmp_path):
    x = np.random.default_rng(0).random((1, 25, 2, 2), np.float32)
    short = "[net]\nheight=2\nwidth=2\nchannels=25\n[yolo]\nanchors=1,1\n"
    written = short + "mask=0\nnum=1\nclasses=20\nscale_x_y=1\nnew_coords=0\n"
    for got, want in zip(run(detector(tmp_path, short), x), run(detector(tmp_path, written), x), strict=True):
        np.testing.assert_array_equal(got, want)
    region = short.replace("yolo", "region")
    written = region + "num=1\nclasses=20\ncoords=4\nsoftmax=0\n"
    for got, want in zip(run(detector(tmp_path, region), x), run(detector(tmp_path, written), x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_yolo_head_returns_sizes_as_they_are_and_the_rest_between_0_and_1(tmp_path):
    text = "[net]\nheight=2\nwidth=3\nchannels=14\n[yolo]\nmask=0,1\nclasses=2\nscale_x_y=1.5\n"
    (tmp_path / "net.cfg").write_text(text)
    x = np.random.default_rng(0).standard_normal((1, 14, 2, 3)).astype("f4")
    want = x.reshape(2, 7, 2, 3).copy()
    want[:, :2] = sigmoid(want[:, :2]) * 1.5 - 0.25
    want[:, 4:] = sigmoid(want[:, 4:])
    (got,) = darknet.load(tmp_path / "net.cfg").compile(engine="reference")(x)
    assert_near(got, want.reshape(x.shape), "float32 formulas near zero")


@pytest.mark.parametrize("option", ["", "softmax=1\n", "tree=t\nsoftmax=1\n"])
def test_a_region_head_returns_classes_as_shares_or_each_alone_or_as_they_are(tmp_path, option):
    text = "[net]\nheight=2\nwidth=3\nchannels=16\n[region]\nnum=2\nclasses=2\ncoords=5\n"
    (tmp_path / "net.cfg").write_text(text + option)
    x = np.random.default_rng(0).standard_normal((1, 16, 2, 3)).astype("f4")
    want = x.reshape(2, 8, 2, 3).copy()
    want[:, [0, 1, 5]] = sigmoid(want[:, [0, 1, 5]])
    if not option:
        want[:, 6:] = sigmoid(want[:, 6:])
    elif "tree" not in option:
        want[:, 6:] = np.exp(want[:, 6:]) / np.exp(want[:, 6:]).sum(1, keepdims=True)
    (got,) = darknet.load(tmp_path / "net.cfg").compile(engine="reference")(x)
    assert_near(got, want.reshape(x.shape), "float32 formulas near zero")


@pytest.mark.parametrize("softmax", [0, 1])
def test_a_detection_head_shares_classes_of_each_place_alone(tmp_path, softmax):
    text = f"[net]\ninputs=40\n[detection]\nside=2\nclasses=3\nnum=1\ncoords=6\nsoftmax={softmax}\n"
    (tmp_path / "net.cfg").write_text(text)
    x = np.random.default_rng(0).standard_normal((2, 40)).astype("f4")
    want = x.copy()
    if softmax:
        shares = np.exp(want[:, :12].reshape(2, 4, 3))
        want[:, :12] = (shares / shares.sum(-1, keepdims=True)).reshape(2, 12)
    (got,) = darknet.load(tmp_path / "net.cfg", batch=2).compile(engine="reference")(x)
    assert_near(got, want, "float32 formulas near zero")


def test_places_are_columns_then_rows_and_are_charged():
    net = Net(FreeParameters(), Allowance(0))
    cells = grid(net, 2, 3)
    assert cells.tolist() == [[[0, 0], [1, 0], [2, 0]], [[0, 1], [1, 1], [2, 1]]] and cells.dtype == np.float32
    with pytest.raises(FormatError, match="the places of 4000 x 3000 cells would take 768,000,000 bytes"):
        grid(net, 4000, 3000)


def test_a_head_takes_exactly_its_numbers(tmp_path):
    def load(text):
        (tmp_path / "net.cfg").write_text(text)
        return darknet.load(tmp_path / "net.cfg")

    for count in (146, 148):
        with pytest.raises(FormatError, match=f"{count} numbers are not the 147 of 49 places"):
            load(f"[net]\ninputs={count}\n[detection]\n")
    assert load("[net]\ninputs=147\n[detection]\n").outputs[0].shape == (1, 147)
    for count in (6, 8):
        with pytest.raises(FormatError, match=f"{count} channels are not 1 boxes of 7 numbers: set filters=7"):
            load(f"[net]\nheight=1\nwidth=1\nchannels={count}\n[yolo]\nmask=3\nnum=9\nclasses=2\n")


HEADS = {
    "yolo": ("height=2\nwidth=3\nchannels=14\n[yolo]\nmask=2,0\nanchors=1,2, 3,4, 5,6\nclasses=2\nnum=3\n", (14, 2, 3)),
    "region": ("height=2\nwidth=3\nchannels=14\n[region]\nanchors=1,2, 1,3\nclasses=2\nnum=2\nsoftmax=1\n", (14, 2, 3)),
    "detection": ("inputs=52\n[detection]\nside=2\nclasses=3\ncoords=4\nnum=2\nsqrt=1\nsoftmax=1\n", (52,)),
}  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_boxes_of_each_image_of_a_batch_are_those_of_the_image_alone(tmp_path, head):
    text, shape = HEADS[head]
    x = np.random.default_rng(0).uniform(0.1, 1, (3, *shape)).astype("f4")
    batch = detector(tmp_path, f"[net]\n{text}", batch=3)
    assert batch.inputs[0].shape == x.shape
    together, alone = batch.compile(engine="reference")(x), detector(tmp_path, f"[net]\n{text}")
    one = alone.compile(engine="reference")
    for i in range(3):
        for got, want in zip(together, one(x[i : i + 1]), strict=True):
            np.testing.assert_array_equal(got[i], want[0])
    assert not np.array_equal(together[0][0], together[0][2])


@pytest.mark.parametrize("kind", ["yolo", "region"])
def test_anchors_are_in_pixels_of_the_network_or_in_cells_of_the_layer(tmp_path, kind):
    """Behind a pool, a layer of 2 x 3 cells of an image of 4 x 6; there are more anchors than boxes."""
    text = f"[net]\nheight=4\nwidth=6\nchannels=14\n[maxpool]\nsize=2\nstride=2\n[{kind}]\nclasses=2\nnum=2\n"
    text += "anchors=1,2, 3,4, 5,6\n"
    x = np.random.default_rng(0).standard_normal((1, 14, 4, 6)).astype("f4")
    found = run(detector(tmp_path, text, size=12), x)
    pooled = x[0].reshape(14, 2, 2, 3, 2).max((2, 4)).reshape(2, 7, 2, 3).astype("f8")
    boxes, scores, whole = [], [], np.array([6, 4] if kind == "yolo" else [3, 2])
    for row in range(2):
        for column in range(3):
            for i, anchor in enumerate([(1, 2), (3, 4)]):
                p = pooled[i, :, row, column]
                centre = (np.array([column, row]) + sigmoid(p[:2])) / [3, 2]
                size = np.exp(p[2:4]) * anchor / whole
                boxes.append([*(centre - size / 2), *(centre + size / 2)])
                scores.append(sigmoid(p[4]) * sigmoid(p[5:]))
    check(found, boxes, scores)
