"""Darknet's detectors: boxes as its C code has them, the networks of Demand Layering, files that we write."""

import re

import numpy as np
import pytest

from cgraph.errors import FormatError, ShapeError
from cgraph.formats import darknet, onnx
from cgraph.ir.traverse import post_order
from cgraph.ops.boxes import overlap
from cgraph.ops.leaf import Var
from tests.support.data import shared
from tests.support.tolerance import assert_near, near

MIB = 2**20
SIZES = {  # layers, MiB of the file, MiB of the largest layer: Table I of Ji et al. 2022, "Demand Layering"
    "yolov3": (107, 236.5, 18.0),
    "yolov4": (162, 245.8, 18.0),
    "yolov4-p6": (305, 487.2, 36.0),
    "resnet152": (206, 219.6, 9.0),
    "densenet201": (306, 65.6, 5.9),
}
CLASSIFIERS = ("resnet152", "densenet201")  # their outputs are shares of 125 classes
SIDE = {"yolov4-p6": 128}  # the least that its strides allow; 96 for the others


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


@pytest.mark.parametrize("root", [0, 1])
def test_detection_boxes_are_those_of_darknets_loop(tmp_path, root):
    text = "[net]\ninputs=52\n[activation]\nactivation=linear\n[detection]\nside=2\nclasses=3\ncoords=4\nnum=2\n"
    x = np.random.default_rng(0).uniform(0.1, 1, (1, 52)).astype("f4")
    found = run(detector(tmp_path, text + f"sqrt={root}\n"), x)
    flat, boxes, scores = x[0].astype("f8"), [], []
    for place in range(4):
        row, column = divmod(place, 2)
        for i in range(2):
            at = 4 * (3 + 2) + (place * 2 + i) * 4
            centre = (np.array([column, row]) + flat[at : at + 2]) / 2
            size = flat[at + 2 : at + 4] ** (1 + root)
            boxes.append([*(centre - size / 2), *(centre + size / 2)])
            scores.append(flat[4 * 3 + place * 2 + i] * flat[place * 3 : place * 3 + 3])
    check(found, boxes, scores)


def test_of_boxes_that_overlap_the_best_of_each_class_stays_and_rows_behind_the_count_are_zero(tmp_path):
    text = "[net]\nheight=1\nwidth=1\nchannels=28\n[yolo]\nanchors=1,1, 1,1, 1,1, 1,1\nclasses=2\nnum=4\n"
    text += "new_coords=1\n"
    numbers = [[0.5, 0.5, 0.5, 0.5, c, *k] for c, k in [(0.6, (1, 0)), (0.9, (1, 0)), (0.8, (0, 1)), (0.2, (0, 1))]]
    x = np.array(numbers, "f4").reshape(1, 28, 1, 1)
    boxes, scores, kinds, count = run(detector(tmp_path, text, score_threshold=0.25, iou_threshold=0.45, size=5), x)
    assert count == 2
    assert_near(scores, [0.9, 0.8, 0, 0, 0], "float32 formulas")
    assert kinds.tolist() == [0, 1, 0, 0, 0]
    assert not boxes[2:].any()
    assert_near(boxes[:2], [[0, 0, 1, 1]] * 2, "float32 shares")


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
    "other coords": ("[net]\ninputs=4\n[detection]\nside=1\nclasses=2\n", "4 coords"),
}


@pytest.mark.parametrize("name", WRONG)
def test_boxes_that_a_description_does_not_tell_are_refused(name, tmp_path):
    text, problem = WRONG[name]
    (tmp_path / "net.cfg").write_text(text)
    darknet.load(tmp_path / "net.cfg")  # its numbers are there
    with pytest.raises(FormatError, match=f"net.cfg: .*{problem}"):
        darknet.load_detector(tmp_path / "net.cfg")


def test_a_detector_with_its_real_weights_boxes_the_dog_and_the_car():
    image_module = pytest.importorskip("PIL.Image")
    config = shared("yolo_fastest/yolo-fastest-1.1.cfg")
    image = image_module.open(shared("pictures/darknet_dog.jpg")).convert("RGB")
    pixels = np.asarray(image.resize((320, 320)), "f4").transpose(2, 0, 1)[None] / 255
    model = darknet.load_detector(config, config.with_suffix(".weights"))
    boxes, _, kinds, count = (v[0] for v in model.compile()(np.ascontiguousarray(pixels)))
    boxes, kinds = boxes[:count], kinds[:count]
    for kind, want in ((16, (0.17, 0.38, 0.41, 0.94)), (2, (0.61, 0.13, 0.9, 0.3))):  # where one sees them
        assert overlap(np.array(want, "f4"), boxes[kinds == kind]).max() > 0.5


# -- the networks of Demand Layering, and our files -------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_of_the_paper(name):
    model = darknet.load(shared(f"darknet_demand/{name}.cfg"))
    layers, whole, largest = SIZES[name]
    parameters = [v for v in post_order(model.outputs) if isinstance(v, Var) and v is not model.inputs[0]]
    by_layer: dict[str, int] = {}
    for var in parameters:
        layer = var.name.split(".")[0]
        by_layer[layer] = by_layer.get(layer, 0) + var.spec.nbytes
    assert len(model.values) == layers
    assert round((20 + sum(by_layer.values())) / MIB, 1) == whole
    assert round(max(by_layer.values()) / MIB, 1) == largest


def thin(text: str, side: int) -> str:
    """The same network of an eighth of the channels, for smaller pictures; heads keep theirs."""
    text = re.sub(r"^(width|height)\s*=\s*\d+", lambda m: f"{m[1]}={side}", text, flags=re.M)
    return re.sub(
        r"^filters\s*=\s*(\d+)", lambda m: f"filters={int(m[1]) // 8 if int(m[1]) % 8 == 0 else m[1]}", text, flags=re.M
    )


def lively(config):
    """Shifts of their own and small scales, so that values neither vanish nor grow over two hundred layers."""
    rng, found = np.random.default_rng(0), {}
    for node in post_order(darknet.load(config).outputs):
        kind = node.name.rpartition(".")[2]
        if isinstance(node, Var) and kind in ("bias", "scale"):
            found[node.name] = rng.normal(0, 0.5, node.shape) if kind == "bias" else np.full(node.shape, 0.7)
    return found


@pytest.mark.parametrize("name", SIZES)
def test_a_written_network_computes_what_onnxruntime_does(name, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    config = tmp_path / "net.cfg"
    side = SIDE.get(name, 96)
    config.write_text(thin(shared(f"darknet_demand/{name}.cfg").read_text(), side))
    darknet.write_weights(tmp_path / "net.weights", config, lively(config), seed=1)
    model = darknet.load(config, tmp_path / "net.weights")
    onnx.save(tmp_path / "net.onnx", model.outputs, model.inputs)
    x = np.random.default_rng(0).random((1, 3, side, side), np.float32)
    want = runtime.InferenceSession(tmp_path / "net.onnx").run(None, {"input": x})
    for got, expected in zip(model.compile()(x), want, strict=True):
        assert_near(got, expected, "float32 deep networks")
        assert expected.std() > 1e-3 or name in CLASSIFIERS


CONFIG = "[net]\nheight=4\nwidth=4\nchannels=2\n[convolutional]\nfilters=3\nsize=3\nbatch_normalize=1\n"
CONFIG += "[local]\nfilters=2\n[connected]\noutput=2\n"


def test_a_written_file_holds_what_its_seed_draws_and_what_was_given(tmp_path):
    (tmp_path / "net.cfg").write_text(CONFIG)
    x = np.random.default_rng(0).random((1, 2, 4, 4), np.float32)
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", seed=3)
    drawn, written = (
        darknet.load(tmp_path / "net.cfg", **o).compile()(x)[0] for o in ({"seed": 3}, {"weights": tmp_path / "w"})
    )
    np.testing.assert_array_equal(drawn, written)
    free = darknet.load(tmp_path / "net.cfg")
    names = [v.name for v in post_order(free.outputs) if isinstance(v, Var) and v is not free.inputs[0]]
    values = {
        v: np.random.default_rng(i).random(k, np.float32) for i, v in enumerate(names) for k in [var_shape(free, v)]
    }
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", values)
    for var in post_order(free.outputs):
        if isinstance(var, Var) and var.name in values:
            var.assign(values[var.name])
    np.testing.assert_array_equal(
        darknet.load(tmp_path / "net.cfg", tmp_path / "w").compile(engine="reference")(x)[0],
        free.compile(engine="reference")(x)[0],
    )


def var_shape(model, name):
    return next(v.shape for v in post_order(model.outputs) if isinstance(v, Var) and v.name == name)


def test_an_array_of_another_shape_is_refused_and_leaves_the_old_file(tmp_path):
    (tmp_path / "net.cfg").write_text(CONFIG)
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg")
    before = (tmp_path / "w").read_bytes()
    with pytest.raises(ShapeError, match=r"2.connected.bias has the shape \[3\]; give an array of shape \[2\]"):
        darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", {"2.connected.bias": np.zeros(3)})
    assert (tmp_path / "w").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.cfg", "w"]


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


def test_drawn_filters_keep_the_variance_of_what_passes_through(tmp_path):
    (tmp_path / "net.cfg").write_text("[net]\nheight=9\nwidth=9\nchannels=64\n[convolutional]\nfilters=256\nsize=3\n")
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", seed=1)
    filters = np.fromfile(tmp_path / "w", "<f4")[5 + 256 :]
    assert filters.size == 256 * 64 * 9
    assert filters.std() == near(np.sqrt(2 / (64 * 9)), "drawn deviations")
