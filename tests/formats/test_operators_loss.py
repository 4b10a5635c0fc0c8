"""Losses of classes: weights, labels that are ignored, reductions, axes behind the classes."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, INT64, assert_equal_results, one
from tests.support.tolerance import assert_near

rng = np.random.default_rng(0)
SCORES = {shape: rng.standard_normal(shape).astype("f4") for shape in ((4, 3), (2, 3, 5), (2, 3, 2, 4))}
WEIGHTS = np.array([0.5, 2, 3], "f4")


def labels(shape):
    return rng.integers(0, 3, (shape[0], *shape[2:]))


@pytest.mark.parametrize("kind", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("shape", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 1}], ids=str)
def test_losses_are_those_of_the_reference(kind, shape, weighted, options):
    operands = [SCORES[shape], labels(shape), *([WEIGHTS] if weighted else [])]
    assert_equal_results(kind, operands, by="reference", near="float32 small networks", **options)


def test_log_shares_are_the_second_result():
    shape = (2, 3, 5)
    _, log = assert_equal_results("SoftmaxCrossEntropyLoss", [SCORES[shape], labels(shape)], by="reference", results=2)
    assert log.shape == shape
    assert_near(np.exp(log).sum(1), np.ones((2, 5), "f4"), "float32 formulas")


def test_labels_outside_the_classes_may_be_ignored():
    operands = [SCORES[4, 3], np.array([0, -100, 2, -100]), WEIGHTS]
    got = assert_equal_results("NegativeLogLikelihoodLoss", operands, by="reference", ignore_index=-100)[0]
    want = -(SCORES[4, 3][0, 0] * 0.5 + SCORES[4, 3][2, 2] * 3) / 3.5
    assert_near(got, want, "float32 formulas")


def test_a_reduction_that_is_unknown_is_refused():
    inputs = [("x", FLOAT, (4, 3)), ("t", INT64, (4,))]
    with pytest.raises(FormatError, match="reduction 'median' is not supported. Use none, mean or sum"):
        load(one("SoftmaxCrossEntropyLoss", inputs, reduction="median"))
