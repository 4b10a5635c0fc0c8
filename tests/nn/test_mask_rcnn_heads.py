"""Heads of Mask R-CNN: the order of anchors' numbers, norms by name, and shapes of every version."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.models.mask_rcnn.heads import AnchorHead, BoxHead, Hidden, MaskHead, normal_of
from tests.nn.support import assert_close, draw, run, value


def test_numbers_of_anchors_are_by_rows_columns_and_ratios():
    """Two ratios without convolutions before them: channels 0 and 1 are logits, 2 to 5 and 6 to 9 coded boxes."""
    head = nn.initialise(AnchorHead(10, 10, 2, depth=0), 0)
    head.numbers.weight.assign(np.eye(10, dtype="f4")[:, :, None, None])
    x = draw(2, 10, 2, 3)
    scores, deltas = run(head, x)
    pixels = x.transpose(0, 2, 3, 1).reshape(2, 6, 10)
    np.testing.assert_array_equal(scores, pixels[:, :, :2].reshape(2, 12))
    np.testing.assert_array_equal(deltas, pixels[:, :, 2:].reshape(2, 12, 4))


@pytest.mark.parametrize("depth", [1, 2])
def test_convolutions_of_the_anchors_are_followed_by_relu(depth):
    head, x = AnchorHead(3, 4, depth=depth), draw(1, 3, 4, 5)
    scores, deltas = run(head, x)
    assert [(c.inputs, c.outputs, c.window, c.pad) for c in head.conv] == [(3, 4, 3, 1), (4, 4, 3, 1)][:depth]
    for conv in head.conv:
        x = np.maximum(run(conv, x), 0)
    numbers = run(head.numbers, x).transpose(0, 2, 3, 1)
    assert_close(scores, numbers[..., :3].reshape(1, -1))
    assert_close(deltas, numbers[..., 3:].reshape(1, -1, 4))
    assert head.ratios == 3


@pytest.mark.parametrize(("kind", "layer"), [("none", type(None)), ("layer", nn.LayerNorm), ("batch", nn.BatchNorm)])
def test_norms_by_name(kind, layer):
    assert type(normal_of(kind, 4)) is layer
    hidden, x = Hidden(3, 4, kind), draw(5, 3)
    got = run(hidden, x)
    inner = x @ value(hidden.linear.weight)
    if kind == "layer":
        inner = (inner - inner.mean(1, keepdims=True)) / np.sqrt(inner.var(1, keepdims=True) + 1e-5)
    if kind == "batch":
        assert hidden.normal.eps == 1e-3
        inner = inner / np.sqrt(1 + 1e-3)
    assert_close(got, np.maximum(inner, 0), "float32 layers")


def test_an_unknown_norm_is_refused():
    with pytest.raises(KeyError, match="group"):
        normal_of("group", 4)


def test_features_are_flattened_by_channels_rows_and_columns():
    head, x = BoxHead(2, 3, 4, hidden=(5,)), draw(6, 2, 3, 3)
    scores, deltas = run(head, x)
    hidden = np.maximum(x.reshape(6, 18) @ value(head.full[0].linear.weight), 0)
    assert_close(scores, hidden @ value(head.scores.weight), "float32 layers")
    assert_close(deltas, hidden @ value(head.deltas.weight), "float32 layers")
    assert scores.shape == (6, 4) and deltas.shape == (6, 16)


def test_a_box_head_of_the_second_version_has_convolutions_with_norms():
    head = BoxHead(8, 7, 5, (6, 6), (9,), "layer")
    assert [(type(x), x.inputs, x.outputs, x.window, x.pad) for x in head.conv] == [
        (nn.ConvNorm, 8, 6, 3, 1),
        (nn.ConvNorm, 6, 6, 3, 1),
    ]
    assert head.full[0].inputs == 6 * 49 and isinstance(head.full[0].normal, nn.LayerNorm)
    scores, deltas = head(cg.Var((3, 8, 7, 7)))
    assert scores.shape == (3, 5) and deltas.shape == (3, 20)
    assert [(x.inputs, x.outputs) for x in BoxHead(8, 7, 5).full] == [(392, 1024), (1024, 1024)]


@pytest.mark.parametrize("normal", [False, True])
def test_masks_are_twice_as_large_as_features(normal):
    head, x = MaskHead(3, 5, (4, 6), 7, normal, 0.25), draw(2, 3, 4, 4)
    got = run(head, x)
    assert got.shape == (2, 5, 8, 8)
    assert [(c.inputs, c.outputs, type(c)) for c in head.conv] == [
        (3, 4, nn.ConvNorm if normal else nn.Conv2d),
        (4, 6, nn.ConvNorm if normal else nn.Conv2d),
    ]
    assert [c.eps for c in head.conv if normal] == [0.25, 0.25][: 2 * normal]
    for layer in (*head.conv, head.enlarge):
        x = np.maximum(run(layer, x), 0)
    assert_close(got, run(head.scores, x), "float32 layers")
    assert got.min() < 0 and head.enlarge.outputs == 7


def test_a_mask_head_has_four_convolutions_of_256_channels():
    head = MaskHead(256, 91)
    assert [x.outputs for x in head.conv] == [256] * 4 and head.up == 256 and head.eps == 1e-5
    assert head.enlarge.weight.shape == (256, 256, 2, 2) and head.scores.weight.shape == (91, 256, 1, 1)
