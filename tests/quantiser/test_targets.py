"""Published weights on bytes: as right as their floats, the same labels."""

from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.precision import tiles
from cgraph.quantiser import quantise
from tests.nn.test_targets import cifar10
from tests.support.data import shared

pytestmark = pytest.mark.slow


def test_mlperf_tinys_resnet_is_as_right_on_bytes():
    pytest.importorskip("h5py")
    from cgraph.formats.keras_graph import load_keras

    graph = load_keras(shared("mlperf_tiny/pretrainedResnet.h5"), n=20)
    pictures, wanted = cifar10()
    runs = np.split(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)), 50)
    small = quantise(graph.outputs, graph.inputs, runs[::5])
    floats, function = cg.compile(graph.outputs, graph.inputs), small.compile()
    right = [np.mean(np.concatenate([f(x)[0] for x in runs]).argmax(1) == wanted) for f in (floats, function)]
    assert right[1] >= right[0] - 0.005 and small.report.layers == 10


def test_squeezenet_keeps_its_labels(monkeypatch):
    pytest.importorskip("PIL.Image")
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "examples"))
    import squeezenet

    weights = squeezenet.read_deep_compression(
        shared("squeezenet_v1.0_compressed/compressed_SqueezeNet.net"), squeezenet.shapes()
    )
    image = cg.Var((1, 3, squeezenet.SIZE, squeezenet.SIZE), name="image")
    scores = squeezenet.squeezenet(image, weights)
    folders = shared("pictures"), shared("mask_rcnn_pictures")
    runs = [squeezenet.pixels(path) for folder in folders for path in sorted(folder.glob("*.jpg"))]
    monkeypatch.setattr(tiles, "tiles_compute", lambda: False)  # whose blocks of 64 channels take a third of the floats
    small = quantise(scores, image, runs)
    report, floats, function = small.report, cg.compile(scores, [image]), small.compile()
    exact, rounded = (np.concatenate([np.reshape(f(x), (1, -1)) for x in runs]) for f in (floats, function))
    second, first = np.sort(exact, 1)[:, -2:].T
    clear = second < 0.97 * first  # three pictures' best scores differ by less than the rounding of bytes, 30 dB
    assert clear.sum() == len(runs) - 3
    np.testing.assert_array_equal(rounded.argmax(1)[clear], exact.argmax(1)[clear])
    assert report.likeness.decibels > 29 and report.plan[1] <= 0.3 * report.plan[0]
