"""Col2Im for strides, dilations and paddings of any remainder; MaxUnpool; both of one to three axes."""

import numpy as np
import pytest
from onnx import helper

from cgraph.formats.onnx.operators.window import col2im
from cgraph.ops.leaf import Const
from cgraph.ops.window import Windows
from tests.support.onnx_context import context, value_of
from tests.support.onnx_models import assert_equal_results
from tests.support.tolerance import assert_close

rng = np.random.default_rng(0)

# image, window, pad, stride, dilation; the last two have places that no window reaches, at the end or in between
GEOMETRIES = {
    "beside one another": ([6, 8], [2, 4], [0] * 4, [2, 4], [1, 1]),
    "overlapping": ([5, 7], [3, 2], [0] * 4, [1, 1], [1, 1]),
    "padded": ([5, 6], [3, 3], [1, 2, 0, 1], [1, 1], [1, 1]),
    "strides that do not divide the window": ([9, 8], [3, 4], [1, 0, 2, 1], [2, 3], [1, 1]),
    "dilated": ([7, 6], [3, 2], [2, 1, 2, 3], [1, 2], [2, 3]),
    "one axis": ([9], [3], [2, 0], [2], [3]),
    "three axes": ([4, 3, 5], [2, 1, 3], [1, 0, 2, 0, 1, 1], [3, 2, 1], [1, 3, 2]),
    "padding wider than the window": ([3, 3], [2, 2], [4, 3, 4, 3], [1, 2], [1, 1]),
    "strides wider than the window": ([11, 7], [2, 1], [0, 1, 0, 1], [5, 3], [1, 1]),
    "dilations that miss every second place": ([7, 7], [2, 2], [0] * 4, [2, 2], [2, 2]),
}


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_windows_are_added_where_they_were_read(name, dtype):
    image, window, pad, stride, dilation = GEOMETRIES[name]
    windows = Windows(tuple(window), tuple(stride), tuple(pad), tuple(dilation))
    counts = windows.result(tuple(image))
    elements = (10 * rng.standard_normal((2, 3, np.prod(window), *counts))).astype(dtype)
    blocks = elements.reshape(2, -1, np.prod(counts))
    names = {"pads": pad, "strides": stride, "dilations": dilation}
    c = context(
        *(Const(x) for x in (blocks, np.array(image), np.array(window))),
        attributes=[helper.make_attribute(*pair) for pair in names.items()],
    )
    want = windows.fold(np.moveaxis(elements, 2, 0), tuple(image))
    assert_close(value_of(col2im(c), {}), want)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("more", [None, (0, 0, 0), (2, 0, 1)])
def test_largest_elements_go_back_to_their_places_in_an_image_that_may_be_larger(axes, more):
    window, strides, pads = [3, 1, 2][:axes], [2, 3, 1][:axes], [1, 0, 1][:axes] + [0, 0, 1][:axes]
    x = rng.standard_normal((2, 1, *[3, 2, 4][:axes])).astype("f4")
    sizes = [(n - 1) * strides[i] + window[i] - pads[i] - pads[i + axes] for i, n in enumerate(x.shape[2:])]
    places = rng.permutation(2 * np.prod(sizes))[: x.size].reshape(x.shape)
    target = [] if more is None else [np.array([2, 1, *(n + m for n, m in zip(sizes, more))])]
    moves = {"kernel_shape": window, "strides": strides, "pads": pads}
    assert_equal_results("MaxUnpool", [x, places, *target], (2,) if target else (), by="reference", **moves)
