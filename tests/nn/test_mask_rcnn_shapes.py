"""The small network that ships trained finds what is in pictures that it never saw."""

import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest
import safetensors.numpy

import nn
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.record import replace
from nn.models.mask_rcnn.losses import Training, total
from nn.models.mask_rcnn.shapes import WEIGHTS, mask_rcnn_shapes, shapes_config, shapes_network
from nn.models.mask_rcnn.tools.batches import as_operands
from nn.models.mask_rcnn.tools.precision import precision
from nn.models.mask_rcnn.tools.synthetic import OBJECTS, TEST, TRAINING, synthetic_images
from nn.models.mask_rcnn.tools.train_shapes import ground_truth, measure, optimiser
from nn.weights import values_of
from tests.support.patience import PATIENCE
from tests.support.tolerance import assert_near

THREE_STEPS = "ce1cdf2861ad928792439b189b2bf5e8aaa3258dce835dfc05cab50ffdc9c68c"
"""SHA-256 of the weights after three steps on two pictures, on AVX2."""


def test_the_file_is_small():
    assert WEIGHTS.stat().st_size <= 4_000_000


@pytest.mark.parametrize("portions", [3, 7])
def test_boxes_in_portions_are_found_as_whole(portions):
    """The tile of a Winograd convolution depends on how many boxes there are, so masks may differ by rounding."""
    model = mask_rcnn_shapes()
    given = as_operands(model.config, tuple(synthetic_images(TEST, 0, 2)))[:2]
    parts = replace(model, config=replace(model.config, portions=portions))
    for got, want in zip(nn.compile(parts, 2)(*given), nn.compile(model, 2)(*given)):
        assert_near(got, want, "float32 crops")


def test_the_truth_itself_has_a_precision_of_one():
    pytest.importorskip("pycocotools")
    data = synthetic_images(TEST, 0, 4)
    truth = [ground_truth(data, i) for i in range(4)]
    found = [[Exactly(*row) for row in zip(*one)] for one in truth]
    assert precision(found, truth, 4)["boxes"].mean == precision(found, truth, 4)["masks"].mean == 1
    assert precision([[] for _ in truth], truth, 4)["boxes"].mean == 0


class Exactly:
    """An object as it is."""

    def __init__(self, box: np.ndarray, kind: int, mask: np.ndarray) -> None:
        self.box, self.kind, self.score, self.mask = box, int(kind), 1.0, mask

    def pixels(self) -> np.ndarray:
        return self.mask


@pytest.mark.slow
def test_its_average_precision_is_the_published_one():
    pytest.importorskip("pycocotools")
    found = measure(mask_rcnn_shapes(), 100)
    assert found["boxes"].mean >= 0.75 and found["masks"].mean >= 0.7
    assert min(kind.at_50 for kind in found.values()) >= 0.9


def after_three_steps(threads: int) -> str:
    """What is left of the seed after three steps on AVX2."""
    model, samples = shapes_network(0), as_operands(shapes_config(), tuple(synthetic_images(TRAINING, 0, 2)))
    options = {"engine": CpuEngine("avx2", threads)}
    step = nn.training_step(Training(model, OBJECTS), total, optimiser(3), samples, targets=0, **options)
    for _ in range(3):
        step(*samples)
    return sha256(b"".join(x.tobytes() for x in values_of(model).values())).hexdigest()


@pytest.mark.slow
def test_training_has_the_same_bits_on_one_target_for_any_number_of_threads():
    assert after_three_steps(1) == after_three_steps(3) == THREE_STEPS


@pytest.mark.slow
def test_the_command_makes_a_file_and_its_log(tmp_path):
    pytest.importorskip("pycocotools")
    sizes = ["--steps", "2", "--pictures", "16", "--tested", "3"]
    command = [sys.executable, "-m", "nn.models.mask_rcnn.tools.train_shapes", "--folder", str(tmp_path), *sizes]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    log = (tmp_path / "log.txt").read_text()
    assert done.stdout.endswith(log) and "boxes: mAP" in log and "nan" not in log
    made_file = safetensors.numpy.load_file(tmp_path / WEIGHTS.name)
    shipped = safetensors.numpy.load_file(WEIGHTS)
    assert {name: (x.shape, x.dtype) for name, x in made_file.items()} == {
        name: (x.shape, x.dtype) for name, x in shipped.items()
    }


@pytest.mark.slow
def test_half_precision_costs_no_average_precision(tmp_path):
    pytest.importorskip("pycocotools")
    model = mask_rcnn_shapes()
    halved = measure(model, 100)
    for x in model.variables().values():
        nudge = np.random.default_rng(0).uniform(-1, 1, x.shape) * 2.0**-12
        x.assign((x.value * (1 + nudge)).astype("float32"))  # any number that is rounded to this one
    whole = measure(model, 100)
    for kind in halved:
        assert abs(halved[kind].mean - whole[kind].mean) < 0.002
