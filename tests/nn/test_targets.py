"""Real weights and real data: accuracy as published, or as asked for."""

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.formats import tflite
from cgraph.formats.keras_graph import load_keras
from cgraph.formats.torch_file import read_torch
from nn.models.faces import faces_of
from nn.models.torch_names import blazeface_arrays, resnet_arrays
from tests.support.data import shared
from tests.support.tolerance import near

CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@pytest.mark.parametrize(("name", "count"), [("1face", 1), ("3faces", 3), ("4faces", 4)])
def test_blazeface_finds_faces(name, count):
    image = pytest.importorskip("PIL.Image")
    model = nn.models.blazeface(None, back=True)
    nn.set_values(model, blazeface_arrays(read_torch(shared("blazeface/blazefaceback.pth")), model))
    picture = image.open(shared(f"blazeface/{name}.png")).convert("RGB").resize((256, 256), image.Resampling.BILINEAR)
    pixels = np.asarray(picture, np.float32).transpose(2, 0, 1)[None] / 127.5 - 1
    boxes, scores = nn.compile(model)(np.ascontiguousarray(pixels))
    faces = faces_of(boxes[0], scores[0], np.load(shared("blazeface/anchorsback.npy")), 256, 0.5)
    assert len(faces) == count
    for face in faces:
        left, top, right, bottom = face.box
        assert 0 < left < right < 1
        assert 0 < top < bottom < 1
        eyes_nose_mouth = face.points[:4]
        assert ((eyes_nose_mouth > (left, top)) & (eyes_nose_mouth < (right, bottom))).all()


@pytest.mark.slow
def test_the_example_draws_faces(tmp_path):
    folder = shared("blazeface")
    script = Path(__file__).resolve().parents[2] / "examples" / "blazeface.py"
    command = [sys.executable, script, folder]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["1", "3", "4"]
    assert len(list((tmp_path / "out").glob("*.png"))) == 3


@pytest.mark.parametrize(("name", "count"), [("1face", 1), ("3faces", 3)])
def test_blazeface_of_the_front_camera_finds_large_faces(name, count):
    image = pytest.importorskip("PIL.Image")
    model = nn.models.blazeface(None)
    nn.set_values(model, blazeface_arrays(read_torch(shared("blazeface/blazeface.pth")), model))
    pixels = np.asarray(image.open(shared(f"blazeface/{name}.png")).convert("RGB"), np.float32)
    boxes, scores = nn.compile(model)(np.ascontiguousarray(pixels.transpose(2, 0, 1)[None] / 127.5 - 1))
    assert len(faces_of(boxes[0], scores[0], np.load(shared("blazeface/anchors.npy")))) == count


@pytest.mark.slow
def test_resnet20_is_as_right_on_cifar10_as_its_weights_allow():
    model = nn.models.resnet20(None)
    arrays = read_torch(shared("resnet_cifar10/resnet20-12fca82f.th"))
    nn.set_values(model, resnet_arrays(arrays, model, "state_dict.module."))
    pictures, wanted = cifar10()
    found = (pictures / 255 - np.float32(MEAN)) / np.float32(DEVIATION)
    scores = nn.compile(model, batch=50)(np.ascontiguousarray(found.transpose(0, 3, 1, 2)))
    assert (scores.argmax(1) == wanted).mean() == near(0.804, "published accuracy")


def cifar10() -> tuple[np.ndarray, np.ndarray]:
    """Pictures ``[n, h, w, 3]`` of 0 to 255, and their classes."""
    image = pytest.importorskip("PIL.Image")
    pictures, wanted = [], []
    with tarfile.open(shared("cifar10/cifar10_test_100_per_class.tar")) as archive:
        for name in sorted(n for n in archive.getnames() if n.endswith(".jpg")):
            file = archive.extractfile(name)
            assert file is not None
            pictures.append(np.asarray(image.open(io.BytesIO(file.read())).convert("RGB"), np.float32))
            wanted.append(CLASSES.index(Path(name).parent.name))
    return np.stack(pictures), np.array(wanted)


@pytest.mark.slow
def test_resnet8_of_bytes_is_as_right_as_its_floats():
    """MLPerf Tiny's network as TFLite and as Keras file: within half a point."""
    pictures, wanted = cifar10()
    keras = load_keras(shared("mlperf_tiny/pretrainedResnet.h5"), n=len(pictures))
    floats = cg.compile(keras.outputs[0], keras.inputs)(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)))
    bytes_ = tflite.load(shared("mlperf_tiny/pretrainedResnet_quant.tflite")).compile()
    scores = np.concatenate([bytes_((x[None].astype("int16") - 128).astype("int8"))[0] for x in pictures])
    right = [(found.argmax(1) == wanted).mean() for found in (floats, scores)]
    assert right[0] > 0.7 and abs(right[0] - right[1]) <= 0.005


@pytest.mark.slow
def test_lenet_learns_mnist():
    pictures, wanted = mnist()
    model = nn.models.lenet(0)
    data = nn.Loader((pictures[:8000], wanted[:8000]), batch=100, change=nn.random_shift(2))
    nn.train(model, data, optimiser=nn.Optimiser(rate=nn.optim.Cosine(0.002, 480)), epochs=6, progress=False)
    right = nn.compile(model, batch=100)(pictures[8000:]).argmax(1) == wanted[8000:]
    assert right.mean() >= 0.98


def mnist() -> tuple[np.ndarray, np.ndarray]:
    """The 10,000 labelled pictures in a fixed random order."""
    images = gzip.decompress(shared("mnist/t10k-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress(shared("mnist/t10k-labels-idx1-ubyte.gz").read_bytes())
    order = np.random.default_rng(0).permutation(10_000)
    pictures = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 1, 28, 28).astype(np.float32) / 255
    return pictures[order], np.frombuffer(labels, np.uint8, offset=8).astype(np.int32)[order]


@pytest.mark.slow
def test_the_example_learns_digits(tmp_path):
    pytest.importorskip("sklearn")
    script = Path(__file__).resolve().parents[2] / "examples" / "train_digits.py"
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    right = float(done.stdout.partition("; ")[2].partition("%")[0])
    assert right >= 97
    assert (tmp_path / "out" / "digits_loss.png").exists()
