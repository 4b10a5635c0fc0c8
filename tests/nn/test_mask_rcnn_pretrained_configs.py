"""The large networks: published counts, what versions and frameworks differ in, and what a file decides."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nn
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.models.mask_rcnn import (
    adopt,
    mask_rcnn,
    mask_rcnn_matterport,
    mask_rcnn_owl,
    matterport_config,
    pretrained_configs,
    torchvision_arrays,
    torchvision_config,
)
from nn.models.mask_rcnn.pretrained_configs import pyramid
from tests.nn.test_mask_rcnn_files import CLASSES, filled, network, torch_names


def test_a_network_begins_with_the_weights_for_other_classes():
    arrays = filled(torch_names(1))
    model = mask_rcnn(50, 0, torchvision_config((64, 64), CLASSES + 3))
    kept = adopt(model, arrays)
    last = ("box.scores", "box.deltas", "mask.scores")
    assert sorted(kept) == sorted(f"{name}.{kind}" for name in last for kind in ("weight", "bias"))
    want = torchvision_arrays(arrays, network(1))["box.full.0.linear.weight"]
    np.testing.assert_array_equal(model.variables()["box.full.0.linear.weight"].value, want)


@pytest.mark.parametrize("suffix", [".pth", ".h5"])
def test_a_network_of_a_file_has_a_name_for_each_class(suffix, monkeypatch):
    """No file is read here: networks by both rules are made, each with its own number of classes."""
    for name in ("set_values", "torchvision_arrays", "matterport_arrays"):
        monkeypatch.setattr(pretrained_configs, name, lambda *_: {})
    monkeypatch.setattr(pretrained_configs, "read_torch", lambda _: {})
    monkeypatch.setattr(pretrained_configs, "read_keras", lambda _: SimpleNamespace(weights={}))
    model, names = pretrained_configs.from_file(Path(f"weights{suffix}"))
    assert len(names) == model.config.classes == {".pth": 91, ".h5": 81}[suffix]


@pytest.mark.parametrize(("version", "count"), [(1, 44_401_393), (2, 46_359_409)])
def test_parameters_are_as_many_as_torchvision_publishes(version, count):
    """`num_params` of MaskRCNN_ResNet50_FPN_Weights.COCO_V1 and of its second version."""
    assert mask_rcnn(50, None, version=version).size == count


@pytest.mark.parametrize("depth", [50, 101, 152])
def test_the_depth_is_that_of_the_backbone(depth):
    blocks = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}[depth]
    assert mask_rcnn(depth, None).trunk.depths == mask_rcnn_matterport(depth, None).trunk.depths == blocks


def test_norms_of_the_first_version_are_frozen_and_the_second_has_them_everywhere():
    first, second, free = mask_rcnn(50, None), mask_rcnn(50, None, version=2), mask_rcnn(50, None, frozen=False)
    assert [x.trunk.frozen for x in (first, second, free)] == [True, False, False]
    assert [type(x.lateral[0]) for x in (first, second)] == [Conv2d, ConvNorm]
    assert [(len(x.rpn.conv), len(x.box.conv), len(x.box.full), x.mask.normal) for x in (first, second)] == [
        (1, 0, 2, False),
        (2, 4, 1, True),
    ]
    assert (first.trunk.eps, mask_rcnn(50, None, eps=0.0).trunk.eps) == (1e-5, 0.0)
    assert first.config == torchvision_config() and first.box.classes == first.mask.classes == 91


def test_matterports_network_is_that_of_keras():
    model = mask_rcnn_matterport(50, None)
    assert model.config == matterport_config()
    assert (model.trunk.first_stride, model.trunk.eps, model.trunk.frozen) == (True, 1e-3, True)
    assert (model.rpn.width, len(model.rpn.conv)) == (512, 1) and model.mask.eps == 1e-3 and model.mask.normal
    assert [type(x.normal) for x in model.box.full] == [nn.BatchNorm] * 2
    assert {x.eps for x in model.layers().values() if isinstance(x, nn.BatchNorm)} == {1e-3}


def test_owls_network_is_matterports_with_768_pixels():
    assert mask_rcnn_owl(None).config == matterport_config(768, 81, 0.75)
    assert mask_rcnn_owl(None, 512).config.image == (512, 512)
    assert mask_rcnn_owl(None).trunk.depths == (3, 4, 23, 3)


@pytest.mark.parametrize("has_norms", [False, True])
def test_the_pyramid_has_256_channels_at_every_level(has_norms):
    lateral, smooth = pyramid(has_norms)
    assert [(x.inputs, x.outputs, x.window, x.pad) for x in lateral] == [(c, 256, 1, 0) for c in (256, 512, 1024, 2048)]
    assert [(x.inputs, x.outputs, x.window, x.pad) for x in smooth] == [(256, 256, 3, 1)] * 4
    if has_norms:
        assert {x.function for x in (*lateral, *smooth)} == {"none"}


def read_as(monkeypatch, path, names, side=None):
    """The network of a file of these names, whose arrays nobody reads."""
    for function in ("set_values", "torchvision_arrays", "matterport_arrays"):
        monkeypatch.setattr(pretrained_configs, function, lambda *_: {})
    arrays = dict.fromkeys(names, np.zeros(1))
    monkeypatch.setattr(pretrained_configs, "read_torch", lambda _: arrays)
    monkeypatch.setattr(pretrained_configs, "read_keras", lambda _: SimpleNamespace(weights=arrays))
    return pretrained_configs.from_file(Path(path), side)[0]


def test_names_in_a_file_say_which_network_it_is(monkeypatch):
    first = read_as(monkeypatch, "a.pth", [])
    second = read_as(monkeypatch, "a.pth", ["rpn.head.conv.1.0.weight"])
    assert (first.trunk.eps, len(first.rpn.conv)) == (0.0, 1) and (second.trunk.eps, len(second.rpn.conv)) == (1e-5, 2)
    short, long = read_as(monkeypatch, "a.h5", []), read_as(monkeypatch, "a.h5", ["res4w_branch2a"], 512)
    assert [x.trunk.depths[2] for x in (short, long)] == [6, 23]
    assert [x.config.image for x in (short, long)] == [(1024, 1024), (512, 512)]
