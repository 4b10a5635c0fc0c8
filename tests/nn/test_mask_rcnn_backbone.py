"""The backbone of Mask R-CNN: strides, channels, frozen norms, and the pool of each framework."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.models.mask_rcnn.backbone import DEPTHS, ResNetTrunk
from tests.nn.support import assert_close, draw, run

# torchvision's parameters of ResNet-50, -101 and -152 without the 2,049,000 of their classifier
PUBLISHED = {50: 25_557_032 - 2_049_000, 101: 44_549_160 - 2_049_000, 152: 60_192_808 - 2_049_000}


@pytest.mark.parametrize("depth", PUBLISHED)
def test_parameters_are_as_many_as_published(depth):
    assert ResNetTrunk(DEPTHS[depth], frozen=False).size == PUBLISHED[depth]


@pytest.mark.parametrize("first_stride", [False, True])
def test_maps_are_a_quarter_to_a_thirty_second_of_the_picture(first_stride):
    maps = ResNetTrunk((1, 2, 1, 1), first_stride)(cg.Var((2, 3, 64, 96)))
    assert [x.shape for x in maps] == [(2, 256 << i, 16 >> i, 24 >> i) for i in range(4)]


def test_the_first_block_of_a_group_has_its_stride():
    trunk = ResNetTrunk((2, 2, 1, 1))
    assert [[x.stride for x in group] for group in trunk.groups] == [[1, 1], [2, 1], [2], [2]]
    assert [[(x.inputs, x.width) for x in group] for group in trunk.groups[:2]] == [
        [(64, 64), (256, 64)],
        [(256, 128), (512, 128)],
    ]


@pytest.mark.parametrize(("first_stride", "pads"), [(False, (1, 0)), (True, (0, 1))])
def test_the_pool_has_its_padding_before_or_behind(first_stride, pads):
    trunk, x = ResNetTrunk((1,), first_stride), draw(1, 3, 16, 16)
    (got,) = run(trunk, x)
    stem = run(trunk.stem, x)
    padded = np.pad(stem, [(0, 0), (0, 0), pads, pads], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    assert_close(got, run(trunk.groups[0][0], np.ascontiguousarray(windows.max((4, 5)))), "float32 layers")


@pytest.mark.parametrize("frozen", [False, True])
def test_norms_are_frozen_unless_told_otherwise_and_share_eps(frozen):
    trunk = ResNetTrunk((1, 1), True, 0.5, frozen)
    norms = [x for x in trunk.layers().values() if isinstance(x, nn.BatchNorm)]
    assert len(norms) == 1 + 2 * 4 and {(x.eps, x.frozen) for x in norms} == {(0.5, frozen)}
    assert [group[0].first_stride for group in trunk.groups] == [True, True]
    assert ResNetTrunk((1,)).frozen and ResNetTrunk((1,)).eps == 1e-5
