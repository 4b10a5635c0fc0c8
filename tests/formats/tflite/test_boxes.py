"""Non-maximum suppression of TFLite files: what equals a threshold, and what is refused; see also tflite_cases.py."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from tests.support.tflite_models import Network, reference, results_of
from tests.support.tolerance import assert_near

BOXES = np.float32([[0, 0, 2, 2], [0, 0, 2, 1], [1, 1, 0, 0], [4, 4, 6, 6]])
SCORES = np.float32([0.9, 0.8, 0.7, 0.6])
RESULTS = ["int32", "float32", "int32"]


def suppressed(net, boxes=BOXES, scores=SCORES, size=5, share=0.5, least=0.0, sigma=0.0):
    numbers = [net.constant(np.asarray(size, "int32")), *(net.constant(np.float32(x)) for x in (share, least, sigma))]
    return net.op("NON_MAX_SUPPRESSION_V5", [net.input(boxes.shape), net.input(scores.shape), *numbers], *RESULTS)


@pytest.mark.parametrize("sigma", [0.0, 0.3])
@pytest.mark.parametrize("share", [0.25, 0.5, np.nextafter(np.float32(0.5), np.float32(1)), 1.0])
@pytest.mark.parametrize("least", [-1.0, 0.6, 0.9])
@pytest.mark.parametrize("size", [0, 1, 3, 9])
def test_boxes_that_just_reach_a_threshold_are_dropped_and_scores_that_just_reach_theirs(sigma, share, least, size):
    """Of boxes that share a half and a quarter of their union."""
    net = Network()
    results = suppressed(net, share=share, least=least, size=size, sigma=sigma)
    want = reference(net.bytes(*results), BOXES, SCORES)
    for x, y in zip(results_of(net, results, BOXES, SCORES), want, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert_near(x, y, "float32 formulas near zero")


@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_a_box_without_area_is_selected_once(sigma):
    """LiteRT selects it again and again, since it does not cover itself."""
    net, boxes = Network(), np.concatenate([BOXES, np.float32([[5, 5, 5, 5]])])
    scores = np.float32([*SCORES, 0.5])
    indices, _, count = results_of(net, suppressed(net, boxes, scores, 9, share=0.25, sigma=sigma), boxes, scores)
    np.testing.assert_array_equal(indices, [0, 3, 4, 0, 0, 0, 0, 0, 0])
    assert count == 3


REFUSED = {
    "a share of 0": ({"share": 0.0}, "a threshold of 0.0 or a sigma of 0.0"),
    "a share above 1": ({"share": 1.5}, "a threshold of 1.5"),
    "a negative sigma": ({"sigma": -1.0}, "a sigma of -1.0"),
    "two thresholds": ({"share": [0.5, 0.5]}, "operand 3 has 2 elements, one is expected"),
    "two sizes": ({"size": [5, 5]}, "2 numbers, one is expected"),
    "a negative size": ({"size": -1}, "a size of -1 do not fit"),
    "boxes of three numbers": ({"boxes": BOXES[:, :3]}, "do not fit"),
    "other boxes": ({"boxes": BOXES[:3]}, "do not fit"),
    "scores of two axes": ({"scores": SCORES[None]}, "do not fit"),
    "no boxes": ({"boxes": BOXES[:0], "scores": SCORES[:0]}, "do not fit"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operands_that_do_not_fit_are_refused(name):
    changes, match = REFUSED[name]
    net = Network()
    with pytest.raises(FormatError, match=match):
        results_of(net, suppressed(net, **changes), BOXES, SCORES)


@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_a_size_that_the_file_only_names_is_charged(sigma):
    net = Network()
    with pytest.raises(FormatError, match="bytes while reading"):
        results_of(net, suppressed(net, size=2**31 - 1, sigma=sigma), BOXES, SCORES)
