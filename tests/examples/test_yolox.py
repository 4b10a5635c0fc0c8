"""YOLOX-nano on real pictures: the boxes and classes that onnxruntime finds, decoded and chosen in the same graph."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from tests.support.data import shared
from tests.support.tolerance import assert_near

pytest.importorskip("onnx")
PATH = Path(__file__).resolve().parents[2] / "examples" / "yolox.py"
PICTURES = (
    "pictures/darknet_dog.jpg",
    "pictures/darknet_giraffe.jpg",
    "pictures/darknet_horses.jpg",
    "pictures/darknet_person.jpg",
    "mask_rcnn_pictures/3862500489_6fd195d183_z.jpg",
    "mask_rcnn_pictures/9247489789_132c0d534a_z.jpg",
)


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("yolox_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def network():
    return shared("yolox_nano/yolox_nano.onnx")


@pytest.fixture(scope="module")
def function(example, network):
    model = example.onnx.load(network)
    return cg.compile(example.found(model.outputs[0]), model.inputs)


@pytest.fixture(scope="module")
def session(network):
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(str(network), providers=["CPUExecutionProvider"])


def plain_choice(raw, overlap=0.45, least=0.3):
    """Rows ``(class, score, box)`` by falling score, by loops."""
    rows, at = [], 0
    for stride in (8, 16, 32):
        for y in range(416 // stride):
            for x in range(416 // stride):
                cx, cy = (raw[at, 0] + x) * stride, (raw[at, 1] + y) * stride
                w, h = np.exp(raw[at, 2:4]) * stride
                scores = raw[at, 4] * raw[at, 5:]
                kind = int(scores.argmax())
                if scores[kind] > least:
                    rows.append((float(scores[kind]), kind, (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)))
                at += 1
    kept = []
    for score, kind, box in sorted(rows, key=lambda row: -row[0]):
        if all(kind != other or shared_area(box, b) <= overlap for _, other, b in kept):
            kept.append((score, kind, box))
    return kept


def shared_area(a, b):
    """Intersection over union."""
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(w, 0) * max(h, 0)
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


@pytest.mark.parametrize("picture", PICTURES)
def test_boxes_and_classes_are_those_of_onnxruntime(example, function, session, picture):
    image = example.Image.open(shared(picture)).convert("RGB")
    pixels, _ = example.letterbox(image)
    want = plain_choice(session.run(None, {session.get_inputs()[0].name: pixels})[0][0])
    boxes, scores, kinds, count = function(pixels)
    count = int(count)
    assert count == len(want) > 0
    assert kinds[:count].tolist() == [kind for _, kind, _ in want]
    assert_near(scores[:count], [score for score, _, _ in want], "float32 scores of a network")
    assert_near(boxes[:count], [box for _, _, box in want], "float32 boxes of a network")


def test_a_dog_a_bicycle_and_a_car_are_found(example, function):
    pixels, _ = example.letterbox(example.Image.open(shared("pictures/darknet_dog.jpg")).convert("RGB"))
    _, _, kinds, count = function(pixels)
    assert {"dog", "bicycle", "car"} <= {example.NAMES[k] for k in kinds[: int(count)]}
    assert len(example.NAMES) == 80
