"""PoseNet: the order of its maps, their sizes at stride 16, and their channels."""

import numpy as np
import pytest

import cgraph as cg
from nn.models import posenet
from tests.nn.support import run


@pytest.mark.parametrize(("side", "maps"), [((353, 257), (23, 17)), ((33, 16), (3, 1)), ((32, 48), (2, 3))])
def test_maps_have_a_sixteenth_of_the_size_rounded_up(side, maps):
    results = posenet(None)(cg.Var((2, 3, *side)))
    assert [x.shape for x in results] == [(2, channels, *maps) for channels in (17, 34, 1, 64)]


def test_each_head_is_one_result_and_displacements_are_forward_then_backward():
    """All weights are zero, so that each map is the bias of its head."""
    model = posenet("zeros")
    biases = {"heatmap": 1.0, "offset": 2.0, "forward": 3.0, "backward": 4.0, "segments": 5.0}
    for name, bias in biases.items():
        head = getattr(model, name)
        head.bias.assign(np.full(head.bias.shape, bias, np.float32))
    heatmap, offset, segments, displacements = run(model, np.ones((1, 3, 16, 16), np.float32))
    assert (heatmap == 1).all() and (offset == 2).all() and (segments == 5).all()
    assert displacements[0, :, 0, 0].tolist() == [3] * 32 + [4] * 32


def test_the_body_is_that_of_mobilenet_v1_at_three_quarters_with_two_narrow_blocks_at_its_end():
    parts = posenet(None).parts
    assert [x.outputs for x in parts] == [24, 48, 96, 96, 192, 192, *[384] * 8]
    assert [x.stride for x in parts] == [2, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1]
    assert posenet(None).samples[0].shape == (3, 353, 257)
