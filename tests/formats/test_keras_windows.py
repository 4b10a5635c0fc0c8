"""Windows over sequences, images and volumes, as NumPy computes them in Keras' order of axes."""

import itertools

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.keras_graph import graph_of
from cgraph.formats.keras_windows import each_axis, pairs, window_pad
from cgraph.ops.leaf import Var
from tests.formats.test_keras_layers import computed, network
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
SHAPES = {1: (2, 9, 4), 2: (2, 6, 7, 4), 3: (2, 5, 6, 4, 4)}
XS = {rank: RNG.normal(size=shape).astype("f4") for rank, shape in SHAPES.items()}


def padded(x, window, options, fill):
    """`x` with what Keras adds around it."""
    around = [(0, 0)]
    for n, w, step, d in zip(x.shape[1:], window, options["strides"], options.get("dilation_rate", [1] * 3)):
        span = (w - 1) * d
        total = {"valid": 0, "causal": span, "same": max((-(-n // step) - 1) * step + span + 1 - n, 0)}
        total = total[options["padding"]]
        around.append((total, 0) if options["padding"] == "causal" else (total // 2, total - total // 2))
    return np.pad(x, [*around, (0, 0)], constant_values=fill)


def windows(x, window, options, fill=0.0):
    """For each position the elements under the window, in its order: ``[n, *positions, *window, c]``."""
    steps, dilation = options["strides"], options.get("dilation_rate", [1] * 3)
    x = padded(x.astype(float), window, options, fill)
    counts = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(x.shape[1:], window, steps, dilation)]
    seen = np.empty((x.shape[0], *counts, *window, x.shape[-1]))
    for at in itertools.product(*map(range, window)):
        cut = [slice(a * d, a * d + (k - 1) * s + 1, s) for a, d, k, s in zip(at, dilation, counts, steps)]
        seen[(slice(None),) * (len(window) + 1) + at] = x[(slice(None), *cut)]
    return seen


def convolved(x, kernel, options):
    rank, groups = x.ndim - 2, options.get("groups", 1)
    seen = windows(x, kernel.shape[:rank], options)
    parts = zip(np.split(seen, groups, -1), np.split(kernel, groups, -1))
    axes = range(-rank - 1, 0), range(rank + 1)
    return np.concatenate([np.tensordot(a, b, [list(axes[0]), list(axes[1])]) for a, b in parts], -1)


CASES = [
    (rank, padding, dilation, groups)
    for rank in (1, 2, 3)
    for padding in ("same", "valid", *(["causal"] if rank == 1 else []))
    for dilation, groups in ((1, 1), (2, 1), (1, 2))
]


@pytest.mark.parametrize(("rank", "padding", "dilation", "groups"), CASES)
def test_a_convolution_is_a_sum_over_each_window(rank, padding, dilation, groups):
    options = {
        "kernel_size": [3, 2, 2][:rank], "strides": [1 if dilation > 1 else 2, 1, 1][:rank], "padding": padding,
        "dilation_rate": [dilation] * rank, "groups": groups, "activation": "relu",
    }  # fmt: skip
    kernel = RNG.normal(size=(*options["kernel_size"], 4 // groups, 6), scale=0.2).astype("f4")
    bias = RNG.normal(size=6).astype("f4")
    file = network(f"Conv{rank}D", options, {"kernel": kernel, "bias": bias}, shape=SHAPES[rank])
    want = np.maximum(convolved(XS[rank], kernel, options) + bias, 0)
    assert_near(computed(file, XS[rank]), want, "float32 sums near zero")


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(("strides", "dilation"), [([1, 2], [1, 1]), ([3, 1], [1, 1]), ([1, 1], [2, 3])])
@pytest.mark.parametrize("kind", ["Conv2D", "DepthwiseConv2D", "SeparableConv2D"])
def test_settings_of_rows_are_not_those_of_columns(kind, strides, dilation, padding):
    options = {"kernel_size": [2, 3], "strides": strides, "padding": padding, "dilation_rate": dilation}
    kernel, wide = RNG.normal(size=(2, 3, 4, 2)).astype("f4"), RNG.normal(size=(1, 1, 8, 3)).astype("f4")
    if kind == "Conv2D":
        weights, want = {"kernel": kernel}, convolved(XS[2], kernel, options)
    else:
        want = np.einsum("nhwijc,ijcm->nhwcm", windows(XS[2], [2, 3], options), kernel)
        want, weights = want.reshape(*want.shape[:3], 8), {"depthwise_kernel": kernel}
    if kind == "SeparableConv2D":
        want, weights = want @ wide[0, 0], weights | {"pointwise_kernel": wide}
    assert_near(computed(network(kind, options, weights, shape=SHAPES[2]), XS[2]), want, "float32 sums near zero")


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools_take_the_largest_or_the_mean_of_what_is_there(rank, padding):
    options = {"pool_size": [2, 3, 2][:rank], "strides": [2, 2, 1][:rank], "padding": padding}
    seen = windows(XS[rank], options["pool_size"], options, np.nan)
    axes = tuple(range(-rank - 1, -1))
    for kind, want in (("Max", np.nanmax(seen, axes)), ("Average", np.nanmean(seen, axes))):
        file = network(f"{kind}Pooling{rank}D", options, shape=SHAPES[rank])
        assert_near(computed(file, XS[rank]), want, "float32 sums near zero")


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_whole_pools_keep_the_channels(rank, keepdims):
    axes = tuple(range(1, rank + 1))
    for kind, rule in (("Max", np.max), ("Average", np.mean)):
        file = network(f"Global{kind}Pooling{rank}D", {"keepdims": keepdims}, shape=SHAPES[rank])
        assert_near(computed(file, XS[rank]), rule(XS[rank], axes, keepdims=keepdims), "float32 sums near zero")


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_sizes_change_as_numpy_changes_them(rank):
    x, rows = XS[rank], [[1, 0], [0, 2], [1, 1]][:rank]
    value = rows if rank > 1 else rows[0]
    found = computed(network(f"ZeroPadding{rank}D", {"padding": value}, shape=x.shape), x)
    np.testing.assert_array_equal(found, np.pad(x, [(0, 0), *rows, (0, 0)]))
    cut = tuple(slice(a, n - b) for n, (a, b) in zip(x.shape[1:], rows))
    found = computed(network(f"Cropping{rank}D", {"cropping": value}, shape=x.shape), x)
    np.testing.assert_array_equal(found, x[(slice(None), *cut)])
    times = [2, 1, 3][:rank]
    want = x
    for axis, k in enumerate(times):
        want = want.repeat(k, axis + 1)
    size = times if rank > 1 else times[0]
    np.testing.assert_array_equal(computed(network(f"UpSampling{rank}D", {"size": size}, shape=x.shape), x), want)


def test_a_depthwise_and_a_separable_convolution_of_a_sequence():
    options = {"kernel_size": [3], "strides": [2], "padding": "same"}
    kernel, wide = RNG.normal(size=(3, 4, 2)).astype("f4"), RNG.normal(size=(1, 8, 5)).astype("f4")
    seen = windows(XS[1], [3], options)
    want = np.einsum("ntwc,wcm->ntcm", seen, kernel).reshape(2, -1, 8)
    found = computed(network("DepthwiseConv1D", options, {"kernel": kernel}, shape=SHAPES[1]), XS[1])
    assert_near(found, want, "float32 sums near zero")
    weights = {"depthwise_kernel": kernel, "pointwise_kernel": wide}
    found = computed(network("SeparableConv1D", options, weights, shape=SHAPES[1]), XS[1])
    assert_near(found, want @ wide[0], "float32 sums near zero")


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("rank", [1, 3])
def test_a_transposed_convolution_spreads_each_element(rank, padding):
    window, steps, x = [3, 2, 4][:rank], [2, 3, 1][:rank], XS[rank]
    kernel = RNG.normal(size=(*window, 5, 4)).astype("f4")
    whole = np.zeros((2, *(n * s + w for n, s, w in zip(x.shape[1:], steps, window)), 5))
    for at in np.ndindex(*x.shape[1:-1]):
        cut = tuple(slice(i * s, i * s + w) for i, s, w in zip(at, steps, window))
        whole[(slice(None), *cut)] += np.tensordot(x[(slice(None), *at)], kernel, [[1], [rank + 1]])
    cuts = []
    for n, s, w in zip(x.shape[1:], steps, window):
        start = max(w - s, 0) // 2 if padding == "same" else 0
        cuts.append(slice(start, start + n * s + (max(w - s, 0) if padding == "valid" else 0)))
    options = {"kernel_size": window, "strides": steps, "padding": padding}
    found = computed(network(f"Conv{rank}DTranspose", options, {"kernel": kernel}, shape=x.shape), x)
    assert_near(found, whole[(slice(None), *cuts)], "float32 sums near zero")


def test_pictures_are_resized_between_the_centres_of_pixels():
    x = XS[2]

    def weights(n, size, mode):
        at = (np.arange(size) + 0.5) * n / size - 0.5
        if mode == "nearest":
            return np.eye(n)[np.minimum(np.floor(at + 0.5).astype(int), n - 1)]
        at = np.clip(at, 0, n - 1)
        return np.maximum(1 - np.abs(at[:, None] - np.arange(n)), 0)

    for mode in ("nearest", "bilinear"):
        want = np.einsum("nhwc,ph,qw->npqc", x, weights(6, 9, mode), weights(7, 4, mode))
        options = {"height": 9, "width": 4, "interpolation": mode}
        assert_near(computed(network("Resizing", options, shape=x.shape), x), want, "float32 sums near zero")
    default = network("Resizing", {"height": 9, "width": 4}, shape=x.shape)
    assert_near(computed(default, x), want, "float32 sums near zero")  # bilinear, the last of both
    options = {"size": [2, 3], "interpolation": "bilinear"}
    want = np.einsum("nhwc,ph,qw->npqc", x, weights(6, 12, "bilinear"), weights(7, 21, "bilinear"))
    assert_near(computed(network("UpSampling2D", options, shape=x.shape), x), want, "float32 sums near zero")


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("Conv2D", {"kernel_size": [3, 3, 3], "strides": [1, 1], "padding": "same"}, "does not fit 2 axes"),
        ("MaxPooling2D", {"pool_size": [2, 2], "strides": [1, 1], "padding": "full"}, "padding 'full'"),
        ("Resizing", {"height": 3, "width": 3, "interpolation": "area"}, "Use nearest or bilinear"),
        ("Resizing", {"height": 3, "width": 3, "crop_to_aspect_ratio": True}, "aspect ratio"),
    ],
)
def test_settings_without_a_meaning_here_are_refused(kind, options, words):
    with pytest.raises(FormatError, match=words):
        graph_of(network(kind, options, {"kernel": np.ones((3, 3, 4, 2), "f4")}, shape=SHAPES[2]), {"batch": 1})


def test_settings_of_axes():
    image, steps = Var((1, 2, 9, 8)), Var((1, 9, 2))
    assert each_axis(3, image) == [3, 3] and each_axis([1, 2], image) == [1, 2] and each_axis([5], steps) == [5]
    assert pairs(2, steps) == [(2, 2)] and pairs([1, 2], steps) == [(1, 2)] and pairs([[1, 2]], steps) == [(1, 2)]
    assert pairs([1, 2], image) == [(1, 1), (2, 2)] and pairs([[1, 2], [3, 4]], image) == [(1, 2), (3, 4)]
    options = {"padding": "same", "strides": [2, 1]}
    assert window_pad(options, image, [3, 2], [1, 1]) == (1, 0, 1, 1)
    assert window_pad(options | {"padding": "valid"}, image, [3, 2], [1, 1]) == (0, 0, 0, 0)


@pytest.mark.parametrize("option", ["crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"])
def test_each_option_of_a_resize_that_changes_pixels_is_refused(option):
    options = {"height": 3, "width": 3, option: True}
    with pytest.raises(FormatError, match="keeps the aspect ratio, or with antialias, is not supported"):
        graph_of(network("Resizing", options, shape=SHAPES[2]), {"batch": 1})
    graph_of(network("Resizing", options | {option: False}, shape=SHAPES[2]), {"batch": 1})


@pytest.mark.parametrize("dilation", [[1, 2], [2, 1], 2])
def test_gaps_along_any_axis_of_transposed_filters_are_refused(dilation):
    options = {"kernel_size": [2, 2], "strides": [1, 1], "padding": "same"}
    kernel = {"kernel": np.ones((2, 2, 3, 4), "f4")}
    file = network("Conv2DTranspose", options | {"dilation_rate": dilation}, kernel, shape=SHAPES[2])
    with pytest.raises(FormatError, match="output_padding or dilation_rate are not supported"):
        graph_of(file, {"batch": 1})
    for others in ({"dilation_rate": [1, 1]}, {"dilation_rate": 1, "output_padding": None}):
        graph_of(network("Conv2DTranspose", options | others, kernel, shape=SHAPES[2]), {"batch": 1})


BIASED = {
    "Conv": lambda rank: {"kernel": RNG.normal(size=(*[2] * rank, 4, 3)).astype("f4")},
    "ConvTranspose": lambda rank: {"kernel": RNG.normal(size=(*[2] * rank, 3, 4)).astype("f4")},
    "DepthwiseConv": lambda rank: {"depthwise_kernel": RNG.normal(size=(*[2] * rank, 4, 1)).astype("f4")},
    "SeparableConv": lambda rank: {
        "depthwise_kernel": RNG.normal(size=(*[2] * rank, 4, 1)).astype("f4"),
        "pointwise_kernel": RNG.normal(size=(*[1] * rank, 4, 3)).astype("f4"),
    },
}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", BIASED)
def test_a_bias_comes_before_the_activation_of_every_kind_of_filters(kind, rank):
    if rank == 3 and kind in ("DepthwiseConv", "SeparableConv"):
        return  # which Keras has for sequences and images alone
    name = f"Conv{rank}DTranspose" if kind == "ConvTranspose" else f"{kind}{rank}D"
    options = {"kernel_size": [2] * rank, "strides": [1] * rank, "padding": "same"}
    weights = BIASED[kind](rank)
    count = 4 if kind == "DepthwiseConv" else 3
    bias = np.linspace(-1, 1, count, dtype="f4")
    plain = computed(network(name, options, weights, shape=SHAPES[rank]), XS[rank])
    file = network(name, options | {"activation": "relu"}, weights | {"bias": bias}, shape=SHAPES[rank])
    assert_near(computed(file, XS[rank]), np.maximum(plain + bias, 0), "float32 sums near zero")


@pytest.mark.parametrize("strides", [[1, 3], [3, 1]])
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_steps_of_a_pool_are_not_its_window(strides, padding):
    options = {"pool_size": [3, 2], "strides": strides, "padding": padding}
    seen = windows(XS[2], [3, 2], options, np.nan)
    for kind, want in (("Max", np.nanmax(seen, (-3, -2))), ("Average", np.nanmean(seen, (-3, -2)))):
        assert_near(
            computed(network(f"{kind}Pooling2D", options, shape=SHAPES[2]), XS[2]), want, "float32 sums near zero"
        )


def test_filters_without_a_kernel_are_named_by_what_they_have():
    options = {"kernel_size": [2, 2], "strides": [1, 1], "padding": "same"}
    with pytest.raises(FormatError, match=r"depthwise filters has \['bias'\], not a kernel"):
        graph_of(network("DepthwiseConv2D", options, {"bias": np.ones(4, "f4")}, shape=SHAPES[2]), {"batch": 1})
