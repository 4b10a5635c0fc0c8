"""Config: what differs between the two rules, and the published numbers of both networks."""

from math import inf, log

import pytest

from cgraph import ShapeError
from nn.models.mask_rcnn.config import Config, matterport_config, torchvision_config


def test_a_rule_that_does_not_exist_is_refused():
    with pytest.raises(ShapeError, match="torchvision, matterport"):
        Config((8, 8), 2, "detectron")


def test_the_refusal_names_the_rule_and_both_names():
    with pytest.raises(ShapeError) as error:
        Config((8, 8), 2, "detectron2")
    assert str(error.value) == "rule is 'detectron2'. Use one of torchvision, matterport."


def test_what_follows_from_the_rule():
    torchvision, matterport = Config((8, 8), 2), Config((8, 8), 2, "matterport")
    assert torchvision.is_torchvision and not matterport.is_torchvision
    assert (torchvision.far, matterport.far) == (0, 1)
    assert (torchvision.grid, matterport.grid) == (("cells", 2), ("corners", 1))
    assert (torchvision.most, matterport.most) == (log(62.5), inf)
    assert torchvision.anchor_scales == (1, 1, 1, 1) and matterport.anchor_scales == (10, 10, 5, 5)
    assert torchvision.box_scales == matterport.box_scales == (10, 10, 5, 5)


def test_the_numbers_of_torchvisions_network():
    """Of `MaskRCNN` and `maskrcnn_resnet50_fpn` in torchvision 0.28."""
    config = torchvision_config()
    want = {
        "image": (800, 1344), "classes": 91, "anchor_sides": (32, 64, 128, 256, 512), "ratios": (0.5, 1.0, 2.0),
        "training_before": 2000, "before": 1000, "training_after": 2000, "after": 1000, "proposal_share": 0.7,
        "least_score": 0.05, "share": 0.5, "detections": 100, "sampled_anchors": 256, "sampled_boxes": 512,
        "positive_boxes": 128, "beta": 1 / 9, "cells": 7, "mask_cells": 14, "level_side": 224.0,
        "mean": (0.485 * 255, 0.456 * 255, 0.406 * 255), "deviation": (0.229 * 255, 0.224 * 255, 0.225 * 255),
    }  # fmt: skip
    fields = {name: getattr(config, name) for name in want}
    colours = ("mean", "deviation")
    assert {n: x for n, x in fields.items() if n not in colours} == {n: x for n, x in want.items() if n not in colours}
    assert all([round(x, 3) for x in fields[n]] == [round(x, 3) for x in want[n]] for n in colours)


def test_the_numbers_of_matterports_network():
    """Of `mrcnn/config.py`: RPN_NMS_THRESHOLD to MEAN_PIXEL; a third of 200 boxes is positive."""
    config = matterport_config()
    want = {
        "image": (1024, 1024), "classes": 81, "rule": "matterport", "anchor_sides": (32, 64, 128, 256, 512),
        "before": 6000, "training_before": 6000, "after": 1000, "training_after": 2000, "proposal_share": 0.7,
        "sampled_anchors": 256, "sampled_boxes": 200, "positive_boxes": 66, "detections": 100, "least_score": 0.7,
        "share": 0.3, "beta": 1.0, "mean": (123.7, 116.8, 103.9), "deviation": (1.0, 1.0, 1.0),
    }  # fmt: skip
    assert {name: getattr(config, name) for name in want} == want
    assert matterport_config(768, 5, 0.75).image == (768, 768)
    assert (matterport_config(768, 5, 0.75).classes, matterport_config(768, 5, 0.75).least_score) == (5, 0.75)
    assert torchvision_config((64, 32), 5) == Config((64, 32), 5)
