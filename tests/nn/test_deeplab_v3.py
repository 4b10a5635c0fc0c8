"""DeepLab v3: dilations in place of strides, the order of the two branches, and aligned corners."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.models import deeplab_v3
from nn.models.deeplab_v3 import DeepLabV3, atrous_body, resize_bilinear
from tests.nn.support import assert_close, run


def test_behind_a_stride_of_8_blocks_are_dilated_instead():
    """The block whose stride is dropped has the rate before it, the following ones twice that."""
    stem, *blocks = atrous_body()
    assert (stem.outputs, stem.stride) == (16, 2)
    groups = [(8, 1, 1), (12, 2, 1), (12, 1, 1), (16, 2, 1), (16, 1, 1), (16, 1, 1)]
    groups += [(32, 1, 1), *[(32, 1, 2)] * 3, *[(48, 1, 2)] * 3, (80, 1, 2), *[(80, 1, 4)] * 2, (160, 1, 4)]
    assert [(x.outputs, x.stride, x.dilation) for x in blocks] == groups
    assert [x.inputs for x in blocks] == [16, *(outputs for outputs, _, _ in groups[:-1])]


@pytest.mark.parametrize("sides", [(33, 17), (40, 64)])
def test_every_pixel_has_a_score_of_every_class(sides):
    model = deeplab_v3(None, 5)
    assert model(cg.Var((2, 3, *sides))).shape == (2, 5, *sides)
    assert DeepLabV3().samples[0].shape == (3, 257, 257) and DeepLabV3().logits.outputs == 21


def test_corners_stay_corners():
    rows = np.array([[0, 3], [6, 9]], np.float32)[None, None]
    got = run(nn.Lambda(lambda x: resize_bilinear(x, (3, 4))), rows)[0, 0]
    assert_close(got, np.array([[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]))


def test_the_projection_reads_the_pooled_channels_first():
    """With zeros for weights, a norm's shift is all that is left of a branch."""
    model = deeplab_v3("zeros", 2)
    model.pooled.norm.shift.assign(np.full(256, 1, np.float32))
    model.aspp.norm.shift.assign(np.full(256, 10, np.float32))
    for norm in (model.projection.norm,):
        norm.scale.assign(np.ones(256, np.float32))
        norm.variance.assign(np.full(256, 1 - norm.eps, np.float32))
    weight = np.zeros((256, 512, 1, 1), np.float32)
    weight[0, 3], weight[1, 256 + 3] = 1, 1
    model.projection.conv.weight.assign(weight)
    scores = np.zeros((2, 256, 1, 1), np.float32)
    scores[0, 0] = scores[1, 1] = 1
    model.logits.weight.assign(scores)
    got = run(model, np.ones((1, 3, 16, 16), np.float32))
    assert_close(got[0].mean((1, 2)), np.array([1, 10]), "float32 layers")
