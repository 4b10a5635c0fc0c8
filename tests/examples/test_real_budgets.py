"""Networks with real weights in a third and a quarter of their bytes: the same bits, so the same boxes and labels."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.formats.deep_compression import read_deep_compression
from tests.support.data import shared

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(f"{name}_in_a_budget", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def require_same(outputs, inputs, part, **options):
    """A Function in that part of its bytes gives the bits of the whole."""
    whole = cg.compile(outputs, inputs, **options)
    small = cg.compile(outputs, inputs, budget=whole.nbytes // part, **options)
    assert small.nbytes <= whole.nbytes // part
    values = [np.random.default_rng(0).standard_normal(x.shape).astype(x.dtype) for x in inputs]
    for got, want in zip(small(*values), whole(*values)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("part", "options"), [(3, {}), (4, {}), (4, {"winograd": False})])
def test_squeezenet_in_a_part_of_its_bytes(part, options):
    network = example("squeezenet")
    layers = read_deep_compression(shared("squeezenet_v1.0_compressed/compressed_SqueezeNet.net"), network.shapes())
    image = cg.Var((1, 3, network.SIZE, network.SIZE), name="image")
    require_same([network.squeezenet(image, layers)], [image], part, **options)


def test_yolox_nano_in_a_third_of_its_bytes():
    pytest.importorskip("onnx")
    network = example("yolox")
    model = network.onnx.load(shared("yolox_nano/yolox_nano.onnx"))
    require_same(network.found(model.outputs[0]), model.inputs, 3)


@pytest.mark.slow
def test_resnet50_in_three_mebibytes():
    from nn.models import resnet50

    image, model = cg.Var((1, 3, 224, 224), name="image"), resnet50("zeros")
    weights = list(model.variables().values())
    assert cg.compile(model(image), [image], freeze=weights, budget=3 << 20).nbytes <= 3 << 20
