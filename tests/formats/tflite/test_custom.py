"""MediaPipe's custom operators: indices of maxima, and what is refused. What networks compute of them is in
tests/support/tflite_cases.py.
"""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from tests.support.tflite_models import Network, results_of

POOL, UNPOOL, CONV = (
    f"CUSTOM '{x}'" for x in ("MaxPoolingWithArgmax2D", "MaxUnpooling2D", "Convolution2DTransposeBias")
)
SAME, VALID = 1, 2
WINDOW = {"window_w": 2, "window_h": 2, "stride_w": 2, "stride_h": 2, "padding": VALID}


def pooled(image, **options):
    """Maxima and indices of one image ``[h, w]``, both without the axes of samples and channels."""
    net = Network()
    outputs = net.op(POOL, [net.input((1, *np.shape(image), 1))], "float32", "float32", **options)
    value = np.asarray(image, "f4").reshape((1, *np.shape(image), 1))
    return [x[0, :, :, 0] for x in results_of(net, outputs, value)]


def test_an_index_is_that_of_the_first_maximum_in_its_window_plus_a_tenth():
    most, index = pooled([[1, 5, 2, 2], [5, 0, 2, 3]], **WINDOW)
    np.testing.assert_array_equal(most, [[5, 3]])
    np.testing.assert_array_equal(index, np.float32([[1.1, 3.1]]))


def test_padding_is_never_the_maximum():
    """Of three pixels and windows of two, the last window has one pixel and padding after it; of three, both sides."""
    options = WINDOW | {"padding": SAME}
    most, index = pooled(np.full((3, 3), -7), **options)
    np.testing.assert_array_equal(most, np.full((2, 2), -7))
    np.testing.assert_array_equal(index, np.full((2, 2), np.float32(0.1)))
    most, index = pooled(np.full((3, 3), -7), **options | {"window_w": 3, "stride_w": 1})
    np.testing.assert_array_equal(index[0], np.float32([1.1, 0.1, 0.1]))


def test_a_number_that_is_not_one_is_not_a_maximum():
    most, index = pooled([[np.nan, 1], [-np.inf, np.nan]], **WINDOW)
    np.testing.assert_array_equal((most, index), np.float32([[[1]], [[1.1]]]))
    most, index = pooled(np.full((2, 2), np.nan), **WINDOW)
    np.testing.assert_array_equal((most, index), np.float32([[[np.finfo("f4").min]], [[0.1]]]))


def test_an_element_returns_to_where_it_was():
    net = Network()
    y = net.op(UNPOOL, [net.input((1, 1, 2, 1)), net.input((1, 1, 2, 1))], **WINDOW)
    (image,) = results_of(net, [y], *(np.float32(x).reshape(1, 1, 2, 1) for x in ([7, -8], [2.1, 1.1])))
    np.testing.assert_array_equal(image[0, :, :, 0], [[0, 0, 0, -8], [7, 0, 0, 0]])


def images(net, *shapes):
    return [net.input(shape) for shape in shapes]


def convolved(net, filters, bias, **options):
    weights = [net.constant(np.ones(shape, "f4")) for shape in (filters, bias)]
    return net.op(CONV, [net.input((1, 2, 2, 3)), *weights], **options)


STEPS = {"stride_w": 1, "stride_h": 1}
REFUSED = {
    "windows that overlap": (
        lambda net: net.op(UNPOOL, images(net, (1, 2, 2, 1), (1, 2, 2, 1)), **WINDOW | {"stride_w": 1}),
        r"windows of \(2, 2\) every \(2, 1\) pixels",
    ),
    "other indices": (
        lambda net: net.op(UNPOOL, images(net, (1, 2, 2, 1), (1, 2, 3, 1)), **WINDOW),
        "with one index for each element",
    ),
    "a window of nothing": (
        lambda net: net.op(POOL, images(net, (1, 2, 2, 1)), "float32", "float32", **WINDOW | {"window_h": 0})[0],
        "window is 0 x 2",
    ),
    "a window beyond its image": (
        lambda net: net.op(POOL, images(net, (1, 2, 2, 1)), "float32", "float32", **WINDOW | {"window_h": 3})[0],
        r"a window of \(3, 2\) does not fit an image of \(2, 2\) pixels",
    ),
    "a window of many pixels": (
        lambda net: net.op(POOL, images(net, (1, 2, 2, 1)), "float32", "float32", **WINDOW | {"window_h": 1 << 20})[0],
        "its windows would take .* nodes while reading",
    ),
    "a padding of another kind": (
        lambda net: net.op(POOL, images(net, (1, 2, 2, 1)), "float32", "float32", **WINDOW | {"padding": 3})[0],
        "the padding 3 is not supported. Use 1",
    ),
    "filters of other channels": (lambda net: convolved(net, (4, 2, 2, 5), (4,), padding=SAME, **STEPS), "do not fit"),
    "a bias of other filters": (lambda net: convolved(net, (4, 2, 2, 3), (3,), padding=SAME, **STEPS), "do not fit"),
    "a transpose of another padding": (
        lambda net: convolved(net, (4, 2, 2, 3), (4,), padding=0, **STEPS), "the padding 0 is not supported. Use 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named(name):
    build, match = REFUSED[name]
    net = Network()
    with pytest.raises(FormatError, match=match):
        load(net.bytes(build(net)))


def test_options_that_are_cut_off_are_refused():
    net = Network()
    y = convolved(net, (4, 2, 2, 3), (4,), padding=SAME, **STEPS)
    net.operators[-1][5] = net.operators[-1][5][:9]
    with pytest.raises(FormatError, match="an offset points to byte 8 of 9"):
        load(net.bytes(y))
    net.operators[-1].pop(5)
    with pytest.raises(FormatError, match="an offset points to byte"):
        load(net.bytes(y))


@pytest.mark.parametrize(("activation", "most"), [(0, -7), (1, 0), (2, -1), (3, 0)])
def test_maxima_have_an_activation_and_their_indices_stay(activation, most):
    found, index = pooled([[-9, -7], [-8, -9]], **WINDOW, activation=activation)
    assert found.tolist() == [[most]] and index.tolist() == [[np.float32(1.1)]]


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize(("size", "window", "stride"), [
    ((4, 5), (3, 2), (3, 2)), ((3, 4), (5, 4), (2, 3)), ((1, 6), (2, 5), (2, 4)), ((5, 2), (1, 2), (2, 1)),
])  # fmt: skip
def test_a_transposed_convolution_is_cut_as_much_as_its_forward_one_is_padded(size, window, stride, padding):
    """Of as many pixels as the image has here, with results at every stride."""
    x = np.random.default_rng(1).integers(-4, 5, (2, *size, 3)).astype("f4")
    filters = np.random.default_rng(2).integers(-4, 5, (4, *window, 3)).astype("f4")
    bias = np.float32([1, 2, 3, 4])
    net = Network()
    operands = [net.input(x.shape), net.constant(filters), net.constant(bias)]
    y = net.op(CONV, operands, padding=padding, stride_h=stride[0], stride_w=stride[1])
    whole = np.zeros((2, *((n - 1) * s + w for n, s, w in zip(size, stride, window)), 4), "f4")
    for i, j in np.ndindex(*size):
        a, b = i * stride[0], j * stride[1]
        whole[:, a : a + window[0], b : b + window[1]] += np.einsum("nc,krsc->nrsk", x[:, i, j], filters)
    if padding == SAME:
        total = [max((-(-n // s) - 1) * s + w - n, 0) for n, s, w in zip(size, stride, window)]
        rows, columns = (slice(n // 2, k - (n - n // 2)) for n, k in zip(total, whole.shape[1:3]))
        whole = whole[:, rows, columns]
    np.testing.assert_array_equal(results_of(net, [y], x)[0], whole + bias, strict=True)
