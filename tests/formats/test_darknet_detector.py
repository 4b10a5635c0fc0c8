"""Darknet's detectors: which boxes stay, in which order, and what stands behind their count."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats import darknet
from cgraph.formats.darknet.detector import select_boxes
from cgraph.function import compile
from cgraph.ops.boxes import overlap
from cgraph.ops.leaf import Var
from tests.support.data import shared
from tests.support.tolerance import assert_near


def detector(folder, text, **options):
    (folder / "net.cfg").write_text(text)
    return darknet.load_detector(folder / "net.cfg", **{"score_threshold": 0.0, "iou_threshold": 1.0, **options})


def run(model, *values):
    return [v[0] for v in model.compile(engine="reference")(*values)]


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


def selected(boxes, scores, size, iou_threshold, score_threshold):
    nodes = [Var(v.shape, "float32", name) for v, name in ((boxes, "boxes"), (scores, "scores"))]
    outputs = select_boxes(*nodes, size, iou_threshold, score_threshold)
    return compile(list(outputs), nodes, engine="reference")(boxes, scores)


def test_thresholds_and_batches_are_told_apart():
    """Boxes 0 and 1 overlap by a third; of the second image, box 2 alone is certain enough."""
    boxes = np.array([[[0, 0, 2, 1], [1, 0, 3, 1], [5, 5, 6, 6]]] * 2, "f4")
    scores = np.array([[[0.9, 0], [0.8, 0.1], [0, 0.5]], [[0.1, 0], [0.1, 0.2], [0.3, 0.45]]], "f4")
    got, best, kinds, counts = selected(boxes, scores, 3, 0.3, 0.4)
    assert counts.tolist() == [2, 1] and kinds.tolist() == [[0, 1, 0], [1, 0, 0]]
    np.testing.assert_array_equal(best, np.array([[0.9, 0.5, 0], [0.45, 0, 0]], "f4"))
    np.testing.assert_array_equal(got[0], [boxes[0, 0], boxes[0, 2], [0] * 4])
    np.testing.assert_array_equal(got[1], [boxes[1, 2], [0] * 4, [0] * 4])
    assert selected(boxes, scores, 3, 0.4, 0.3)[3].tolist() == [3, 1]
    assert selected(boxes, scores, 1, 0.4, 0.3)[3].tolist() == [1, 1]


def test_a_detector_of_frames_has_the_state_of_its_network(tmp_path):
    """One place, whose class and box are what a recurrent layer has kept of the frames so far."""
    text = "[net]\ninputs=2\ntime_steps=1\n[gru]\noutput=6\n[detection]\nside=1\ncoords=4\n"
    model = detector(tmp_path, text, seed=0, size=1)
    state = darknet.load(tmp_path / "net.cfg", seed=0)
    assert [x.name for x in model.updates] == [x.name for x in state.updates] == ["0.gru.state"]
    detect, plain = model.compile(engine="reference"), state.compile(engine="reference")
    x = np.array([[1, -2]], "f4")
    for _ in range(3):
        certain, *box = plain(x)[0][0][1:]
        kind = plain.state["0.gru.state"].value[0, 0]
        boxes, scores, _, count = detect(x)
        assert count[0] == (kind * certain > 0)
        if count[0]:
            assert_near(scores[0], [kind * certain], "float32 formulas")


def test_boxes_of_all_heads_compete(tmp_path):
    """The second head's box is the better of two equal ones, and comes first."""
    yolo = "[yolo]\nanchors=1,1\nclasses=1\nnum=1\nnew_coords=1\n"
    text = f"[net]\nheight=1\nwidth=1\nchannels=12\n[dropout]\n[route]\nlayers=0\ngroups=2\n{yolo}"
    text += f"[route]\nlayers=0\ngroups=2\ngroup_id=1\n{yolo}"
    x = np.array([0.5, 0.5, 0.5, 0.5, 0.6, 1, 0.5, 0.5, 0.5, 0.5, 0.9, 1], "f4").reshape(1, 12, 1, 1)
    model = detector(tmp_path, text, size=2, iou_threshold=0.5)
    assert model.names == ("boxes", "scores", "classes", "counts")
    boxes, scores, _, count = run(model, x)
    assert count == 1
    assert_near(scores, [0.9, 0], "float32 formulas")
    assert_near(boxes[0], [0, 0, 1, 1], "float32 shares")
    boxes, scores, _, count = run(detector(tmp_path, text, size=2), x)  # any overlap is allowed
    assert count == 2
    assert_near(scores, [0.9, 0.6], "float32 formulas")


def test_a_network_without_heads_and_heads_that_cost_too_much_are_refused(tmp_path):
    with pytest.raises(FormatError, match="net.cfg: no layer detects boxes. Use load"):
        detector(tmp_path, "[net]\nheight=2\nwidth=2\n[dropout]\n")
    head = "[yolo]\nclasses=1\nanchors=1,1\n"
    with pytest.raises(FormatError, match="net.cfg: boxes of 1250 layers would take 50,000 nodes"):
        detector(tmp_path, f"[net]\nheight=1\nwidth=1\nchannels=6\n{head * 1250}")
    side = 10_000_000
    text = f"[net]\nheight={side}\nwidth=1\nchannels=6\n{head}"
    with pytest.raises(FormatError, match="net.cfg: the places of 10000000 x 1 cells would take"):
        detector(tmp_path, text)


def test_parameters_without_values_are_drawn_with_the_seed_up_to_a_limit(tmp_path):
    text = "[net]\nheight=1\nwidth=1\nchannels=3\n[convolutional]\nfilters=7\nsize=1\n"
    text += "[yolo]\nanchors=1,1\nclasses=2\nnum=1\nnew_coords=1\n"
    x = np.ones((1, 3, 1, 1), "f4")
    one, same, other = (run(detector(tmp_path, text, size=1, seed=seed), x)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    nbytes = 7 * 3 * 4 + 7 * 4  # filters and biases
    detector(tmp_path, text, size=1, seed=0, drawn=nbytes)
    with pytest.raises(FormatError, match="would draw .* are left; raise drawn="):
        detector(tmp_path, text, size=1, seed=0, drawn=nbytes - 1)
