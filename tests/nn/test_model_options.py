"""Options of networks reach them: number of classes, width, padding of torch, image size, weights."""

import inspect

import numpy as np
import pytest

import nn
from cgraph import Var

NETWORKS = {
    name: function
    for name in nn.models.__all__
    if inspect.isfunction(function := getattr(nn.models, name)) and "weights" in inspect.signature(function).parameters
}
WITH_CLASSES = [name for name, f in NETWORKS.items() if "classes" in inspect.signature(f).parameters]


def shapes(network):
    return {path: x.shape for path, x in network.variables().items()}


def result(network):
    """The shapes of a network's results for one of its images."""
    xs = [Var((1, *sample.shape), "float32") for sample in network.samples]
    ys = network(*xs)
    return [y.shape for y in (ys if isinstance(ys, tuple) else (ys,))]


def test_most_networks_have_classes():
    assert len(NETWORKS) > 15 and len(WITH_CLASSES) > 10


@pytest.mark.parametrize("name", WITH_CLASSES)
def test_the_number_of_classes_changes_the_last_layer_only(name):
    usual = inspect.signature(NETWORKS[name]).parameters["classes"].default
    few, default = (NETWORKS[name](None, **more) for more in ({"classes": 7}, {}))
    want = {path: tuple(7 if n == usual else n for n in shape) for path, shape in shapes(default).items()}
    assert shapes(few) == want != shapes(default)
    assert result(few)[-1][1] == 7


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_reach_initialise(name, monkeypatch):
    module = inspect.getmodule(NETWORKS[name])
    monkeypatch.setattr(module, "initialise", lambda network, weights: (network, weights))
    network, weights = NETWORKS[name](weights="weights.npz")
    assert isinstance(network, nn.Layer) and weights == "weights.npz"


@pytest.mark.parametrize("name", ["mobilenet_v1", "mobilenet_v2"])
def test_the_width_multiplies_the_channels(name):
    """Twice as wide: a channel count is doubled in every shape; kernels, colours and classes are not."""
    once, twice = (shapes(NETWORKS[name](None, width=width)) for width in (1.0, 2.0))
    assert once.keys() == twice.keys()
    for path, shape in once.items():
        fixed = (1, 3, 1000) if len(shape) > 1 else (1000,)
        assert twice[path] == tuple(n if n in fixed else 2 * n for n in shape), path


@pytest.mark.parametrize("kind", ["DeepLabV3", "DenseNet", "InceptionV3", "MobileNetV1", "MobileNetV2", "PoseNet"])
def test_images_have_the_size_that_is_passed(kind):
    network = getattr(nn.models, kind)
    size = (3, 129, 97)
    first = ((1, 1, 1, 1),) if kind == "DenseNet" else ()
    small, usual = network(*first, image=size), network(*first)
    assert [x.shape for x in small.samples] == [size] != [x.shape for x in usual.samples]
    assert shapes(small) == shapes(usual)
    for one, other in zip(result(small), result(usual)):
        assert one[:2] == other[:2] and (len(one) == 2 or one[2:] != other[2:])


WITH_IMAGE = [name for name, f in NETWORKS.items() if "image" in inspect.signature(f).parameters]


@pytest.mark.parametrize("name", WITH_IMAGE)
@pytest.mark.parametrize("size", [(1, 8, 12), (3, 12, 8), (2, 9, 5)], ids=str)
def test_a_network_for_images_of_any_size_takes_them_with_unequal_sides(name, size):
    network = NETWORKS[name](None, image=size)
    assert network.samples[0].shape == size and result(network)[-1][0] == 1


@pytest.mark.parametrize("name", ["mobilenet_v2", "inception_v3"])
def test_the_padding_of_torch_gives_other_numbers_with_the_same_weights(name):
    size = (3, 64, 64) if name == "mobilenet_v2" else (3, 75, 75)
    kind = {"mobilenet_v2": nn.models.MobileNetV2, "inception_v3": nn.models.InceptionV3}[name]
    assert NETWORKS[name](None, torch=True).torch and not NETWORKS[name](None).torch
    x = np.random.default_rng(0).random((1, *size), "f4")
    networks = [nn.initialise(kind(classes=5, torch=torch, image=size), 0) for torch in (False, True)]
    assert shapes(networks[0]) == shapes(networks[1])
    one, other = (nn.compile(network, 1)(x) for network in networks)
    assert not np.array_equal(one, other)
