"""BlazeFace: its block by hand, rows of anchors by map, and both cameras' sizes."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.models import blazeface
from nn.models.blazeface import BlazeBlock, blocks, per_anchor
from tests.nn.support import assert_close, draw, run


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(3, 3, 1), (3, 5, 1), (3, 5, 2), (3, 3, 2)])
def test_a_block_adds_its_pooled_operand_with_zeros_for_new_channels(inputs, outputs, stride):
    layer, x = BlazeBlock(inputs, outputs, stride), draw(1, inputs, 4, 6)
    got = run(layer, x)
    inner = run(layer.pointwise, run(layer.depthwise, x))
    own = x.reshape(1, inputs, 2, 2, 3, 2).max((3, 5)) if stride == 2 else x
    inner[:, :inputs] += own
    assert_close(got, np.maximum(inner, 0))
    assert layer.depthwise.weight.shape == (inputs, 1, 3, 3)


def test_a_block_can_do_without_its_operand():
    layer, x = BlazeBlock(3, 3, 1, residual=False), draw(1, 3, 4, 4)
    got = run(layer, x)
    assert_close(got, np.maximum(run(layer.pointwise, run(layer.depthwise, x)), 0))
    assert [(x.inputs, x.outputs, x.stride, x.residual) for x in blocks(3, ((5, 1), (7, 2)), False)] == [
        (3, 5, 1, False),
        (5, 7, 2, False),
    ]


def test_rows_are_pixels_by_rows_and_then_the_anchors_of_a_pixel():
    x = np.arange(2 * 6 * 2 * 3).reshape(2, 6, 2, 3).astype("float32")
    got = run(nn.Lambda(lambda a: per_anchor(a, 3)), x)
    want = [x[1, 3 * anchor : 3 * anchor + 3, r, c] for r in range(2) for c in range(3) for anchor in range(2)]
    np.testing.assert_array_equal(got[1], want)


@pytest.mark.parametrize("back", [False, True])
def test_boxes_and_scores_are_of_896_anchors(back):
    model = blazeface(None, back)
    side = 256 if back else 128
    assert model.samples == (nn.Sample((3, side, side)),)
    boxes, scores = model(cg.Var((2, 3, side, side)))
    assert boxes.shape == (2, 896, 16) and scores.shape == (2, 896, 1)


def test_anchors_of_the_fine_map_come_first():
    """Of 32 x 32 pixels there are 4 x 4 x 2 and 2 x 2 x 6; with zeros for weights each is its head's bias."""
    model = blazeface("zeros")
    for name, bias in {"scores_8": 1, "scores_16": 2, "boxes_8": 3, "boxes_16": 4}.items():
        head = getattr(model, name)
        head.bias.assign(np.full(head.bias.shape, bias, np.float32))
    boxes, scores = run(model, np.ones((1, 3, 32, 32), np.float32))
    assert scores.ravel().tolist() == [1] * 32 + [2] * 24
    assert (boxes[0, :32] == 3).all() and (boxes[0, 32:] == 4).all() and boxes.shape == (1, 56, 16)


def test_the_second_heads_read_the_coarse_map():
    model = blazeface(None)
    assert (model.scores_8.inputs, model.scores_16.inputs) == (88, 96) == (model.boxes_8.inputs, model.boxes_16.inputs)
    assert [x.outputs for x in model.first] == [24, 28, 32, 36, 42, 48, 56, 64, 72, 80, 88]
    back = blazeface(None, True)
    assert (back.scores_8.inputs, back.scores_16.inputs) == (96, 96)
    assert (
        len(back.first) == 31 and [x.residual for x in back.second] == [False] and all(x.residual for x in back.first)
    )
