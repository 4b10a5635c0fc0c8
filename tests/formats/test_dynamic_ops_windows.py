"""Windows that slide along a side of images whose length is known only at run time, as onnxruntime has them."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_open import agrees, node, open_model

pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)
FIRST = {"zero": np.array([0]), "axis": np.array([2])}
CUT = node("Slice", ["x", "zero", "n", "axis"], ["part"])  # n elements along axis 2
LENGTHS = [[5], [8], [9], [12]]


def numbers(*shape):
    return rng.standard_normal(shape).astype("f4")


def given(*lengths, shape):
    return [{"x": numbers(*shape), "n": np.array(n)} for n in lengths]


def model(*nodes, shape, **constants):
    return open_model([CUT, *nodes], {"x": ("f4", shape), "n": ("i8", (1,))}, FIRST | constants, "y")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strides": [2], "pads": [1, 3]},
        {"strides": [3], "dilations": [2], "pads": [2, 0]},
        {"group": 2, "pads": [1, 1]},
        {"auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "VALID", "strides": [2]},
    ],
    ids=str,
)
def test_convolutions_along_a_dynamic_length(options):
    f = numbers(6, 4 // options.get("group", 1), 3)
    raw = model(node("Conv", ["part", "f", "b"], ["y"], **options), shape=(2, 4, 12), f=f, b=numbers(6))
    agrees(raw, given(*LENGTHS, shape=(2, 4, 12)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strides": [2], "pads": [1, 1]},
        {"strides": [3], "output_padding": [2], "dilations": [2]},
        {"group": 2, "pads": [0, 2], "strides": [2]},
    ],
    ids=str,
)
def test_transposed_convolutions_along_a_dynamic_length(options):
    raw = model(node("ConvTranspose", ["part", "f"], ["y"], **options), shape=(2, 4, 12), f=numbers(4, 3, 4))
    agrees(raw, given(*LENGTHS, shape=(2, 4, 12)))


@pytest.mark.parametrize("options", [{}, {"strides": [2], "pads": [1, 1]}, {"dilations": [2], "pads": [2, 1]}], ids=str)
def test_the_largest_of_windows_along_a_dynamic_length(options):
    raw = model(node("MaxPool", ["part"], ["y"], kernel_shape=[3], **options), shape=(2, 4, 12))
    agrees(raw, given(*LENGTHS, shape=(2, 4, 12)))


def test_images_have_one_side_of_dynamic_length():
    options = {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]}
    raw = model(node("Conv", ["part", "f"], ["y"], **options), shape=(1, 3, 12, 7), f=numbers(5, 3, 3, 2))
    agrees(raw, given(*LENGTHS, shape=(1, 3, 12, 7)))


BOTH = [CUT, node("Slice", ["part", "zero", "m", "last"], ["piece"])]
SIDES = {
    "Conv": {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]},
    "ConvTranspose": {"strides": [1, 3], "pads": [1, 0, 0, 2], "output_padding": [0, 2], "dilations": [2, 1]},
    "MaxPool": {"strides": [1, 2], "pads": [0, 1, 1, 0], "dilations": [2, 1], "kernel_shape": [2, 3]},
}


@pytest.mark.parametrize("kind", SIDES)
def test_both_sides_of_images_and_their_number_may_be_dynamic(kind):
    """Each side has its own stride, padding and window, and each its own length."""
    pictures = node("Compress", ["piece", "which"], ["some"], axis=0)
    for given_name, before in (("piece", BOTH), ("some", [*BOTH, pictures])):
        names = [given_name] if kind == "MaxPool" else [given_name, "f"]
        nodes = [*before, node(kind, names, ["y"], **SIDES[kind])]
        inputs = {"x": ("f4", (3, 2, 9, 8)), "n": ("i8", (1,)), "m": ("i8", (1,)), "which": ("?", (3,))}
        constants = FIRST | {"last": np.array([3]), "f": numbers(2, 2, 2, 3)}
        raw = open_model(nodes, inputs, constants, "y")
        feeds = [
            {"x": numbers(3, 2, 9, 8), "n": np.array([n]), "m": np.array([m]), "which": np.array(which, bool)}
            for n, m, which in ((9, 5, [1, 0, 1]), (4, 8, [1, 1, 1]), (6, 7, [0, 1, 0]))
        ]
        agrees(raw, feeds)


def test_a_vocoder_computes_as_many_samples_as_its_frames_need():
    """Convolutions, their transposes and norms in a row: each reads zeros behind the value, not what others left."""
    values = {"scale": numbers(6), "shift": numbers(6), "mean": numbers(6), "variance": np.abs(numbers(6))}
    nodes = [
        node("Conv", ["part", "f"], ["a"], pads=[3, 3]),
        node("BatchNormalization", ["a", *values], ["b"]),
        node("ConvTranspose", ["b", "g"], ["c"], strides=[4], pads=[2, 2]),
        node("Tanh", ["c"], ["d"]),
        node("Conv", ["d", "h"], ["y"], pads=[1, 1]),
    ]
    filters = {"f": numbers(6, 4, 7), "g": numbers(6, 5, 8), "h": numbers(1, 5, 3)}
    agrees(model(*nodes, shape=(2, 4, 12), **values, **filters), given(*LENGTHS, [1], shape=(2, 4, 12)))


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("Conv", {"auto_pad": "SAME_UPPER", "strides": [2]}, "auto_pad SAME_UPPER with stride 2"),
        ("ConvTranspose", {"output_shape": [30]}, "output_shape or auto_pad"),
        ("ConvTranspose", {"auto_pad": "SAME_LOWER"}, "output_shape or auto_pad"),
        ("MaxPool", {"kernel_shape": [2], "ceil_mode": 1}, "ceil_mode"),
    ],
)
def test_what_places_windows_by_the_length_is_refused(kind, options, words):
    names = ["part"] if kind == "MaxPool" else ["part", "f"]
    raw = model(node(kind, names, ["y"], **options), shape=(2, 4, 12), f=numbers(4, 4, 3))
    with pytest.raises(
        FormatError,
        match=f"{words} is not supported along axis 2 of .*known only at run time. Give (pads, or )?shapes=",
    ):
        load(raw)


def test_channels_and_filters_of_dynamic_length_are_refused():
    channels = [node("Slice", ["x", "zero", "n", "one"], ["part"]), node("Conv", ["part", "f"], ["y"])]
    raw = open_model(
        channels, {"x": ("f4", (2, 4, 12)), "n": ("i8", (1,))},
        FIRST | {"one": np.array([1]), "f": numbers(4, 4, 3)}, "y",
    )  # fmt: skip
    with pytest.raises(FormatError, match="it computes along axis 1 of"):
        load(raw)
    with pytest.raises(FormatError, match="known only at run time"):
        load(model(node("Conv", ["w", "part"], ["y"]), shape=(2, 4, 12), w=numbers(1, 4, 20)))
